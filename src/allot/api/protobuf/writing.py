"""Encodes protobuf with functions that are generated from the tables on first use.

The output is byte for byte that of Kubernetes: fields in the order of their numbers, maps sorted by key, zero
values of everything that is not a pointer.
"""

from __future__ import annotations

import struct
from binascii import a2b_base64
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from msgspec import Raw

from allot.api.base import is_set
from allot.api.decoding import Shape, fields_of
from allot.api.protobuf import json_schemas, memory, scalars, wire
from allot.api.protobuf.schema import Field, message
from allot.api.protobuf.source import GeneratedFunctions, GeneratedSource
from allot.api.protobuf.stored_json import is_null, parser_of
from allot.api.protobuf.targets import Member, Target, inlined, members_of
from allot.api.protobuf.wire import BYTES, ProtobufError, encode_tag, encode_varint

Writer = Callable[[Any], bytes]
"""Takes a value and returns the content of its message."""

_PREFIXES: Final = 256
"""Lengths with precomputed prefixes."""


def write(value: Any, target: Target) -> bytes:
    """The message of a value; `ProtobufError` if it does not match the schema."""
    try:
        return writer_for(target)(value)
    except (AttributeError, TypeError, ValueError, LookupError, OverflowError) as error:
        raise ProtobufError(f"cannot write {target.message}: {error}") from None


def write_json(body: bytes, target: Target, resource_version: str) -> bytes:
    """The message of a stored object, whose JSON has no resourceVersion."""
    document = parser_of(target.message)(body)
    if resource_version:
        document["metadata"]["resourceVersion"] = resource_version
    return write(document, target)


def writer_for(target: Target) -> Writer:
    writer: Writer = _functions.function(target)
    return writer


@cache
def _prefixes(tag: bytes) -> tuple[bytes, ...]:
    """A tag with each of the usual lengths, or small numbers."""
    return tuple(tag + encode_varint(length) for length in range(_PREFIXES))


def _prefix(tag: bytes, length: int) -> bytes:
    if 128 <= length < 16384:
        return b"%b%c%c" % (tag, length & 127 | 128, length >> 7)
    return tag + encode_varint(length)


_WRITERS: Final[dict[str, str]] = {
    "time": "write_time", "microtime": "write_microtime", "quantity": "write_quantity",
    "intstr": "write_int_or_string", "raw": "write_json", "fields": "write_json", "strings": "write_strings",
    "schema-or-bool": "write_schema_or_bool", "schema-or-schemas": "write_schema_or_schemas",
    "schema-or-strings": "write_schema_or_strings",
}  # fmt: skip
_NAMESPACE: Final[dict[str, Any]] = {
    **{name: value for name, value in vars(scalars).items() if name.startswith("write_")},
    **{name: value for name, value in vars(json_schemas).items() if name.startswith("write_")},
    "varint": encode_varint, "prefix": _prefix, "json_of": memory.json_of, "Raw": Raw, "parser_of": parser_of, "is_null": is_null, "keep": memory.WRITTEN.keep, "is_set": is_set,
    "unbase64": a2b_base64, "double": struct.Struct("<d").pack,
}  # fmt: skip
"""What generated functions call."""
_JSON_SCHEMA: Final = Target("apiextensions.v1.JSONSchemaProps")
_NUMBERS: Final = frozenset({"int32", "int64", "bool"})
_ZERO_CONTENTS: Final = {
    "quantity": b"\n\x010", "intstr": b"\x08\x00\x10\x00\x1a\x00", "schema-or-bool": b"\x08\x00",
}  # fmt: skip
_EMPTY_VALUE: Final = b"\x12\x00"
"""What is written of an entry of a map that has no value."""
_NOTHING_IF_UNSET: Final = frozenset({"bytes", "strings"})
"""Types that are nullable in Go without a pointer."""


def _zero(field: Field) -> bytes:
    """The encoding of a field without a value."""
    if field.pointer or field.container or field.type in _NOTHING_IF_UNSET:
        return b""
    if field.type in _NUMBERS:
        return encode_tag(field.number, wire.VARINT) + b"\0"
    if field.type == "double":
        return encode_tag(field.number, wire.FIXED64) + bytes(8)
    if field.type in ("string", *_WRITERS):
        content = _ZERO_CONTENTS.get(field.type, b"")
    else:
        content = b"".join(map(_zero, message(field.type).fields))
    return wire.delimited(field.number, content)


