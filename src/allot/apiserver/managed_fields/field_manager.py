"""`metadata.managedFields` of an object after a write, as kube-apiserver keeps it.

An update is any write but an apply: create, replace, the other patches. Fields that it changes are owned by
its manager alone from then on. An apply owns the fields it sends; fields that it owned and no longer sends
are removed unless others own them, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from allot.api.base import replace
from allot.apiserver.managed_fields import managers
from allot.apiserver.managed_fields.comparison import Comparison, same_value
from allot.apiserver.managed_fields.field_sets import (
    FieldSet,
    difference,
    from_paths,
    overlap,
    union,
)
from allot.apiserver.managed_fields.last_applied import last_applied_fields, with_last_applied
from allot.apiserver.managed_fields.managers import (
    APPLY,
    UPDATE,
    InvalidEntryError,
    ManagedFields,
    Manager,
    Ownership,
)
from allot.apiserver.managed_fields.merging import merge
from allot.apiserver.managed_fields.new_objects import NewObjects
from allot.apiserver.managed_fields.updated_objects import (
    Differences,
    UpdatedDocument,
    UpdatedObject,
)
from allot.apiserver.managed_fields.updater import (
    Applied,
    ApplyConflictError,
    ComparedIn,
    Document,
    Updater,
    Versions,
)
from allot.apiserver.managed_fields.validation import fits, type_problems

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""The manager of fields written before managers were tracked."""
KUBECTL: Final = "kubectl"
"""The manager that takes over from client-side apply."""
MAX_MANAGER_BYTES: Final = 128
UNKNOWN: Final = "unknown"

_SERVER_FIELDS: Final = from_paths(
    ("apiVersion",),
    ("kind",),
    ("metadata",),
    *(
        ("metadata", name)
        for name in (
            "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName",
            "generation", "managedFields", "resourceVersion",
        )
    ),
)  # fmt: skip
"""Fields of every object that no manager owns."""
_NAMES: Final = frozenset(("name", "namespace", "uid"))
"""Fields of metadata that say which object an applied configuration is for."""

Entries = Sequence[dict[str, Any]]


