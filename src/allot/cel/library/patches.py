"""What mutating admission policies construct: `Object{...}` for apply configurations, `JSONPatch{...}`, escaped keys.

Fields of an `Object` may have any name and any type: they are checked when the configuration is applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.cel import types
from allot.cel.declarations import function, overload
from allot.cel.environment import MessageType
from allot.cel.types import Type, TypeKind
from allot.cel.values import Value, register_class

OBJECT: Final = "Object"
OBJECT_TYPE: Final = Type(TypeKind.STRUCT, OBJECT)
JSON_PATCH: Final = Type(TypeKind.STRUCT, "JSONPatch")


class ObjectValue:
    """A constructed part of an apply configuration."""

    __slots__ = ("fields", "type_name")

    def __init__(self, type_name: str, fields: Mapping[str, Value]) -> None:
        self.type_name = type_name
        """`Object`, or `Object.` and the path of the field that it is for."""
        self.fields = fields


class JsonPatchValue:
    """One operation of a JSON patch."""

    __slots__ = ("fields",)

    def __init__(self, fields: Mapping[str, Value]) -> None:
        self.fields = fields


register_class(ObjectValue, OBJECT_TYPE, "*dynamic.ObjectVal")
register_class(JsonPatchValue, JSON_PATCH, "*mutation.JSONPatchVal")


class _EveryField(Mapping[str, Type]):
    """Fields that are all declared, with one type."""

    def __init__(self, type_: Type, known: Mapping[str, Type] | None = None) -> None:
        self._type = type_
        self._known = known or {}

    def __getitem__(self, name: str) -> Type:
        return self._known.get(name, self._type)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


_NOTHING: Final = Type(TypeKind.STRUCT, "")
"""The type of fields that do not exist."""
_JSON_PATCH_FIELDS: Final = _EveryField(
    _NOTHING,
    {"op": types.STRING, "path": types.STRING, "from": types.STRING, "value": types.DYN},
)
_ANY_FIELDS: Final = _EveryField(types.DYN)


class PatchMessages(Mapping[str, MessageType]):
    """The messages of an environment, and those of patches: every name that begins with `Object`."""

    def __init__(self, messages: Mapping[str, MessageType]) -> None:
        self._messages = {
            **messages,
            JSON_PATCH.name: MessageType(JSON_PATCH, _JSON_PATCH_FIELDS, JsonPatchValue),
        }

    def __getitem__(self, name: str) -> MessageType:
        found = self._messages.get(name)
        if found is not None:
            return found
        if name == OBJECT or name.startswith(f"{OBJECT}."):
            return MessageType(
                Type(TypeKind.STRUCT, name), _ANY_FIELDS, lambda fields: ObjectValue(name, fields)
            )
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)


def _escape_key(key: Any) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


FUNCTIONS: Final = (
    function(
        "jsonpatch.escapeKey",
        overload("string_jsonpatch_escapeKey_string", "(string) -> string", _escape_key),
    ),
)
