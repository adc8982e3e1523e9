"""The owners of an object's fields after one write. Objects are JSON documents of one version.

Objects are compared in the version that each owner wrote, because fields differ between versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

from allot.api.lazy import lazy
from allot.apiserver.managed_fields.comparison import (
    Comparison,
    all_new,
    compare,
    field_set,
    same_value,
)
from allot.apiserver.managed_fields.field_sets import (
    FieldSet,
    difference,
    intersection,
    recursive_difference,
    union,
)
from allot.apiserver.managed_fields.managers import ManagedFields, Manager, Ownership
from allot.apiserver.managed_fields.merging import merge
from allot.apiserver.managed_fields.removal import remove_items, with_named_fields
from allot.apiserver.managed_fields.schema_changes import reconciled
from allot.apiserver.managed_fields.validation import valid_fields
from allot.apiserver.managed_fields.value_types import ValueType

Document = dict[str, Any]
ComparedIn = Callable[[str], Comparison]
"""How an object differs in a version."""


class UnknownVersionError(LookupError):
    """A version that is not served."""


class Versions(Protocol):
    """The versions of one kind."""

    def type_of(self, api_version: str) -> ValueType:
        """`UnknownVersionError` if it is not served."""

    def convert(self, document: Document, to: str) -> Document:
        """The object in another version; `UnknownVersionError` if it is not served."""


class ApplyConflictError(Exception):
    """Fields that the applied configuration changes and other managers own."""

    def __init__(self, fields_by_manager: Mapping[Manager, FieldSet]) -> None:
        super().__init__("conflicts")
        self.fields_by_manager = dict(
            sorted(fields_by_manager.items(), key=lambda entry: entry[0].identifier)
        )

    def without(self, allowed: FieldSet) -> ApplyConflictError:
        """The same without those about some fields."""
        left = {
            manager: difference(fields, allowed)
            for manager, fields in self.fields_by_manager.items()
        }
        return ApplyConflictError({manager: fields for manager, fields in left.items() if fields})


class Applied(NamedTuple):
    """The outcome of an apply. `document` is None if the object is unchanged."""

    document: Document | None
    owners: dict[Manager, Ownership]


class Updater:
    """Decides for objects of one kind that are written at one endpoint."""

    def __init__(self, versions: Versions, api_version: str, ignored: FieldSet) -> None:
        self._versions = versions
        self._api_version = api_version
        self._ignored = ignored
        """Fields that writes at this endpoint ignore, in all versions."""

    @lazy
    def type(self) -> ValueType:
        """The objects in the version that is written."""
        return self._versions.type_of(self._api_version)

    def update(
        self,
        comparison: Comparison,
        owners: ManagedFields,
        writer: Manager,
        compared_in: ComparedIn | None,
    ) -> tuple[dict[Manager, Ownership], FieldSet]:
        """The owners after a write, and the changed fields, which the writer is going to own."""
        removed, changed = comparison.removed, comparison.changed
        left = self._disowned(owners, writer, removed, changed, compared_in)
        mine = left.get(writer)
        if mine is not None and removed:
            fields = difference(mine.fields, removed)
            if fields:
                left[writer] = mine.with_fields(fields)
            else:
                del left[writer]
        return left, changed

    def apply(
        self, live: Document, config: Document, owners: ManagedFields, manager: Manager, force: bool
    ) -> Applied:
        """The live object with the applied fields, without those that the manager no longer applies.

        `ApplyConflictError` if others own fields that change, unless it is forced.
        """
        type_ = self.type
        merged = merge(type_, live, config)
        fields = self.applied_fields(config)
        last = owners.get(manager)
        mine = Ownership(fields, self._api_version, True, last.time if last else None)
        owners = {**owners, manager: mine}
        pruned = self._pruned(merged, owners, last, mine)
        if pruned is merged and self._is_unowned(config, owners, manager):
            left = {owner: owned for owner, owned in owners.items() if owned.fields}
        else:
            comparison = self.compared(live, pruned)
            removed, changed = comparison.removed, comparison.changed
            compared_in = partial(self.compared_in, live, pruned)
            left = self._disowned(owners, manager, removed, changed, compared_in, force=force)
        return Applied(None if same_value(live, pruned) else pruned, left)

    def applied_fields(self, config: Document) -> FieldSet:
        """The fields that a manager owns who applies this."""
        return recursive_difference(field_set(self.type, config), self._ignored)

    def valid_fields(self, config: Document) -> FieldSet | None:
        """The same in one pass with its validation; None unless it certainly is valid."""
        fields = valid_fields(self.type, config)
        return None if fields is None else recursive_difference(fields, self._ignored)

    def _is_unowned(self, config: Document, owners: ManagedFields, writer: Manager) -> bool:
        """Whether no other manager owns anything in the top-level fields of an applied configuration."""
        elements = {f"f:{name}" for name in config}
        for manager, owned in owners.items():
            if manager != writer and (
                owned.api_version != self._api_version or not elements.isdisjoint(owned.fields)
            ):
                return False
        return True

    def compared(self, live: Document, new: Document) -> Comparison:
        """How an object differs, in the version that is written."""
        return compare(self.type, live, new).without(self._ignored)

    def filled(self, live: Document, new: Document) -> Comparison:
        """The same if the live object has the top-level fields of the new one as an empty object has them."""
        part = self.type.map
        assert part is not None
        return Comparison({}, {}, all_new(part.fields, live, new, {})).without(self._ignored)

    def _disowned(
        self,
        owners: ManagedFields,
        writer: Manager,
        removed: FieldSet,
        changed: FieldSet,
        compared_in: ComparedIn | None,
        *,
        force: bool = True,
    ) -> dict[Manager, Ownership]:
        """The owners without the fields that have another owner or are removed."""
        comparisons = {self._api_version: (removed, changed)}
        left: dict[Manager, Ownership] = {}
        conflicts: dict[Manager, FieldSet] = {}
        for manager, owned in owners.items():
            if manager == writer:
                if owned.fields:
                    left[manager] = owned
                continue
            version = owned.api_version
            if version not in comparisons:
                assert compared_in is not None
                try:
                    compared = compared_in(version)
                except UnknownVersionError:
                    continue
                comparisons[version] = compared.removed, compared.changed
            removed, changed = comparisons[version]
            fields = owned.fields
            lost = intersection(fields, changed) if changed else None
            if lost:
                conflicts[manager] = lost
                fields = difference(fields, lost)
            if removed:
                fields = difference(fields, removed)
            if fields:
                left[manager] = owned.with_fields(fields)
        if conflicts and not force:
            raise ApplyConflictError(conflicts)
        return left

    def compared_in(self, live: Document, new: Document, version: str) -> Comparison:
        """How it differs in another version; `UnknownVersionError` if that is not served."""
        found = compare(
            self._versions.type_of(version),
            self._versions.convert(live, version),
            self._versions.convert(new, version),
        )
        return found.without(self._ignored)

    # --- removal of fields that are no longer applied ---

    def _pruned(
        self, merged: Document, owners: ManagedFields, last: Ownership | None, applied: Ownership
    ) -> Document:
        if last is None or not last.fields:
            return merged
        if last.api_version == applied.api_version and not difference(last.fields, applied.fields):
            return merged  # all of it is applied again
        version = last.api_version
        try:
            whole = self._versions.convert(merged, version)
            type_ = self._versions.type_of(version)
        except UnknownVersionError:
            return merged
        gone = with_named_fields(type_, last.fields)
        pruned = self._with_owned(whole, remove_items(type_, whole, gone) or {}, version, owners)
        pruned = self._with_unowned(whole, pruned, type_, gone)
        return self._versions.convert(pruned, self._api_version)

    def _with_owned(
        self, whole: Document, pruned: Document, version: str, owners: ManagedFields
    ) -> Document:
        """Restores removed fields that a manager owns, including the applier's new configuration."""
        owned_in: dict[str, FieldSet] = {}
        # First in the version that is pruned: conversion may need its owned fields.
        for owned in sorted(owners.values(), key=lambda owned: owned.api_version != version):
            found = owned_in.get(owned.api_version, {})
            owned_in[owned.api_version] = union(found, owned.fields)
        at = version
        for other, fields in owned_in.items():
            try:
                type_ = self._versions.type_of(other)
                if other != at:
                    whole, pruned = (
                        self._versions.convert(each, other) for each in (whole, pruned)
                    )
                    at = other
            except UnknownVersionError:
                continue
            all_fields = with_named_fields(type_, field_set(type_, whole))
            kept = union(
                with_named_fields(type_, field_set(type_, pruned)),
                with_named_fields(type_, fields),
            )
            pruned = remove_items(type_, whole, difference(all_fields, kept)) or {}
        return self._versions.convert(pruned, version) if at != version else pruned

    def _with_unowned(
        self, whole: Document, pruned: Document, type_: ValueType, gone: FieldSet
    ) -> Document:
        """Removes only fields that the applier owned; fields below them without an owner stay."""
        all_fields = with_named_fields(type_, field_set(type_, whole))
        kept = with_named_fields(type_, field_set(type_, pruned))
        removed: Document | None = remove_items(
            type_, whole, intersection(difference(all_fields, kept), gone)
        )
        return removed or {}

    def reconciled(self, owners: ManagedFields) -> dict[Manager, Ownership]:
        """Owners of a part of a value that is atomic now own the whole value."""
        found = {}
        for manager, owned in owners.items():
            try:
                type_ = self._versions.type_of(owned.api_version)
            except UnknownVersionError:
                found[manager] = owned
                continue
            found[manager] = owned.with_fields(reconciled(type_, owned.fields))
        return found
