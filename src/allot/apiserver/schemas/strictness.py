"""Whether a document of a raw kind is what its type says: right JSON types, no unknown or duplicate fields.

Every write of a pod passes here, so a document without mistakes is checked fast: by msgspec, with structs made from
the schema. Only what is refused is looked at again, slowly, to say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from allot.api.base import Int32, Int64
from allot.api.decoding import DecodeError, from_builtin
from allot.api.identities import GroupVersionKind
from allot.api.quantity import Quantity
from allot.api.strictness import Pairs, StrictIssue, decode_pairs, has_no_duplicates
from allot.apiserver.schemas.fields import FREE_FORM, JSON_SCHEMA, Field, Type
from allot.apiserver.schemas.mismatches import first_mismatch, not_a_time
from allot.apiserver.schemas.types import type_named, type_of
from allot.apiserver.schemas.unknown_fields import without_unknown_fields


def type_errors(data: Mapping[str, Any], gvk: GroupVersionKind) -> DecodeError | None:
    """The first value of the wrong JSON type, worded as Kubernetes answers it; None if all types match."""
    schema = type_of(gvk)
    return None if schema is None else errors_of_type(data, schema)


def known_fields(document: Mapping[str, Any], gvk: GroupVersionKind) -> Mapping[str, Any]:
    """The document without unknown fields; raises `DecodeError` for the first value of the wrong JSON type."""
    schema = type_of(gvk)
    if schema is None or fits(document, schema, strict=True):
        return document
    problem = errors_of_type(document, schema)
    if problem is not None:
        raise problem
    return without_unknown_fields(document, gvk)


def errors_of_type(data: Any, schema: Type) -> DecodeError | None:
    """The same for a part of an object, such as its metadata."""
    return None if fits(data, schema) else first_mismatch(data, schema)


def fits(data: Any, schema: Type, *, strict: bool = False) -> bool:
    """Whether all types match; if strict, whether all fields are known, too."""
    try:
        msgspec.convert(data, _struct(schema.name, strict), dec_hook=_hook(strict))
    except msgspec.ValidationError:
        return False
    return True


def prepare(gvk: GroupVersionKind) -> None:
    """Make the structs of a kind, which otherwise its first write does: those of a pod take 7 ms."""
    schema = type_of(gvk)
    if schema is not None:
        fits({}, schema, strict=True)


class _MicroTime:
    """The type of times with microseconds."""


class _SchemaOr:
    """The type of values that are a schema or something simpler."""


_FAST_TYPES: Final[Mapping[str, Any]] = {
    "string": str,
    "boolean": bool,
    "number": float,
    "bytes": bytes,
    "any": Any,
    "strings": list[str],
    "int-or-string": Int32 | str,
    "quantity": Quantity,
    "time": Annotated[datetime, Meta(tz=True)],
    "microtime": _MicroTime,
    "json": Any,
    "schema-or": _SchemaOr,
}


@cache
def _struct(name: str, strict: bool = False) -> type[Struct]:
    """A struct that accepts what fits the type; null means absent everywhere. A strict one accepts known fields only."""
    fields = type_named(name).fields
    return msgspec.defstruct(
        name.rpartition(".")[2],
        [(f"f{index}", _hint(field, strict), None) for index, field in enumerate(fields.values())],
        rename={f"f{index}": name for index, name in enumerate(fields)},
        forbid_unknown_fields=strict,
        gc=False,
    )


class _Schema:
    """The type of schemas inside schemas, which structs cannot express: a hook decodes them."""


def _hint(field: Field, strict: bool) -> Any:
    if field.type == JSON_SCHEMA:
        item: Any = _Schema
    elif field.is_type:
        item = _struct(field.type, strict)
    elif field.type == "integer":
        item = Int32 if field.format == "int32" else Int64
    else:
        item = _FAST_TYPES[field.type]
    match field.container:
        case "list":
            return list[item | None] | None
        case "map":
            return dict[str, item | None] | None
    return item | None


@cache
def _hook(strict: bool) -> Callable[[type, Any], Any]:
    return partial(_from_json, strict)


def _from_json(strict: bool, cls: type, value: Any) -> Any:
    if cls is _Schema:
        return msgspec.convert(value, _struct(JSON_SCHEMA, strict), dec_hook=_hook(strict))
    if cls is _SchemaOr:
        return _from_json(strict, _Schema, value) if isinstance(value, dict) else None
    if cls is not _MicroTime:
        return from_builtin(cls, value)
    if problem := not_a_time(value, micro=True):
        raise ValueError(problem)
    return _MicroTime()


# --- fields that would be ignored ---


def unknown_fields(body: bytes, gvk: GroupVersionKind) -> list[StrictIssue]:
    """Unknown and duplicate fields of valid JSON, in the order of the document."""
    schema = type_of(gvk)
    if schema is None:
        return []
    document = msgspec.json.decode(body)
    if fits(document, schema, strict=True) and has_no_duplicates(body, document):
        return []
    return _issues(body, schema)


def check_strictly(body: bytes, document: Any, gvk: GroupVersionKind) -> list[StrictIssue]:
    """The same for JSON that has been decoded; raises `DecodeError` for the first value of the wrong type."""
    schema = type_of(gvk)
    if schema is None:
        return []
    if fits(document, schema, strict=True):
        return [] if has_no_duplicates(body, document) else _issues(body, schema)
    problem = errors_of_type(document, schema)
    if problem is not None:
        raise problem
    return _issues(body, schema)


def _issues(body: bytes, schema: Type) -> list[StrictIssue]:
    found: list[StrictIssue] = []
    _look_for_issues(decode_pairs(body), schema, "", found)
    return found


def _look_for_issues(
    value: Any, schema: Type | None, path: str, found: list[StrictIssue], is_map: bool = False
) -> None:
    """Adds to `found`. `schema` is that of the items if the value is a map or a list."""
    if type(value) is list:
        for index, item in enumerate(value):
            _look_for_issues(item, schema, f"{path}[{index}]", found)
        return
    if type(value) is not Pairs:
        return
    names = tuple(schema.fields) if schema else ()
    count: dict[str, int] = {}
    for key, item in value:
        count[key] = count.get(key, 0) + 1
        where = f"{path}.{key}" if path else key
        field = schema.fields.get(key) if schema and not is_map else None
        if field is None and schema and not is_map:
            if count[key] == 1:
                found.append(StrictIssue("unknown", where, names))
            continue
        if count[key] == 2:
            found.append(StrictIssue("duplicate", where))
        if is_map:
            _look_for_issues(item, schema, where, found)
        elif field is not None and field.type not in FREE_FORM:
            inner = type_named(field.type) if field.is_type else None
            _look_for_issues(item, inner, where, found, field.container == "map")
