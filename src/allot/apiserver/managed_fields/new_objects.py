"""The fields that the creator of an object owns.

They are remembered by what decides them: many objects are made from one template, with equal specs and metadata of
the same shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from allot.api.decoding import to_builtin
from allot.api.lazy import lazy
from allot.api.meta import ObjectMeta, OwnerReference
from allot.apiserver.managed_fields.comparison import all_new, everything
from allot.apiserver.managed_fields.field_sets import SELF, FieldSet, contains, is_plain
from allot.apiserver.managed_fields.value_types import ValueType

Document = dict[str, Any]
Shape = tuple[Any, ...]
MAX_REMEMBERED: Final = 256
"""Shapes of metadata and other parts that are remembered for one kind."""
MAX_REMEMBERED_BYTES: Final = 4096
"""Larger parts are looked at every time."""
MAX_SHAPE_LENGTH: Final = 2048
"""The names in longer ones may be anything that a client invents."""
OWNERS: Final = "ownerReferences"
_OWNERS_ELEMENT: Final = f"f:{OWNERS}"
_PLAIN_METADATA: Final = frozenset(
    (
        "name", "generateName", "namespace", "creationTimestamp", "uid", "resourceVersion",
        "generation", "selfLink",
    )
)  # fmt: skip
"""Fields of metadata whose value does not matter for who owns what."""
_encode: Final = msgspec.json.Encoder(enc_hook=to_builtin).encode


class _Names(msgspec.Struct, frozen=True):
    """What the names of an object's top-level fields say about its fields."""

    before: FieldSet
    """The fields that come before the metadata, as leaves, in wire order."""
    after: FieldSet
    """Those that come after it."""
    parts: tuple[tuple[str, ValueType, bool], ...]
    """Those whose value has to be looked at: their types, and whether they have one owner."""
    only_spec: bool
    """Whether the spec is the only one of those, and the names are short."""


