"""Objects of kinds that allot does not type in full: every field they came with is kept.

A `RawObject` is read through views and changed by copying along a path, so that unknown fields survive
every read-modify-write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Self, TypeVar

import msgspec

from allot.api.base import ApiObject, replace
from allot.api.decoding import DecodeError, from_value, to_builtin
from allot.api.identities import GroupVersionKind, ObjectKey
from allot.api.lazy import lazy
from allot.api.meta import ObjectMeta
from allot.api.times import read_time

T = TypeVar("T")


_METADATA_FIELDS: Final = frozenset(ObjectMeta.__struct_encode_fields__)
_METADATA_LISTS: Final = ("finalizers", "ownerReferences")


class OpenObject(ApiObject, frozen=True):
    """A part of a larger type: unknown fields are not errors."""

    __open__ = True


class RawObject:
    """A whole object as decoded JSON. Treat `data` as frozen: it is shared.

    An object with other metadata shares the rest with the object it comes from. Its metadata becomes JSON when `data`
    is first asked for: a write changes metadata several times, and is encoded once.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.rest = data
        """Everything but the metadata, which may be that of another object. Asking for it costs nothing."""

    @lazy
    def data(self) -> Mapping[str, Any]:
        """The whole object."""
        known = _metadata_json(self.metadata)
        for name, value in (self.rest.get("metadata") or {}).items():
            if name not in _METADATA_FIELDS:
                known[name] = value
        return {**self.rest, "metadata": known}

    @classmethod
    def with_rest(cls, rest: Mapping[str, Any], metadata: ObjectMeta) -> Self:
        """An object with this metadata. Of that in `rest` only fields that `ObjectMeta` does not have count."""
        made = cls(rest)
        made.metadata = metadata
        del made.data
        return made

    @classmethod
    def from_json(cls, body: bytes) -> Self:
        """The object in `body`; `DecodeError` if it is not a JSON object."""
        return cls(read_document(body))

    def to_json(self) -> bytes:
        return msgspec.json.encode(self.data)

    def get(self, *path: str | int, default: Any = None) -> Any:
        """The value at a path; `default` if it is missing or null."""
        value: Any = self.data if not path or path[0] == "metadata" else self.rest
        for part in path:
            if value.__class__ is dict:  # mostly; an exception takes longer than all the rest
                value = value.get(part)
                continue
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return default
        return default if value is None else value

    def with_value(self, value: Any, *path: str) -> Self:
        """A copy with `value` at the path; None removes what is there. All else is shared."""
        if path[0] == "metadata":
            return type(self)(_with_value(self.data, value, path))
        is_whole = "data" in self.__dict__
        data = self.data if is_whole else self.rest
        if value is not None and not path[1:]:
            copy = type(self)({**data, path[0]: value})
        else:
            copy = type(self)(_with_value(data, value, path))
        if not is_whole:
            del copy.data
        if "metadata" in self.__dict__:
            copy.__dict__["metadata"] = self.metadata
        return copy

    def with_parts(self, parts: Mapping[str, Any], metadata: ObjectMeta | None = None) -> Self:
        """A copy with these top-level fields, and with this metadata if it is given. All else is shared."""
        is_whole = metadata is None and "data" in self.__dict__
        copy = type(self)({**(self.data if is_whole else self.rest), **parts})
        if not is_whole:
            del copy.data
        if metadata is not None:
            copy.__dict__["metadata"] = metadata
        elif "metadata" in self.__dict__:
            copy.__dict__["metadata"] = self.metadata
        return copy

    def with_missing(self, values: Mapping[str, Any]) -> Self:
        """A copy with these values of top-level fields that it does not have. All else is shared."""
        copy = type(self)({**values, **self.rest})
        copy.__dict__["metadata"] = self.metadata
        del copy.data
        return copy

    def read(self, cls: type[T], *path: str | int) -> T:
        """The typed view of a part; empty if the part is missing or of another shape."""
        return _view(self.get(*path), cls)

    def __eq__(self, other: object) -> bool:
        return self.data == other.data if isinstance(other, RawObject) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kind} {self.key})"

    # --- what every kind has ---

    @property
    def kind(self) -> str:
        return str(self.get("kind", default=""))

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind.parse(f"{self.get('apiVersion', default='')}/{self.kind}")

    @lazy
    def metadata(self) -> ObjectMeta:
        return _view(self.data.get("metadata"), ObjectMeta)

    @lazy
    def key(self) -> ObjectKey:
        return object_key(self.data)

    def _conditions(self) -> Sequence[dict[str, Any]]:
        status = self.rest.get("status")
        return (status.get("conditions") if status.__class__ is dict else None) or ()

    def condition(self, type_: str) -> dict[str, Any] | None:
        """The condition of a type in the status; None if it is not set."""
        found: dict[str, Any]
        for found in self._conditions():
            if found.get("type") == type_:
                return found
        return None

    def has_condition(self, type_: str) -> bool:
        """Whether a condition is True."""
        for found in self._conditions():
            if found.get("type") == type_:
                return bool(found.get("status") == "True")
        return False

    def true_since(self, type_: str) -> datetime | None:
        """When a condition became True; None if it is not, or does not say when."""
        found = self.condition(type_)
        if found is None or found.get("status") != "True":
            return None
        return read_time(found.get("lastTransitionTime"))

    def with_metadata(self, metadata: ObjectMeta) -> Self:
        """A copy with other metadata; unknown fields of the metadata stay."""
        copy = object.__new__(self.__class__)
        # With the views of other parts, too; that of the metadata is the same as if it is read again.
        views = copy.__dict__ = {**self.__dict__, "metadata": metadata}
        if "data" in views:
            views.pop("data")
        if "key" in views:
            views.pop("key")
        return copy

    def stored_metadata(self) -> ObjectMeta | Mapping[str, Any]:
        """What encodes as the metadata of `data`, without its resourceVersion."""
        is_changed = "data" not in self.__dict__
        if is_changed and (self.rest.get("metadata") or {}).keys() <= _METADATA_FIELDS:
            metadata = self.metadata
            return replace(metadata, resource_version="") if metadata.resource_version else metadata
        found: Mapping[str, Any] = self.data.get("metadata", {})
        if "resourceVersion" not in found:
            return found
        return {name: value for name, value in found.items() if name != "resourceVersion"}