class ApplyError(Exception):
    """An invalid applied configuration, with the status code of the response."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Merged(NamedTuple):
    """The result of an apply: the object without managedFields, and its entries.

    `changed` is false if the object is unchanged.
    """

    document: Document
    entries: list[dict[str, Any]]
    changed: bool


@lru_cache(1024)
def manager_name(field_manager: str, user_agent: str) -> str:
    """The manager of a request: `fieldManager`, or the first word of its User-Agent."""
    if field_manager:
        return field_manager
    name = ""
    for character in user_agent.partition("/")[0]:
        if character.isprintable():
            if len((name + character).encode()) > MAX_MANAGER_BYTES:
                break
            name += character
    return name


class FieldManager:
    """Keeps managedFields of one kind, for writes at one endpoint in one version.

    Documents are passed without managedFields, which are a separate argument.
    """

    def __init__(
        self,
        versions: Versions,
        api_version: str,
        kind: str,
        empty: Document,
        *,
        subresource: str = "",
        ignored: FieldSet | None = None,
        schema_changes: bool = False,
    ) -> None:
        self._versions = versions
        self._api_version = api_version
        self._kind = kind
        self._empty = empty
        """An empty object of the kind, as the server serializes it."""
        self._empty_parts = {name: each for name, each in empty.items() if name != "metadata"}
        self._subresource = subresource
        self._schema_changes = schema_changes
        """Whether fields that are atomic now may have been granular when managers were stored."""
        self._updater = updater = Updater(versions, api_version, ignored or {})
        not_owned = union(_SERVER_FIELDS, ignored or {})
        self._new_objects = NewObjects(lambda: updater.type, empty, not_owned)
        self._differences = Differences(
            self._compared,
            frozenset(
                element.removeprefix("f:")
                for element, below in (ignored or {}).items()
                if not below
            ),
            lambda: updater.type,
        )

    # --- update ---

    def created(self, new: Document, sent: Entries, manager: str, now: str) -> list[dict[str, Any]]:
        """The entries of a new object, which may have been sent with entries. Without, its metadata may be an `ObjectMeta`."""
        if sent:
            updated = UpdatedDocument(self._empty, new)
            return self.updated(updated, (), sent, manager, now, is_new=True)
        fields = self._new_objects.fields(new)
        if not fields:
            return []
        name, version, part = manager or UNKNOWN, self._api_version, self._subresource
        return [managers.new_entry(name, UPDATE, version, part, fields, now)]

    def updated(
        self,
        updated: UpdatedObject,
        known: Entries,
        sent: Entries,
        manager: str,
        now: str,
        *,
        is_new: bool = False,
    ) -> list[dict[str, Any]]:
        """The entries of an object after an update, from the stored entries and those that were sent."""
        edited = self._edited_owners(known, sent)
        if edited is None and self._can_stay(known):
            return self._after_plain_update(
                known, updated.compared(self._differences), manager, now
            )
        owners = self._stored_owners(known) if edited is None else edited
        if not owners and not is_new:
            return []  # created before managers were tracked
        if {owned.api_version for owned in owners.values()} <= {self._api_version}:
            comparison = updated.compared(self._differences)
            left = self._with_changes(comparison, owners, manager, now)
        else:
            live, new = self._both_completed(*updated.whole())
            left = self._after_update(live, new, owners, manager, now)
        return managers.encode(managers.capped(left))

    def _can_stay(self, entries: Entries) -> bool:
        """Whether there are entries, all in the version that is written and of the schema as it is now."""
        version = self._api_version
        for entry in entries:
            if entry["apiVersion"] != version:
                return False
        return bool(entries) and not self._schema_changes

    def _after_plain_update(
        self, known: Entries, comparison: Comparison, name: str, now: str
    ) -> list[dict[str, Any]]:
        """The entries after an update, from stored entries in the version that is written."""
        changed = comparison.changed
        if (
            changed
            and not comparison.removed
            and len(known) < managers.MAX_UPDATERS
            and not overlap(changed, _SERVER_FIELDS)
        ):
            entries = managers.with_more(known, self._new_entry(name, UPDATE, changed, now))
            if entries is not None:
                return entries
        left = self._with_changes(comparison, managers.decode_stored(known), name, now)
        return managers.encode(managers.capped(left))

    def _compared(self, live: Document, new: Document) -> Comparison:
        if live == {name: self._empty.get(name) for name in new}:
            return self._updater.filled(live, _completed(new, live))
        return self._updater.compared(*self._both_completed(live, new))

    def _both_completed(self, live: Document, new: Document) -> tuple[Document, Document]:
        # Parts that neither has do not differ: they need not be completed.
        empty = {name: self._empty[name] for name in self._empty if name in live or name in new}
        return _completed(live, empty), _completed(new, empty)

    def _after_update(
        self, live: Document, new: Document, owners: ManagedFields, name: str, now: str
    ) -> ManagedFields:
        comparison = self._updater.compared(live, new)
        compared_in = partial(self._updater.compared_in, live, new)
        return self._with_changes(comparison, owners, name, now, compared_in)

    def _with_changes(
        self,
        comparison: Comparison,
        owners: ManagedFields,
        name: str,
        now: str,
        compared_in: ComparedIn | None = None,
    ) -> ManagedFields:
        """The owners after an update; `compared_in` is for those that wrote another version."""
        manager = self._manager(name, UPDATE)
        left, changed = self._updater.update(comparison, owners, manager, compared_in)
        taken = difference(changed, _SERVER_FIELDS)
        previous = left.get(manager)
        if taken is not changed and previous is not None:
            # Fields of the server have no owner, whatever a client has said.
            fields = difference(previous.fields, changed)
            if fields or taken:
                previous = left[manager] = previous.with_fields(fields)
            else:
                del left[manager]
        if not taken:
            return left
        if previous is None:
            left[manager] = Ownership(taken, self._api_version, False, now)
        else:
            left[manager] = previous.with_fields(union(previous.fields, taken)).at(now)
        return left

    def _edited_owners(self, live: Entries, new: Entries) -> ManagedFields | None:
        """The owners that an update sets: clients may edit or reset entries. None if it keeps those that are stored."""
        if not self._subresource and new and new != live:
            if managers.is_reset(new):
                return {}
            owners = _decoded(new)
            if owners:
                return self._updater.reconciled(owners)
        return None

    def _stored_owners(self, entries: Entries) -> ManagedFields:
        owners = managers.decode_stored(entries)
        return self._updater.reconciled(owners) if self._schema_changes else owners

    def _whole(self, document: Document) -> Document:
        """The object as Go serializes it: with empty structs."""
        return _completed(document, self._empty)

    def _new_entry(
        self, name: str, operation: str, fields: FieldSet, time: str | None
    ) -> dict[str, Any]:
        return managers.new_entry(
            name or UNKNOWN, operation, self._api_version, self._subresource, fields, time
        )

    def _manager(self, name: str, operation: str) -> Manager:
        return Manager.of(name or UNKNOWN, operation, self._api_version, self._subresource)

    # --- apply ---

    def applied(
        self,
        live: Document | None,
        known: Entries,
        config: Document,
        manager: str,
        now: str,
        *,
        force: bool,
    ) -> Merged:
        """Applies a configuration to an object with these entries, or creates it. Raises `ApplyConflictError` and `ApplyError`."""
        self._check(config)
        owners = self._stored_owners(known)
        base = self._whole(live) if live is not None else self._empty
        if not owners and live is not None:
            owners = self._after_update(self._empty, base, owners, BEFORE_FIRST_APPLY, now)
        applier = self._manager(manager, APPLY)
        last = owners.get(applier)
        parts = config
        if (
            base.get("apiVersion") == self._api_version
            and base.get("kind") == self._kind
            and (last is None or _SERVER_FIELDS.keys().isdisjoint(last.fields))
        ):
            parts = _parts_of(config, base.get("metadata"))
        outcome = self._forced_where_allowed(base, parts, owners, applier, force)
        changed = outcome.document is not None
        left = dict(outcome.owners)
        if applier in left:
            mine = left[applier]
            fields = difference(mine.fields, _SERVER_FIELDS)
            if fields:
                time = now if changed or live is None else mine.time
                left[applier] = replace(mine, fields=fields, time=time, entry=None)
            else:
                del left[applier]
        document = base if outcome.document is None else outcome.document
        if manager == KUBECTL:
            document = with_last_applied(document, config)
        return Merged(document, managers.encode(left), changed)

    def applied_alone(
        self,
        live: Document,
        named: Mapping[str, str],
        known: Entries,
        config: Document,
        manager: str,
        now: str,
    ) -> Merged | None:
        """The same without metadata, of which `named` says which object it is.

        None unless the manager is new, what it applies has an effect, and no other owns anything in the same top-level fields.
        """
        if (config.get("apiVersion"), config.get("kind")) != (self._api_version, self._kind):
            return None
        parts = _parts_of(config, named)
        elements = {f"f:{name}" for name in parts}
        if parts is config or not self._is_alone(known, elements, manager):
            return None
        fields = self._updater.valid_fields(parts)
        if not fields:
            return None
        base = _completed(live, self._empty_parts)
        document = merge(self._updater.type, base, parts)
        if same_value(base, document):
            return None
        mine = self._new_entry(manager, APPLY, fields, now)
        return Merged(document, managers.in_order([*known, mine]), True)

    def with_applier(
        self, known: Entries, fields: FieldSet, manager: str, now: str
    ) -> list[dict[str, Any]] | None:
        """The entries after a new manager applied these fields; None if another owns anything in the same top-level fields, or it is not new."""
        if not self._is_alone(known, fields.keys(), manager):
            return None
        return managers.in_order([*known, self._new_entry(manager, APPLY, fields, now)])

    def fields_of(self, config: Document) -> FieldSet | None:
        """The fields that a manager owns who applies this; None unless it certainly is valid."""
        return self._updater.valid_fields(config)

    def _is_alone(self, known: Entries, elements: AbstractSet[str], manager: str) -> bool:
        """Whether the manager is new, and no other owns anything in these top-level fields."""
        if manager == KUBECTL or not self._can_stay(known):
            return False
        for entry in known:
            fields = entry.get("fieldsV1")
            is_own = entry["operation"] == APPLY and entry.get("manager") == manager
            if is_own or not fields or not elements.isdisjoint(fields):
                return False
        return managers.are_distinct(known)

    def _forced_where_allowed(
        self, live: Document, config: Document, owners: ManagedFields, manager: Manager, force: bool
    ) -> Applied:
        """kubectl's server-side apply may take over fields that client-side apply wrote."""
        try:
            return self._updater.apply(live, config, owners, manager, force)
        except ApplyConflictError as conflicts:
            if manager.name != KUBECTL:
                raise
            allowed = last_applied_fields(live, self._api_version, self._updater.type)
            if allowed is None:
                raise
            left = conflicts.without(allowed)
            if left.fields_by_manager:
                raise left from None
        return self._updater.apply(live, config, owners, manager, True)

    def _check(self, config: Document) -> None:
        version, kind = config.get("apiVersion"), config.get("kind")
        if (version, kind) != (self._api_version, self._kind):
            version = version if isinstance(version, str) else ""
            kind = kind if isinstance(kind, str) else ""
            group, slash, name = version.rpartition("/")
            shown = f"{group}/{name}" if slash or version else "/"
            raise ApplyError(400, f"invalid object type: {shown}, Kind={kind}")
        metadata = config.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise ApplyError(400, "metadata.managedFields must be nil")
        type_ = self._updater.type
        problems = [] if fits(type_, config) else list(type_problems(type_, config))
        if problems:
            text = problems[0] if len(problems) == 1 else "errors:\n  " + "\n  ".join(problems)
            described = object_description(config)
            raise ApplyError(500, f"failed to create typed patch object ({described}): {text}")