def _may_be_raw(member: Member) -> bool:
    """Whether a value in a document may be its JSON, as `stored_json` has it."""
    type_ = member.field.type
    return type_ in ("raw", "fields") or memory.is_remembered(type_)


def _memory_key(member: Member) -> str:
    """The expression for the cache key of a map entry k, v; empty if entries are not cached.

    The key is None for values that are rare.
    """
    shape = member.shape.item if member.shape is not None else None
    if shape is None or shape.cls is None:
        return ""
    fields = fields_of(shape.cls).values()
    if all(_is_plain(inner) for _, inner in fields):
        return "(k, v)"
    parts, conditions = ["k"], []
    for attribute, inner in fields:
        if inner.kind == "quantity" and not inner.optional:
            # Quantities are equal by amount, but encoded in their original form.
            parts.append(f"str(v.{attribute})")
        elif inner.optional:
            conditions.append(f"v.{attribute} is None")
        else:
            return ""
    key = f"({', '.join(parts)})"
    return f"{key} if {' and '.join(conditions)} else None" if conditions else key


def _is_plain(shape: Shape) -> bool:
    """Whether values are hashable, and equal ones have the same encoding."""
    if shape.kind == "list":
        assert shape.item is not None
        return _is_plain(shape.item)
    return shape.kind in ("string", "int", "bool")