def _view(value: Any, cls: type[T]) -> T:
    if value is None:
        return cls()
    try:
        return msgspec.convert(value, cls, dec_hook=from_value)
    except msgspec.ValidationError:
        return cls()


def _metadata_json(metadata: ObjectMeta) -> dict[str, Any]:
    """The metadata as JSON values. Entries of managedFields are shared: they are most of it."""
    entries = metadata.managed_fields
    if entries:
        metadata = replace(metadata, managed_fields=())
    known: dict[str, Any] = msgspec.to_builtins(metadata, enc_hook=to_builtin, str_keys=True)
    for name in _METADATA_LISTS:
        if name in known:
            known[name] = list(known[name])
    if entries:
        known["managedFields"] = list(entries)
    return known


def read_document(body: bytes) -> dict[str, Any]:
    """The JSON object in `body`; `DecodeError` if it is something else."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"json: {error}") from None
    if data.__class__ is not dict:
        raise DecodeError(f"json: cannot unmarshal {type(data).__name__} into an object")
    return data


def object_key(data: Mapping[str, Any]) -> ObjectKey:
    """The key of a decoded object; reads nothing but its namespace and name."""
    metadata = data.get("metadata") or {}
    return ObjectKey(metadata.get("namespace") or "", metadata.get("name") or "")


def _with_value(data: Mapping[str, Any], value: Any, path: tuple[str, ...]) -> dict[str, Any]:
    copy = owner = dict(data)
    for name in path[:-1]:
        found = owner.get(name)
        part = dict(found) if isinstance(found, dict) else {}
        owner[name] = part
        owner = part
    if value is None:
        owner.pop(path[-1], None)
    else:
        owner[path[-1]] = value
    return copy
