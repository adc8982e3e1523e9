"""Schemas as types of CEL: what `self` is in a validation rule, and how large it can be.

Sizes without a bound are those of the largest request, as the real server assumes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from allot.cel import types
from allot.cel.environment import MessageType
from allot.cel.sizes import Range
from allot.cel.types import Type, TypeKind
from allot.validation.structural.schemas import UNSET, Schema

MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024
_MIN_TEXT, _MIN_BOOL, _MIN_NUMBER = 2, 4, 1
_MIN_DURATION, _DATE, _MIN_TIME = 4, 12, 21
_MAX_TEXT_BY_FORMAT: Final = {"duration": 30, "date": 10, "date-time": 35}
_BYTES_PER_CHARACTER: Final = 4

RESERVED: Final = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
        "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip
_is_accessible: Final = re.compile(r"[A-Za-z_.\-/$][A-Za-z0-9_.\-/$]*").fullmatch
_ESCAPES: Final = {
    "__": "__underscores__",
    ".": "__dot__",
    "-": "__dash__",
    "/": "__slash__",
    "$": "__dollar__",
}
_to_escape: Final = re.compile(r"__|\.|-|/|\$")


def escaped(name: str) -> str | None:
    """The name of a field in CEL; None if it cannot be accessed."""
    if name in RESERVED:
        return f"__{name}__"
    if not _is_accessible(name):
        return None
    return _to_escape.sub(lambda found: _ESCAPES[found[0]], name)


class DeclaredType:
    """A type with the sizes that cost estimates need."""

    __slots__ = ("element", "fields", "key", "max_elements", "min_size", "type")

    def __init__(
        self,
        type_: Type,
        min_size: int,
        max_elements: int = 0,
        *,
        element: DeclaredType | None = None,
        key: DeclaredType | None = None,
        fields: Mapping[str, DeclaredType] | None = None,
    ) -> None:
        self.type = type_
        self.min_size = min_size
        """The fewest bytes of JSON."""
        self.max_elements = max_elements
        self.element = element
        self.key = key
        self.fields = fields or {}


_KEY: Final = DeclaredType(types.STRING, _MIN_TEXT)
_TEXT: Final = DeclaredType(types.STRING, _MIN_TEXT, MAX_REQUEST_BYTES - 2)


class Declarations:
    """The types of a schema and all below it; object types have made-up names."""

    def __init__(self, root: Schema) -> None:
        self.messages: dict[str, MessageType] = {}
        self._known: dict[Schema, DeclaredType | None] = {}
        self._declare(root, is_resource=True, name="object")

    def type_of(self, schema: Schema) -> DeclaredType | None:
        """The type of a part of the schema; None if the part does not say enough."""
        if schema not in self._known:
            return self._declare(schema, name=f"object{len(self._known)}")
        return self._known[schema]

    def _declare(
        self, schema: Schema, *, is_resource: bool = False, name: str
    ) -> DeclaredType | None:
        found = self._known[schema] = self._declared(schema, is_resource, name)
        return found

    def _declared(self, schema: Schema, is_resource: bool, name: str) -> DeclaredType | None:
        if schema.is_int_or_string:
            return DeclaredType(types.DYN, _MIN_NUMBER, MAX_REQUEST_BYTES - 2)
        match schema.type:
            case "array":
                return self._list(schema, name)
            case "object":
                if schema.additional is not None:
                    return self._map(schema, name)
                return self._object(schema, is_resource or schema.is_embedded, name)
            case "string":
                return _text_type(schema)
            case "boolean":
                return DeclaredType(types.BOOL, _MIN_BOOL)
            case "number":
                return DeclaredType(types.DOUBLE, _MIN_NUMBER)
            case "integer":
                return DeclaredType(types.INT, _MIN_NUMBER)
        if is_resource or schema.is_embedded:
            return self._object(schema, True, name)
        return None

    def _list(self, schema: Schema, name: str) -> DeclaredType | None:
        element = self._declare(schema.items, name=f"{name}.@idx") if schema.items else None
        if element is None:
            return None
        most = schema.max_items
        if most is None:
            most = (MAX_REQUEST_BYTES - 2) // (element.min_size + 1)
        return DeclaredType(types.list_of(element.type), 2, max(most, 0), element=element)

    def _map(self, schema: Schema, name: str) -> DeclaredType | None:
        assert schema.additional is not None
        value = self._declare(schema.additional, name=f"{name}.@elem")
        if value is None:
            return None
        most = schema.max_properties
        if most is None:
            most = (MAX_REQUEST_BYTES - 2) // (value.min_size + 6)
        kind = types.map_of(types.STRING, value.type)
        return DeclaredType(kind, 2, max(most, 0), element=value, key=_KEY)

    def _object(self, schema: Schema, is_resource: bool, name: str) -> DeclaredType:
        fields: dict[str, DeclaredType] = {}
        min_size = 2
        properties = dict(schema.properties)
        if is_resource:
            for typed in ("apiVersion", "kind", "metadata"):
                properties.pop(typed, None)
            fields |= {"apiVersion": _TEXT, "kind": _TEXT, "metadata": self._metadata(name)}
        for field, child in properties.items():
            declared = self._declare(child, name=f"{name}.{field}")
            if declared is None:
                continue
            visible = escaped(field)
            if visible is not None:
                fields[visible] = declared
            if field in schema.required and child.default is UNSET:
                min_size += len(field) + declared.min_size + 4
        return self._message(name, fields, min_size)

    def _metadata(self, name: str) -> DeclaredType:
        return self._message(f"{name}.metadata", {"name": _TEXT, "generateName": _TEXT}, 2)

    def _message(self, name: str, fields: Mapping[str, DeclaredType], size: int) -> DeclaredType:
        type_ = Type(TypeKind.STRUCT, name)
        plain = {field: declared.type for field, declared in fields.items()}
        self.messages[name] = MessageType(type_, plain)
        return DeclaredType(type_, size, fields=fields)


def _text_type(schema: Schema) -> DeclaredType:
    most = schema.max_length
    match schema.format:
        case "byte":
            size = MAX_REQUEST_BYTES - 2 if most is None else max(most, 0)
            return DeclaredType(types.BYTES, _MIN_TEXT, size)
        case "duration":
            return DeclaredType(types.DURATION, _MIN_DURATION, _MAX_TEXT_BY_FORMAT["duration"])
        case "date":
            return DeclaredType(types.TIMESTAMP, _DATE, _MAX_TEXT_BY_FORMAT["date"])
        case "date-time":
            return DeclaredType(types.TIMESTAMP, _MIN_TIME, _MAX_TEXT_BY_FORMAT["date-time"])
    if most is not None:
        size = max(most, 0) * _BYTES_PER_CHARACTER
    elif schema.enum:
        size = max((len(each) for each in schema.enum if isinstance(each, str)), default=0)
    else:
        size = MAX_REQUEST_BYTES - 2
    return DeclaredType(types.STRING, _MIN_TEXT, size)


def sizes_of(root: DeclaredType, place: tuple[str, ...]) -> Range | None:
    """The size of the value at a place below `self` or `oldSelf`; None if it is unknown."""
    if not place:
        return None
    node: DeclaredType | None = root
    for step in place[1:]:
        assert node is not None
        match step:
            case "@items" | "@values":
                node = node.element
            case "@keys":
                node = node.key
            case _:
                node = node.fields.get(step)
        if node is None:
            return None
    assert node is not None
    return Range(0, node.max_elements)