class _Generator:
    """Writes the function of one target."""

    def __init__(self, target: Target, name: str) -> None:
        self._target = target
        self._name = name
        self._source = GeneratedSource()

    def define(self) -> None:
        line = self._source.line
        members = {member.field.number: member for member in members_of(self._target)}
        with self._source.block(f"def {self._name}(o):"):
            line("a = []")
            if self._target.cls is None:
                line("g = o.get")
            for field in message(self._target.message).fields:
                member = members.get(field.number)
                if member is not None:
                    self._field(member)
                elif zero := _zero(field):  # not in the struct
                    line(f"a.append({zero!r})")
            line("return b''.join(a)")
        self._source.define(_NAMESPACE, f"<protobuf {self._target.message}>")

    def _constant(self, name: str, value: Any) -> str:
        full_name = f"{name}_{self._target.identifier}"
        _NAMESPACE[full_name] = value
        return full_name

    def _field(self, member: Member) -> None:
        field, line = member.field, self._source.line
        if not field.name:
            inner = _functions.promise(inlined(self._target, member))
            line(f"c = {inner}(o)")
            self._delimited(field.number)
            return
        line(
            f'v = g("{member.attribute}")' if not self._target.cls else f"v = o.{member.attribute}"
        )
        if field.container:
            with self._source.block("if v:"):
                self._items(member)
            return
        with self._source.block(f"if {self._is_written(member)}:"):
            self._value(member, field.number)
        if zero := _zero(field):
            with self._source.block("else:"):
                line(f"a.append({zero!r})")

    def _is_written(self, member: Member) -> str:
        """The condition under which a field has a value."""
        field, shape = member.field, member.shape
        if shape is not None and shape.kind == "opaque":
            return "is_set(v)"
        if not field.pointer and field.type in ("string", *_NUMBERS):
            return "v"
        if shape is None and _may_be_raw(member):
            return "not is_null(v)"
        if shape is None or shape.optional or shape.kind in ("time", "any"):
            return "v is not None"
        if shape.kind in ("string", "int", "bool"):
            return "v"
        if not field.pointer:
            return "True"
        return f"v != {self._constant(f'default_{member.attribute}', member.default)}"

    def _items(self, member: Member) -> None:
        field, line = member.field, self._source.line
        if field.container == "list":
            line("w = v")
            with self._source.block("for v in w:"):
                if member.item_target is not None and self._target.cls is None:
                    with self._source.block("if v is None:"):
                        line("v = {}")
                elif field.type == "string":
                    with self._source.block("if v is None:"):
                        line("v = ''")
                self._value(member, field.number)
            return
        line("w = v")
        key = _memory_key(member)
        with self._source.block("for k in sorted(w):"):
            line("v = w[k]")
            if not key:
                self._entry(member)
                self._delimited(field.number)
                return
            # Devices of one model have most attributes in common.
            parts = self._constant(f"parts_{member.attribute}", memory.WRITTEN.of_a_type())
            line(f"i = {key}")
            line(f"c = {parts}.get(i) if i else None")
            with self._source.block("if c is None:"):
                self._entry(member)
                line("n = len(c)")
                line(f"c = ({self._prefixed(field.number)}) + c")
                with self._source.block("if i:"):
                    line(f"keep({parts}, i, c, 2 * len(c))")
            line("a.append(c)")

    def _entry(self, member: Member) -> None:
        """The content of a map's entry, from k and v into c."""
        line = self._source.line
        field = member.field._replace(number=2, container="", pointer=False)
        line("s = k.encode()")
        line("n = len(s)")
        line(f"s = ({self._prefixed(1)}) + s")
        with self._source.block("if v is None:"):
            line(f"c = s + {_zero(field) or _EMPTY_VALUE!r}")
        with self._source.block("else:"):
            if field.type in _NUMBERS or field.type == "double":
                line("x = a")
                line("a = [s]")
                self._value(member, 2)
                line("c = b''.join(a)")
                line("a = x")
            else:
                self._make_content(member)
                line("n = len(c)")
                line(f"c = s + ({self._prefixed(2)}) + c")

    def _prefixed(self, number: int) -> str:
        """The expression for a tag and a length n."""
        tag = encode_tag(number, BYTES)
        _NAMESPACE[f"prefixes_{tag.hex()}"] = _prefixes(tag)
        return f"prefixes_{tag.hex()}[n] if n < {_PREFIXES} else prefix({tag!r}, n)"

    def _delimited(self, number: int) -> None:
        """Adds c as the content of a field."""
        self._source.line("n = len(c)")
        self._source.line(f"a.append({self._prefixed(number)})")
        self._source.line("a.append(c)")

    def _value(self, member: Member, number: int) -> None:
        """Adds v as a field."""
        type_, line = member.field.type, self._source.line
        if type_ in _NUMBERS:
            tag = encode_tag(number, wire.VARINT)
            if type_ == "bool":
                line(f"a.append({_prefix(tag, 1)!r} if v else {_prefix(tag, 0)!r})")
            else:
                _NAMESPACE[f"prefixes_{tag.hex()}"] = _prefixes(tag)
                line(
                    f"a.append(prefixes_{tag.hex()}[v] if 0 <= v < {_PREFIXES} else prefix({tag!r}, v))"
                )
            return
        if type_ == "double":
            line(f"a += {encode_tag(number, wire.FIXED64)!r}, double(v)")
            return
        self._make_content(member)
        self._delimited(number)

    def _make_content(self, member: Member) -> None:
        """The content of v into c."""
        inner = member.item_target
        if inner is None or not memory.is_remembered(inner.message):
            self._source.line(f"c = {self._content(member)}")
        else:
            self._remembered(member, inner)

    def _remembered(self, member: Member, inner: Target) -> None:
        """What is remembered of v, or its content, into c. In stored JSON v may be its bytes."""
        line = self._source.line
        parts = _functions.parts_of(inner)
        if inner.cls is None:
            line("x = v.__class__ is Raw")
            line("j = bytes(v) if x else json_of(v)")
        else:
            line("j = json_of(v)")
        line(f"c = {parts}.get(j)")
        with self._source.block("if c is None:"):
            if inner.cls is None:
                with self._source.block("if x:"):
                    line(f"v = parser_of({inner.message!r})(j) or {{}}")
            line(f"c = {self._content(member)}")
            with self._source.block(f"if len(j) <= {memory.MAX_PART_BYTES}:"):
                line(f"keep({parts}, j, c, len(j) + len(c))")

    def _content(self, member: Member) -> str:
        type_, inner = member.field.type, member.item_target
        if inner is not None:
            return f"{_functions.promise(inner)}(v)"
        if type_ == "string":
            return "v.encode()"
        if type_ == "bytes":
            return "unbase64(v)"
        if type_.startswith("schema-"):
            return f"{_WRITERS[type_]}(v, {_functions.promise(_JSON_SCHEMA)})"
        if type_ == "time" and self._target.cls is not None:
            return "write_datetime(v)"
        return f"{_WRITERS[type_]}(v)"


_functions: Final = GeneratedFunctions(
    _NAMESPACE, memory.WRITTEN, lambda target, name: _Generator(target, name).define()
)
