"""Managers and the fields they own: the entries of `metadata.managedFields`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from allot.api.base import replace
from allot.api.times import read_time
from allot.apiserver.managed_fields.field_sets import (
    FieldSet,
    FieldSetError,
    go_json,
    overlap,
    parse_fields,
    union,
)

APPLY: Final = "Apply"
UPDATE: Final = "Update"
ANCIENT_CHANGES: Final = "ancient-changes"
"""The manager that replaces the oldest updaters when there are too many."""
MAX_UPDATERS: Final = 10
_FIELDS_TYPE: Final = "FieldsV1"
_TEXTS: Final = ("manager", "operation", "apiVersion", "fieldsType", "subresource")


class InvalidEntryError(ValueError):
    """An invalid entry of managedFields."""


class Manager(msgspec.Struct, frozen=True, gc=False):
    """A manager: name, operation, version and subresource. An applier is the same in all versions."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @classmethod
    @lru_cache(1024)
    def of(cls, name: str, operation: str, api_version: str, subresource: str) -> Manager:
        version = "" if operation == APPLY else api_version
        return cls(name, operation, version, subresource)

    @property
    def identifier(self) -> str:
        """A string by which managers sort as in Kubernetes."""
        names = ("manager", "operation", "apiVersion", "subresource")
        named = zip(names, astuple(self), strict=True)
        return go_json({name: value for name, value in named if value})

    @property
    def description(self) -> str:
        """The manager as conflict messages name it."""
        text = go_json(self.name)
        if self.subresource:
            text += f" with subresource {go_json(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class Ownership(msgspec.Struct, frozen=True):
    """The fields that a manager owns, in the version it wrote."""

    fields: FieldSet
    api_version: str
    applied: bool
    time: str | None = None
    entry: dict[str, Any] | None = None
    """The serialized entry, if it has not changed since it was read."""

    def at(self, time: str) -> Ownership:
        """The same ownership at another time; itself if it is the same."""
        if time == self.time:
            return self
        entry = {**self.entry, "time": time} if self.entry and self.time else None
        return replace(self, time=time, entry=entry)

    def with_fields(self, fields: FieldSet) -> Ownership:
        """The same manager's ownership of other fields; itself if they are the same."""
        return self if fields is self.fields else replace(self, fields=fields, entry=None)


ManagedFields = Mapping[Manager, Ownership]


def is_reset(entries: Sequence[Mapping[str, Any]]) -> bool:
    """A single empty entry, with which a client resets managedFields."""
    return len(entries) == 1 and not any(entries[0].values())


def decode(entries: Iterable[dict[str, Any]]) -> dict[Manager, Ownership]:
    """The owners in `metadata.managedFields`; `InvalidEntryError` if an entry is invalid."""
    found = {}
    for index, entry in enumerate(entries):
        _check_types(entry)
        operation, version = entry.get("operation"), entry.get("apiVersion")
        if operation not in (APPLY, UPDATE):
            raise InvalidEntryError("operation must be `Apply` or `Update`")
        if not version:
            raise InvalidEntryError("apiVersion must not be empty")
        if entry.get("fieldsType") != _FIELDS_TYPE:
            raise InvalidEntryError(f"invalid fieldsType in managed fields entry {index}")
        try:
            fields = parse_fields(entry.get("fieldsV1") or {})
        except FieldSetError as error:
            raise InvalidEntryError(f"error decoding FieldsV1: {error}") from None
        manager, owned = _read(entry)
        found[manager] = replace(owned, fields=fields, entry=None)
    return found


def _check_types(entry: Mapping[str, Any]) -> None:
    """Raises `InvalidEntryError`: typed kinds do not look into entries when they are read."""
    for name in _TEXTS:
        if not isinstance(entry.get(name), str | None):
            raise InvalidEntryError(f"{name} must be a string")
    if (time := entry.get("time")) is not None and read_time(time) is None:
        raise InvalidEntryError("time must be a time")


def decode_stored(entries: Iterable[dict[str, Any]]) -> dict[Manager, Ownership]:
    """The owners in entries that `encode` wrote."""
    return dict(map(_read, entries))


