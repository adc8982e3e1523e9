"""JSON to API types: a fast path for well-formed objects, a careful one with Kubernetes' error messages.

msgspec decodes a well-formed object in one pass. If it refuses, the same bytes are read again step by
step: `null` then counts as absent, as Go clients mean it, and errors are reported the way Kubernetes
does. Unknown and duplicate fields are never an error here; `strictness` lists them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Raw, Struct

from allot.api.base import GoName, wire_names
from allot.api.quantity import PARSED, Quantity, QuantityError, quantity_from_json

T = TypeVar("T", bound=Struct)

_MAX_SHOWN_VALUE: Final = 64
"""Characters of a value that is wrong."""


class DecodeError(ValueError):
    """The document is not an object of this type. API clients see the message.

    `field` is the path, if known, `value` the JSON found there, and `problem` describes it in plain words.
    """

    def __init__(self, message: str, field: str = "", problem: str = "", value: str = "") -> None:
        super().__init__(message)
        self.field, self.problem = field, problem or message
        self.value = value if len(value) <= _MAX_SHOWN_VALUE else f"{value[:_MAX_SHOWN_VALUE]}..."

    @property
    def located(self) -> str:
        """The message with its field and value, which Kubernetes leaves out."""
        return f"{self} ({self.field}: {self.value})" if self.field else str(self)


class _JsonNumber(str):
    """A number with a fraction or an exponent, as it was written."""

    __slots__ = ()


def decode(body: bytes, cls: type[T], version: str) -> T:
    """The object in `body`, or `DecodeError`. Ignores unknown fields.

    `version` is the API version of the request, for error messages.
    """
    try:
        decoded: T = _decoder(cls).decode(body)
    except msgspec.ValidationError:
        return _Reader(version).read_object(body, cls)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(_syntax_error(error)) from None
    return decoded


@cache
def _decoder(cls: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(cls, dec_hook=from_builtin)


def from_builtin(_: type, value: Any) -> Quantity:
    """Decoding hook of msgspec for our own types, which are quantities only.

    A number with a fraction has lost its digits as written: it is refused here and read by the careful path.
    """
    try:
        return PARSED[value]
    except (KeyError, TypeError):
        if type(value) is float:
            raise ValueError(value) from None
        return quantity_from_json(value)


def from_value(_: type, value: Any) -> Quantity:
    """The same for decoded values: a number with a fraction counts as its shortest decimal."""
    return quantity_from_json(repr(value) if type(value) is float else value)


def to_builtin(value: Any) -> str:
    """Encoding hook of msgspec for our own types, which are quantities only: nothing else has `text`."""
    return value.text or str(value)


def _syntax_error(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "json: document is nested too deeply"
    text = str(error).removeprefix("JSON is ")
    return f"json: {text[:1].lower()}{text[1:]}"


# --- the careful path ---


class Shape(NamedTuple):
    """What a value must look like: its kind, how Go calls it, and what it contains."""

    kind: str  # struct, list, map, string, int, bool, quantity, time, opaque, any
    go_name: str
    cls: type[Struct] | None = None
    item: Shape | None = None
    optional: bool = False


@cache
def fields_of(cls: type[Struct]) -> dict[str, tuple[str, Shape]]:
    """Field name and shape by name on the wire."""
    hints = get_type_hints(cls, include_extras=True)
    return {wire: (name, _shape(hints[name])) for wire, name in wire_names(cls).items()}


def _shape(hint: Any, go_name: str = "") -> Shape:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        names = [extra.name for extra in hint.__metadata__ if isinstance(extra, GoName)]
        return _shape(arguments[0], names[0] if names else go_name)
    if origin in (Union, UnionType):
        inner = next(argument for argument in arguments if argument is not type(None))
        return _shape(inner, go_name)._replace(optional=True)
    if origin is tuple:
        item = _shape(arguments[0])
        return Shape("list", f"[]{item.go_name}", item=item)
    if origin is dict:
        key, item = _shape(arguments[0]), _shape(arguments[1])
        return Shape("map", go_name or f"map[{key.go_name}]{item.go_name}", item=item)
    if isinstance(hint, type) and issubclass(hint, Struct):
        package = "{v}" if hint.__module__ not in _META_MODULES else "v1"
        return Shape("struct", f"{package}.{hint.__name__}", cls=hint)
    kind, default_name = _SCALARS.get(hint, ("any", "interface {}"))
    return Shape(kind, go_name or default_name)


_META_MODULES = frozenset({"allot.api.meta"})
_SCALARS: dict[Any, tuple[str, str]] = {
    str: ("string", "string"),
    int: ("int", "int64"),
    bool: ("bool", "bool"),
    datetime: ("time", "v1.Time"),
    Quantity: ("quantity", "resource.Quantity"),
    Raw: ("opaque", "runtime.RawExtension"),
}
_INT_RANGES = {"int32": 2**31, "int64": 2**63}
_raw_object = msgspec.json.Decoder(dict[str, Raw])
_raw_list = msgspec.json.Decoder(list[Raw])
_time = msgspec.json.Decoder(Annotated[datetime, msgspec.Meta(tz=True)])
_any = msgspec.json.Decoder(float_hook=_JsonNumber)


class _Where(NamedTuple):
    """The path of a value: as Go writes it, and with the indexes and keys that Go leaves out."""

    owner: str = ""
    path: str = ""
    field: str = ""

    def child(self, owner: str, name: str) -> _Where:
        dot = "." if self.path else ""
        return _Where(owner, f"{self.path}{dot}{name}", f"{self.field}{dot}{name}")

    def item(self, key: int | str) -> _Where:
        return self._replace(field=f"{self.field}[{key}]")


class _Reader:
    """Reads one document by shape; raises on the first mismatch."""

    def __init__(self, version: str) -> None:
        self._version = version

    def read_object(self, body: bytes, cls: type[T]) -> T:
        shape = Shape("struct", f"{{v}}.{cls.__name__}", cls=cls)
        if body.strip() == b"null":
            return cls()
        decoded: T = self._read(Raw(body), shape, _Where())
        return decoded

    def _read(self, raw: Raw, shape: Shape, where: _Where) -> Any:
        text = bytes(raw).strip()
        match shape.kind:
            case "struct":
                return self._read_struct(text, shape, where)
            case "list" if text.startswith(b"["):
                assert shape.item
                return tuple(
                    self._read_item(item, shape.item, where.item(index))
                    for index, item in enumerate(_raw_list.decode(text))
                )
            case "map" if text.startswith(b"{"):
                assert shape.item
                return {
                    key: self._read_item(item, shape.item, where.item(key))
                    for key, item in _raw_object.decode(text).items()
                }
            case "list" | "map":
                raise self._mismatch(text, shape, where)
            case "opaque":
                return raw.copy()
            case "any":
                return _any.decode(text)
            case _:
                return self._read_scalar(text, shape, where)

    def _read_item(self, raw: Raw, shape: Shape, where: _Where) -> Any:
        if bytes(raw).strip() == b"null" and shape.kind not in ("opaque", "any"):
            return _zero(shape)
        return self._read(raw, shape, where)

    def _read_struct(self, text: bytes, shape: Shape, where: _Where) -> Any:
        if not text.startswith(b"{"):
            raise self._mismatch(text, shape, where)
        assert shape.cls
        values: dict[str, Any] = {}
        known = fields_of(shape.cls)
        for wire, raw in _raw_object.decode(text).items():
            if wire not in known:
                continue
            name, field_shape = known[wire]
            if bytes(raw).strip() == b"null" and field_shape.kind != "opaque":
                continue  # as if it had not been sent
            values[name] = self._read(raw, field_shape, where.child(shape.cls.__name__, wire))
        return shape.cls(**values)

    def _read_scalar(self, text: bytes, shape: Shape, where: _Where) -> Any:
        value = _any.decode(text)
        match shape.kind:
            case "string" if type(value) is str:
                return value
            case "bool" if isinstance(value, bool):
                return value
            case "int" if isinstance(value, int | _JsonNumber) and not isinstance(value, bool):
                limit = _INT_RANGES[shape.go_name]
                if isinstance(value, int) and -limit <= value < limit:
                    return value
                raise self._mismatch(text, shape, where, literal=True)
            case "time" if type(value) is str:
                return self._read_time(text, value, where)
            case "time":
                kind = _json_kind(text)
                raise DecodeError(
                    f"json: cannot unmarshal {kind} into Go value of type string",
                    where.field,
                    f"must be a time, found {_FOUND.get(kind, kind)}",
                    _shown(text),
                )
            case "quantity":
                try:
                    return quantity_from_json(value)
                except QuantityError as error:
                    shown = _shown(text)
                    problem = f"{shown} is not a quantity: {error}"
                    raise DecodeError(str(error), where.field, problem, shown) from None
        raise self._mismatch(text, shape, where)

    def _read_time(self, text: bytes, value: str, where: _Where) -> datetime:
        try:
            time: datetime = _time.decode(text)
        except msgspec.ValidationError:
            shown = json.dumps(value, ensure_ascii=False)
            raise DecodeError(
                f"parsing time {shown}{go_time_problem(value)}",
                where.field,
                f"{shown} is not a time; write it like 2026-01-31T12:00:00Z",
                _shown(text),
            ) from None
        return time

    def _mismatch(
        self, text: bytes, shape: Shape, where: _Where, *, literal: bool = False
    ) -> DecodeError:
        kind = _json_kind(text)
        found = f"{kind} {text.decode()[:64]}" if literal else kind
        go_name = shape.go_name.replace("{v}", self._version)
        place = f"Go struct field {where.owner}.{where.path}" if where.path else "Go value"
        wanted = _WORDS.get(shape.go_name) or _WORDS[shape.kind]
        return DecodeError(
            f"json: cannot unmarshal {found} into {place} of type {go_name}",
            where.field,
            f"must be {wanted}, found {_FOUND.get(found, found)}",
            _shown(text),
        )


_WORDS = {
    "struct": "an object", "list": "a list", "map": "an object", "string": "a string", "int": "a whole number",
    "int32": "a whole number of 32 bits", "int64": "a whole number of 64 bits",
    "bool": "true or false", "time": "a time", "quantity": "a quantity",
}  # fmt: skip
_FOUND = {
    "object": "an object", "array": "a list", "string": "a string", "bool": "true or false (a string needs quotes)",
    "number": "a number (a string needs quotes)",
}  # fmt: skip


_TIME_PARTS = (
    ("2006", 4), ("-", 0), ("01", 2), ("-", 0), ("02", 2), ("T", 0), ("15", 2), (":", 0), ("04", 2),
    (":", 0), ("05", 2),
)  # fmt: skip


def go_time_problem(text: str) -> str:
    """Go's error for a string that is not an RFC 3339 time: the part that does not parse."""
    layout = ' as "2006-01-02T15:04:05Z07:00": cannot parse'
    rest = text
    for part, digits in _TIME_PARTS:
        length = digits or len(part)
        found = rest[:length]
        fits = found.isascii() and found.isdecimal() and len(found) == length
        if not (fits if digits else found == part):
            return f'{layout} {json.dumps(rest, ensure_ascii=False)} as "{part}"'
        rest = rest[length:]
    zone = rest[1:].lstrip("0123456789") if rest.startswith(".") else rest
    if zone != "Z" and not (zone[:1] in ("+", "-") and len(zone) == 6):
        return f'{layout} {json.dumps(zone, ensure_ascii=False)} as "Z07:00"'
    ranges = (
        ("month", 5, 12),
        ("day", 8, 31),
        ("hour", 11, 23),
        ("minute", 14, 59),
        ("second", 17, 59),
    )
    for name, start, most in ranges:
        if int(text[start : start + 2]) > most:
            return f": {name} out of range"
    return ": day out of range"


def _shown(text: bytes) -> str:
    """At least as much of a value as an error shows."""
    return text[: 4 * _MAX_SHOWN_VALUE + 4].decode(errors="replace")


def _zero(shape: Shape) -> Any:
    """The value of a null item in a list or map."""
    zeros: dict[str, Callable[[], Any]] = {
        "list": tuple, "map": dict, "string": str, "int": int, "bool": bool,
        "quantity": lambda: quantity_from_json(None), "time": lambda: None,
    }  # fmt: skip
    return shape.cls() if shape.cls else zeros[shape.kind]()


def _json_kind(text: bytes) -> str:
    kinds = {
        b"{": "object", b"[": "array", b'"': "string", b"t": "bool", b"f": "bool", b"n": "null",
    }  # fmt: skip
    return kinds.get(text[:1], "number")
