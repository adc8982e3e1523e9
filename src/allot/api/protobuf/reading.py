"""Decodes protobuf with functions that are generated from the tables on first use.

A generated function expects the fields of its message in the order of their numbers, as they are written:
it reads a message in one pass without lookups. Fields in another order, and unknown ones, take another pass.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Iterator
from itertools import repeat
from operator import length_hint
from typing import Any, Final

from allot.api.base import ABSENT
from allot.api.json_limits import MAX_VALUES
from allot.api.protobuf import json_schemas, memory, scalars, wire
from allot.api.protobuf.reading_source import ReadingSource
from allot.api.protobuf.source import GeneratedFunctions
from allot.api.protobuf.targets import Member, Target, inlined, members_of
from allot.api.protobuf.wire import ProtobufError

Reader = Callable[[bytes, int, int, Iterator[None]], Any]
"""Takes the data, start and end of the message, and a budget with one item for each allowed part."""


def read(data: bytes, target: Target, max_parts: int = MAX_VALUES) -> Any:
    """The value in a message; `ProtobufError` if it cannot be decoded."""
    try:
        return reader_for(target)(data, 0, len(data), repeat(None, max_parts))
    except IndexError:
        raise wire.too_short() from None
    except UnicodeDecodeError:
        raise ProtobufError("string field contains invalid UTF-8") from None
    except RecursionError:
        raise ProtobufError("the message is nested too deeply") from None
    except StopIteration:
        raise ProtobufError(f"the message has more than {max_parts} parts") from None


def reader_for(target: Target) -> Reader:
    reader: Reader = _functions.function(target)
    return reader


def _base64(content: bytes) -> str:
    return b2a_base64(content, newline=False).decode()


def _skip(data: bytes, start: int, tag: int, known: frozenset[int]) -> int:
    if tag >> 3 in known:
        raise ProtobufError(f"proto: wrong wireType = {tag & 7} for field {tag >> 3}")
    return wire.skip(data, start, tag)


_DICT_READERS: Final[dict[str, str]] = {
    "time": "read_time", "microtime": "read_microtime", "quantity": "read_quantity_text",
    "intstr": "read_int_or_string", "raw": "read_json", "fields": "read_json", "strings": "read_strings",
    "schema-or-bool": "read_schema_or_bool", "schema-or-schemas": "read_schema_or_schemas",
    "schema-or-strings": "read_schema_or_strings",
}  # fmt: skip
_STRUCT_READERS: Final = _DICT_READERS | {
    "time": "read_datetime", "quantity": "read_quantity", "raw": "read_raw",
}  # fmt: skip
_NAMESPACE: Final[dict[str, Any]] = {
    **{name: value for name, value in vars(scalars).items() if name.startswith("read_")},
    **{name: value for name, value in vars(json_schemas).items() if name.startswith("read_")},
    "varint": wire.varint, "int32": wire.int32, "int64": wire.int64, "skip": _skip, "double": wire.double,
    "too_short": wire.too_short, "base64": _base64, "ABSENT": ABSENT, "length_hint": length_hint, "keep": memory.READ.keep,
    "keep_dict": memory.keep_dict, "unpack": memory.unpack,
}  # fmt: skip
"""What generated functions call."""
_JSON_SCHEMA: Final = Target("apiextensions.v1.JSONSchemaProps")
_NUMBERS: Final = {"int32": 0, "int64": 0, "bool": 0, "double": 1}
_ZEROES: Final = {"string": '""', "int32": "0", "int64": "0", "bool": "False", "double": "0"}


class _Generator:
    """Writes the function of one target."""

    def __init__(self, target: Target, name: str) -> None:
        self._target = target
        self._name = name
        self._members = members_of(target)
        self._source = ReadingSource()

    def define(self) -> None:
        line = self._source.line
        with self._source.block(f"def {self._name}(b, p, e, budget):"):
            line("next(budget)")
            self._begin()
            self._source.next_tag()
            with self._source.block("while t >= 0:"):
                line("s = p")
                for member in self._members:
                    self._field(member)
                known = self._constant(
                    "known", frozenset(member.field.number for member in self._members)
                )
                with self._source.block("if p == s:"):
                    line(f"p = skip(b, p, t, {known})")
                    self._source.next_tag()
                with self._source.block("if t >= 0:"):
                    line("next(budget)")
            with self._source.block("if p > e:"):
                line("raise too_short()")
            self._end()
        self._source.define(_NAMESPACE, f"<protobuf {self._target.message}>")

    def _constant(self, name: str, value: Any) -> str:
        """The name of a value that generated code uses."""
        full_name = f"{name}_{self._target.identifier}"
        _NAMESPACE[full_name] = value
        return full_name

    def _begin(self) -> None:
        line = self._source.line
        if self._target.cls is None:
            # Zero values that JSON includes.
            shown = (
                f'"{field.name}": {_ZEROES[field.type]}'
                for field in (member.field for member in self._members)
                if field.name and not field.omitted and not field.pointer and not field.container
                and field.type in _ZEROES
            )  # fmt: skip
            line(f"r = {{{', '.join(shown)}}}")
            return
        for name in self._target.cls.__struct_fields__:
            default = getattr(self._target.cls(), name)
            if default is None or default in ("", 0, ()):
                line(f"f_{name} = {default!r}")
            elif default == {}:
                line(f"f_{name} = {{}}")
            else:
                line(f"f_{name} = {self._constant(f'default_{name}', default)}")

    def _end(self) -> None:
        line = self._source.line
        if self._target.cls is not None:
            made = self._constant("cls", self._target.cls)
            line(
                f"return {made}({', '.join(f'f_{n}' for n in self._target.cls.__struct_fields__)})"
            )
            return
        for member in self._members:
            # Always sent by Go clients, but not by all others.
            field, inner = member.field, member.item_target
            if inner is None or field.container or field.pointer or not field.name:
                continue
            with self._source.block(f'if "{field.name}" not in r:'):
                line(f'r["{field.name}"] = {_functions.promise(inner)}(b, 0, 0, budget)')
        line("return r")

    def _field(self, member: Member) -> None:
        field = member.field
        if not field.name:
            self._inlined(member)
        elif field.container == "map":
            self._map(member)
        elif field.container == "list":
            self._list(member)
        else:
            self._single(member)

    def _store(self, member: Member, value: str) -> str:
        if self._target.cls is None:
            return f'r["{member.attribute}"] = {value}'
        return f"f_{member.attribute} = {value}"

    def _clear(self, member: Member) -> str:
        if self._target.cls is None:
            return f'if "{member.attribute}" in r: del r["{member.attribute}"]'
        return f"f_{member.attribute} = {self._constant(f'default_{member.attribute}', member.default)}"

    def _single(self, member: Member) -> None:
        field, line = member.field, self._source.line
        wire_type = _NUMBERS.get(field.type, 2)
        with self._source.block(f"if t == {field.number << 3 | wire_type}:"):
            if wire_type != 2:
                self._source.number(field.type)
            elif field.type == "string":
                self._source.string()
            else:
                self._source.length(within="e" if field.type != "bytes" else "")
                self._read_value(member)
                line("p = q")
            if field.type == "raw" and self._target.cls is not None:
                with self._source.block("if v is ABSENT:"):
                    line(f"v = {self._constant(f'default_{member.attribute}', member.default)}")
            # A zero value that is not a pointer is the same as absent, unless JSON includes it.
            hides_zero = not field.pointer and (field.omitted or self._target.cls is not None)
            if hides_zero and (field.type in _ZEROES or field.type == "bytes"):
                with self._source.block("if v:"):
                    line(self._store(member, "v"))
                with self._source.block("else:"):
                    line(self._clear(member))
            elif member.item_target is None and field.type not in ("string", *_NUMBERS):
                with self._source.block("if v is not None:"):
                    line(self._store(member, "v"))
            else:
                line(self._store(member, "v"))
            self._source.next_tag("break")

    def _value(self, member: Member, start: str = "p", end: str = "q") -> str:
        """The expression for a value between two offsets."""
        type_, inner = member.field.type, member.item_target
        if inner is not None:
            return f"{_functions.promise(inner)}(b, {start}, {end}, budget)"
        if type_ == "string":
            return f"b[{start}:{end}].decode()"
        if type_ == "bytes":
            return f"base64(b[{start}:{end}])"
        readers = _DICT_READERS if self._target.cls is None else _STRUCT_READERS
        if type_.startswith("schema-"):
            return (
                f"{readers[type_]}(b, {start}, {end}, budget, {_functions.promise(_JSON_SCHEMA)})"
            )
        return f"{readers[type_]}(b, {start}, {end})"

    def _inlined(self, member: Member) -> None:
        line = self._source.line
        inner = inlined(self._target, member)
        with self._source.block(f"if t == {member.field.number << 3 | 2}:"):
            self._source.length(within="e")
            line(f"v = {_functions.promise(inner)}(b, p, q, budget)")
            if self._target.cls is None:
                line("r.update(v)")
            for part in members_of(inner) if self._target.cls is not None else ():
                line(f"f_{part.attribute} = v.{part.attribute}")
            line("p = q")
            self._source.next_tag("break")

    def _list(self, member: Member) -> None:
        field, line = member.field, self._source.line
        wire_type = _NUMBERS.get(field.type, 2)
        tag = field.number << 3 | wire_type
        if wire_type == 2:
            with self._source.block(f"if t == {tag}:"):
                self._open_list(member)
                with self._source.block(f"while t == {tag}:"):
                    self._source.length(within="e" if field.type != "string" else "")
                    self._read_value(member)
                    line("a.append(v)")
                    line("p = q")
                    self._source.next_tag()
                self._close_list(member)
            return
        with self._source.block(f"if t == {tag} or t == {field.number << 3 | 2}:"):
            self._open_list(member)
            with self._source.block("if t & 7 == 2:"):
                self._source.length(within="e")
                with self._source.block("while p < q:"):
                    self._source.number(field.type)
                    line("a.append(v)")
                self._source.next_tag()
            with self._source.block("else:"), self._source.block(f"while t == {tag}:"):
                self._source.number(field.type)
                line("a.append(v)")
                self._source.next_tag()
            self._close_list(member)

    def _open_list(self, member: Member) -> None:
        line = self._source.line
        if self._target.cls is not None:
            line("a = []")
            return
        line(f'a = r.get("{member.attribute}")')
        with self._source.block("if a is None:"):
            line(f'a = r["{member.attribute}"] = []')

    def _close_list(self, member: Member) -> None:
        if self._target.cls is not None:
            name = f"f_{member.attribute}"
            self._source.line(f"{name} = (*{name}, *a) if {name} else tuple(a)")

    def _read_value(self, member: Member) -> None:
        """Reads the content between p and q into v, or takes what is remembered of it."""
        line = self._source.line
        inner = member.item_target
        if inner is None or not memory.is_remembered(inner.message):
            line(f"v = {self._value(member)}")
            return
        with self._source.block(f"if n > {memory.MAX_PART_BYTES}:"):
            line(f"v = {self._value(member)}")
        with self._source.block("else:"):
            self._remembered(inner, self._value(member))

    def _remembered(self, inner: Target, value: str) -> None:
        line = self._source.line
        parts = _functions.parts_of(inner)
        line("c = b[p:q]")
        line(f"v = {parts}.get(c)")
        with self._source.block("if v is None:"):
            line("i = length_hint(budget)")
            line(f"v = {value}")
            if inner.cls is None:
                line(f"keep_dict({parts}, c, v, budget, i)")
            else:
                self._keep(parts)
        if inner.cls is None:
            with self._source.block("else:"):
                line("v = unpack(v)")

    def _keep(self, parts: str) -> None:
        """Remembers v, which was read of c; i is what the budget was."""
        size = f"6 * len(c) + {memory.ENTRY_BYTES} * (i - length_hint(budget))"
        self._source.line(f"keep({parts}, c, v, {size})")

    def _map(self, member: Member) -> None:
        field, line = member.field, self._source.line
        inner = member.item_target
        tag = field.number << 3 | 2
        with self._source.block(f"if t == {tag}:"):
            if self._target.cls is not None:
                line(f"m = f_{member.attribute}")
            else:
                line(f'm = r.get("{member.attribute}")')
                with self._source.block("if m is None:"):
                    line(f'm = r["{member.attribute}"] = {{}}')
            with self._source.block(f"while t == {tag}:"):
                self._source.length(within="e")
                if inner is not None and inner.cls is not None:
                    parts = self._constant(f"parts_{member.attribute}", memory.READ.of_a_type())
                    line("c = b[p:q]")
                    line(f"v = {parts}.get(c)")
                    with self._source.block("if v is None:"):
                        line("i = length_hint(budget)")
                        self._entry(member)
                        line("v = k, v")
                        self._keep(parts)
                    line("m[v[0]] = v[1]")
                    line("p = q")
                else:
                    self._entry(member)
                    line("m[k] = v")
                self._source.next_tag()

    def _entry(self, member: Member) -> None:
        """Reads an entry of a map into k and v."""
        field, line = member.field, self._source.line
        wire_type = _NUMBERS.get(field.type, 2)
        if wire_type == 2:
            # As it is written: key and value, and short ones.
            head = "q - p > 3 and b[p] == 10 and (u := p + 2 + b[p + 1]) < q and b[u] == 18"
            lengths = "u + 2 + b[u + 1] == q and b[p + 1] < 128 and b[u + 1] < 128"
            with self._source.block(f"if {head} and {lengths}:"):
                line("k = b[p + 2 : u].decode()")
                line("p = u + 2")
                line(f"v = {self._value(member)}")
                line("p = q")
            with self._source.block("else:"):
                self._any_entry(member)
        else:
            self._any_entry(member)

    def _any_entry(self, member: Member) -> None:
        field, line = member.field, self._source.line
        wire_type = _NUMBERS.get(field.type, 2)
        line('k = ""')
        line("v = None")
        with self._source.block("while p < q:"):
            line("t = b[p]")
            line("p += 1")
            with self._source.block("if t == 10:"):
                self._source.length("p", "u")
                line("k = b[p:u].decode()")
                line("p = u")
            with self._source.block(f"elif t == {2 << 3 | wire_type}:"):
                if wire_type == 2:
                    self._source.length("p", "u", "q")
                    line(f"v = {self._value(member, 'p', 'u')}")
                    line("p = u")
                else:
                    self._source.number(field.type)
            with self._source.block("else:"):
                line("t, p = varint(b, p - 1)")
                line("p = skip(b, p, t, ())")
        with self._source.block("if p > q:"):
            line("raise too_short()")
        with self._source.block("if v is None:"):
            line(f"v = {self._zero(member)}")

    def _zero(self, member: Member) -> str:
        """The expression for the zero value of a map entry."""
        zero = _ZEROES.get(member.field.type)
        if zero is not None:
            return zero
        return '""' if member.field.type == "bytes" else self._value(member, "0", "0")


_functions: Final = GeneratedFunctions(
    _NAMESPACE, memory.READ, lambda target, name: _Generator(target, name).define()
)