def _parts_of(config: Document, known: Any) -> Document:
    """The applied configuration without what only says which object it is for: no manager owns that.

    All of it if its metadata says more, or something else than what is known.
    """
    metadata = config.get("metadata")
    if not (
        metadata.__class__ is known.__class__ is dict
        and metadata.keys() <= _NAMES
        and metadata.items() <= known.items()
    ):
        return config
    parts = {**config}
    del parts["apiVersion"], parts["kind"], parts["metadata"]
    return parts


def object_description(config: Document) -> str:
    """The object of an applied configuration, as messages name it: `NAMESPACE/NAME; GVK`."""
    metadata = config.get("metadata")
    place = metadata if isinstance(metadata, dict) else {}
    namespace, name = (
        value if isinstance(value, str) else ""
        for value in (place.get("namespace"), place.get("name"))
    )
    version = str(config.get("apiVersion", ""))
    shown = version if "/" in version else f"/{version}"
    group, _, bare = shown.rpartition("/")
    return f"{namespace}/{name}; {group}/{bare}, Kind={config.get('kind', '')}"


def _completed(document: Document, empty: Document) -> Document:
    missing: Document = {}
    for name, value in empty.items():
        found = document.get(name)
        if found is None:
            missing[name] = value
        elif value and value.__class__ is dict and found.__class__ is dict:
            whole = _completed(found, value)
            if whole is not found:
                missing[name] = whole
    return {**document, **missing} if missing else document


def _decoded(entries: Entries) -> ManagedFields:
    try:
        return managers.decode(entries)
    except InvalidEntryError:
        return {}