def _read(entry: dict[str, Any]) -> tuple[Manager, Ownership]:
    operation, version = entry["operation"], entry["apiVersion"]
    is_apply = operation == APPLY
    name, part = entry.get("manager") or "", entry.get("subresource") or ""
    manager = Manager(name, operation, "" if is_apply else version, part)
    fields = entry.get("fieldsV1") or {}
    return manager, Ownership(fields, version, is_apply, entry.get("time"), entry)


def encode(owners: ManagedFields) -> list[dict[str, Any]]:
    """Entries for `metadata.managedFields`."""
    return in_order([owned.entry or _entry(manager, owned) for manager, owned in owners.items()])


def new_entry(
    name: str,
    operation: str,
    api_version: str,
    subresource: str,
    fields: FieldSet,
    time: str | None,
) -> dict[str, Any]:
    """The entry of a manager who owns these fields, which are in wire order."""
    entry: dict[str, Any] = {
        "manager": name,
        "operation": operation,
        "apiVersion": api_version,
        "time": time,
        "fieldsType": _FIELDS_TYPE,
        "fieldsV1": fields,
    }
    if not name:
        del entry["manager"]
    if not time:
        del entry["time"]
    if subresource:
        entry["subresource"] = subresource
    return entry


def _entry(manager: Manager, owned: Ownership) -> dict[str, Any]:
    name, operation, _, subresource = astuple(manager)
    return new_entry(name, operation, owned.api_version, subresource, owned.fields, owned.time)


def are_distinct(entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each entry of one version is of another manager. A write to the scale endpoint may leave two of one manager."""
    if len(entries) < 2:
        return True
    owners = {(each.get("manager"), each["operation"], each.get("subresource")) for each in entries}
    return len(owners) == len(entries)


def with_more(
    stored: Iterable[dict[str, Any]], more: dict[str, Any]
) -> list[dict[str, Any]] | None:
    """Entries after a manager came to own the fields of an entry in addition to those it had.

    None if one of the others owns one of them, or nothing, or if they are not distinct.
    """
    fields = more["fieldsV1"]
    owner = (more.get("manager"), more["operation"], more.get("subresource"))
    entries: list[dict[str, Any]] = []
    owners = [owner]
    is_new = True
    for entry in stored:
        owned = entry.get("fieldsV1")
        if not owned:
            return None
        found = (entry.get("manager"), entry["operation"], entry.get("subresource"))
        if found == owner and is_new:
            is_new = False
            entries.append(more if owned == fields else {**more, "fieldsV1": union(owned, fields)})
        elif found in owners or overlap(owned, fields):
            return None
        else:
            entries.append(entry)
            owners.append(found)
    if is_new:
        entries.append(more)
    return in_order(entries)


def in_order(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Appliers first, then by time and name."""
    return sorted(entries, key=_order) if len(entries) > 1 else entries


def _order(entry: dict[str, Any]) -> tuple[str, float, str, str, str]:
    return (
        entry["operation"],
        seconds(entry.get("time")),
        entry.get("manager") or "",
        entry["apiVersion"],
        entry.get("subresource") or "",
    )


@lru_cache(1024)
def seconds(time: str | None) -> float:
    if not time:
        return 0
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0


def capped(owners: ManagedFields, most: int = MAX_UPDATERS) -> ManagedFields:
    """Limits the number of updaters: the oldest of each version are merged into one entry."""
    if len(owners) <= most:
        return owners
    updaters = [manager for manager, owned in owners.items() if not owned.applied]
    excess = len(updaters) - most
    if excess <= 0:
        return owners
    updaters.sort(key=lambda manager: (int(seconds(owners[manager].time)), manager.identifier))
    kept = dict(owners)
    first_by_version: dict[str, Manager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        owned = kept[manager]
        version = owned.api_version
        first = first_by_version.setdefault(version, manager)
        if first == manager:
            continue
        bucket = Manager(ANCIENT_CHANGES, UPDATE, version)
        if bucket not in kept:
            kept[bucket] = replace(kept.pop(first), entry=None)
        fields = union(owned.fields, kept[bucket].fields)
        del kept[manager]
        kept[bucket] = replace(owned, fields=fields, entry=None)
        excess -= 1
    return kept


def same_but_for_times(
    left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]
) -> bool:
    """Whether entries differ only in their times."""
    if len(left) != len(right):
        return False
    for one, other in zip(left, right, strict=True):
        if one is not other and {**one, "time": None} != {**other, "time": None}:
            return False
    return True