class NewObjects:
    """Decides for new objects of one kind."""

    def __init__(
        self, type_: Callable[[], ValueType], empty: Document, not_owned: FieldSet
    ) -> None:
        self._type = type_
        self._empty = empty
        """An empty object of the kind."""
        self._not_owned = not_owned
        """Fields without an owner."""
        self._known_names: dict[tuple[str, ...], _Names] = {}
        self._remembered: dict[Shape, FieldSet] = {}
        """The fields of parts of new objects, by the shape of metadata and by the name and text of others."""
        self._of_owners: dict[tuple[bool, bool], FieldSet] = {}
        """The fields of an only owner, by whether it leaves out `controller` and `blockOwnerDeletion`."""
        self._last: tuple[tuple[str, ...], Any, FieldSet, FieldSet] = ((), None, {}, {})
        """The names and the spec of the last object, and its fields before and after the metadata: objects of one template share their spec, with its defaults."""

    @lazy
    def _types(self) -> Mapping[str, ValueType]:
        """The types of the parts of an object that its creator owns."""
        part = self._type().map
        assert part is not None
        return {
            name: type_
            for name, type_ in part.fields.items()
            if name == "metadata" or not contains(self._not_owned, f"f:{name}")
        }

    @lazy
    def _owner_type(self) -> ValueType | None:
        """That of ownerReferences; None if a creator does not own them."""
        metadata = self._types["metadata"].map if "metadata" in self._types else None
        if metadata is None or _OWNERS_ELEMENT in self._not_owned.get("f:metadata", {}):
            return None
        return metadata.fields.get(OWNERS)

    def fields(self, new: Document) -> FieldSet:
        """The fields that the creator of an object owns. Its metadata may be an `ObjectMeta`."""
        names = tuple(new)
        last_names, last_spec, before, after = self._last
        if names != last_names or new.get("spec") is not last_spec:
            before, after = self._all_but_metadata(names, new)
        of_metadata = self._of_metadata(new["metadata"]) if "metadata" in new else {}
        return {**before, **of_metadata, **after}

    # --- all but the metadata ---

    def _all_but_metadata(self, names: tuple[str, ...], new: Document) -> tuple[FieldSet, FieldSet]:
        """Those before and after the metadata."""
        known = self._known_names.get(names) or self._find_names(names)
        before, after, is_kept = {**known.before}, {**known.after}, known.only_spec
        fields: FieldSet
        for name, type_, is_whole in known.parts:
            value = new[name]
            if is_whole and value.__class__ is not msgspec.Raw:
                fields = {f"f:{name}": {}} if value != self._empty[name] else {}
                is_kept = False
            else:
                fields, is_small = self._of_part(name, type_, value)
                is_kept &= is_small
            found = before if name < "metadata" else after
            if fields:
                found |= fields
            else:
                del found[f"f:{name}"]
        if is_kept:
            self._last = names, new.get("spec"), before, after
        return before, after

    def _find_names(self, names: tuple[str, ...]) -> _Names:
        types = self._types
        owned = [name for name in sorted(names) if name in types and name != "metadata"]
        looked_at = tuple(
            (name, types[name], types[name].has_one_owner)
            for name in owned
            if name in self._empty or not types[name].has_one_owner
        )
        is_short = sum(map(len, names)) <= MAX_SHAPE_LENGTH
        only_spec = is_short and all(name == "spec" for name, _, _ in looked_at)
        known = _Names(
            {f"f:{name}": {} for name in owned if name < "metadata"},
            {f"f:{name}": {} for name in owned if name > "metadata"},
            looked_at,
            only_spec,
        )
        if is_short:
            if len(self._known_names) >= MAX_REMEMBERED:
                self._known_names.clear()
            self._known_names[names] = known
        return known

    def _of_part(self, name: str, type_: ValueType, value: Any) -> tuple[FieldSet, bool]:
        """Those of a part, by its text, and whether it is small."""
        encoded = bytes(value) if value.__class__ is msgspec.Raw else _encode(value)
        key = (name, encoded) if len(encoded) <= MAX_REMEMBERED_BYTES else None
        fields = self._remembered.get(key) if key is not None else None
        if fields is None:
            is_decoded = isinstance(value, dict | list)
            plain = value if is_decoded else msgspec.json.decode(encoded)
            fields = all_new({name: type_}, self._empty_part(name), {name: plain}, {})
            if key is not None:
                self._remember(key, fields)
        return fields, key is not None

    # --- metadata ---

    def _of_metadata(self, metadata: Any) -> FieldSet:
        """Those of the metadata, by its shape. Only the owners have other fields in every object."""
        owners: Any = ()
        if metadata.__class__ is ObjectMeta:
            shape, owners = shape_of(metadata), metadata.owner_references
        else:
            shape = shape_of_json(metadata)
            if metadata.__class__ is dict and OWNERS in metadata:
                owners = metadata[OWNERS]
        fields = self._remembered.get(shape) if shape is not None else None
        if fields is None:
            fields = self._find_metadata(metadata)
            if shape is not None:
                self._remember(shape, fields)
        if not owners or (owner_type := self._owner_type) is None:
            return fields
        if metadata.__class__ is not ObjectMeta:
            of_owners = _fields_of_owners(owner_type, owners)
        elif len(owners) == 1:
            of_owners = self._of_owner(owner_type, owners[0])
        else:
            of_owners = everything(owner_type, [msgspec.to_builtins(owner) for owner in owners])
        return {"f:metadata": {**fields["f:metadata"], _OWNERS_ELEMENT: of_owners}}

    def _of_owner(self, type_: ValueType, owner: OwnerReference) -> FieldSet:
        """Those of the only owner, whose other fields are always written."""
        if not is_plain(owner.uid):
            return _fields_of_owners(type_, [msgspec.to_builtins(owner)])
        element = f'k:{{"uid":"{owner.uid}"}}'
        names = (owner.controller is None, owner.block_owner_deletion is None)
        known = self._of_owners.get(names)
        if known is not None:
            return {SELF: {}, element: known}
        fields = _fields_of_owners(type_, [msgspec.to_builtins(owner)])
        if element in fields:
            self._of_owners[names] = fields[element]
        return fields

    def _find_metadata(self, metadata: Any) -> FieldSet:
        """Those of the metadata, without any below the owners."""
        if metadata.__class__ is ObjectMeta:
            metadata = msgspec.json.decode(_encode(metadata))
        type_ = self._types.get("metadata")
        if type_ is None:
            return {}
        if self._owner_type is not None and metadata.__class__ is dict and metadata.get(OWNERS):
            metadata = {**metadata, OWNERS: []}
        was = self._empty_part("metadata")
        return all_new({"metadata": type_}, was, {"metadata": metadata}, self._not_owned)

    def _empty_part(self, name: str) -> Document:
        return {name: self._empty[name]} if name in self._empty else {}

    def _remember(self, key: Shape, fields: FieldSet) -> None:
        if len(self._remembered) >= MAX_REMEMBERED:
            self._remembered.clear()
        self._remembered[key] = fields


def shape_of(metadata: ObjectMeta) -> Shape | None:
    """What decides which fields of an object's metadata are owned, but for the owners; None if values matter too, or for many names."""
    if metadata.finalizers or metadata.deletion_grace_period_seconds is not None:
        return None
    shape: Shape = tuple(map(bool, astuple(metadata)))  # what is empty is not written
    labels, annotations = metadata.labels, metadata.annotations
    if labels or annotations:
        if sum(map(len, labels)) + sum(map(len, annotations)) > MAX_SHAPE_LENGTH:
            return None
        shape += (tuple(labels), tuple(annotations))
    return shape


def shape_of_json(metadata: Any) -> Shape | None:
    """The same for JSON: the names in it."""
    if metadata.__class__ is not dict:
        return None
    shape: Shape = tuple(metadata)
    for name, value in metadata.items():
        if name in _PLAIN_METADATA:
            if value is None:
                shape += ((name, None),)
        elif name in ("labels", "annotations") and value.__class__ is dict:
            if sum(map(len, value)) > MAX_SHAPE_LENGTH:
                return None
            shape += ((name, *value),)
        elif name != OWNERS or not value:
            return None
    return shape


def _fields_of_owners(type_: ValueType, owners: Any) -> FieldSet:
    """The fields of ownerReferences. Those of one owner differ in its uid only."""
    part = type_.list
    if part is None or part.keys != ("uid",) or owners.__class__ is not list:
        return everything(type_, owners)
    owner, *others = owners
    if others or owner.__class__ is not dict:
        return everything(type_, owners)
    uid = owner.get("uid")
    if uid.__class__ is not str or not is_plain(uid):
        return everything(type_, owners)
    return {SELF: {}, f'k:{{"uid":"{uid}"}}': everything(part.element, owner)}
