"""Whether a document of a raw kind is what its type says: right JSON types, no unknown or duplicate fields.

Every write of a pod passes here, so a document without mistakes is checked fast: types by msgspec, with
structs made from the schema, and names in one walk. Only what is refused is looked at again, slowly, to
say what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
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


def type_errors(data: Mapping[str, Any], gvk: GroupVersionKind) -> DecodeError | None:
    """The first value of the wrong JSON type, worded as Kubernetes answers it; None if all types match."""
    schema = type_of(gvk)
    return None if schema is None else errors_of_type(data, schema)


def errors_of_type(data: Any, schema: Type) -> DecodeError | None:
    """The same for a part of an object, such as its metadata."""
    try:
        msgspec.convert(data, _struct(schema.name), dec_hook=_from_json)
    except msgspec.ValidationError:
        return first_mismatch(data, schema)
    return None


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
def _struct(name: str) -> type[Struct]:
    """A struct that accepts what fits the type; null means absent everywhere."""
    fields = type_named(name).fields
    return msgspec.defstruct(
        name.rpartition(".")[2],
        [(f"f{index}", _hint(field), None) for index, field in enumerate(fields.values())],
        rename={f"f{index}": name for index, name in enumerate(fields)},
        gc=False,
    )


class _Schema:
    """The type of schemas inside schemas, which structs cannot express: a hook decodes them."""


def _hint(field: Field) -> Any:
    if field.type == JSON_SCHEMA:
        item: Any = _Schema
    elif field.is_type:
        item = _struct(field.type)
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


def _from_json(cls: type, value: Any) -> Any:
    if cls is _Schema:
        return msgspec.convert(value, _struct(JSON_SCHEMA), dec_hook=_from_json)
    if cls is _SchemaOr:
        return _from_json(_Schema, value) if isinstance(value, dict) else None
    if cls is not _MicroTime:
        return from_builtin(cls, value)
    if problem := not_a_time(value, micro=True):
        raise ValueError(problem)
    return _MicroTime()


# --- fields that would be ignored ---


def unknown_fields(body: bytes, gvk: GroupVersionKind, document: Any = None) -> list[StrictIssue]:
    """Unknown and duplicate fields, in the order of the document.

    `body` must be valid JSON; `document` is that JSON decoded, if the caller has it.
    """
    schema = type_of(gvk)
    if schema is None:
        return []
    if document is None:
        document = msgspec.json.decode(body)
    if _all_known(document, _names(schema.name)) and has_no_duplicates(body, document):
        return []
    found: list[StrictIssue] = []
    _look_for_issues(decode_pairs(body), schema, "", found)
    return found


class _Names(dict[str, "tuple[str, _Names | None]"]):
    """The fields of a type: the container, and the names inside, if there are any."""


_known_names: Final[dict[str, _Names]] = {}


def _names(name: str) -> _Names:
    found = _known_names.get(name)
    if found is None:
        found = _known_names[name] = _Names()  # before its fields: types may be recursive
        for field_name, field in type_named(name).fields.items():
            found[field_name] = (field.container, _names(field.type) if field.is_type else None)
    return found


def _all_known(value: Any, names: _Names) -> bool:
    if type(value) is not dict:
        return True  # the type is checked elsewhere
    for key, item in value.items():
        known = names.get(key)
        if known is None:
            return False
        container, inner = known
        if inner is None or type(item) not in _NESTED:
            continue
        if not container:
            if not _all_known(item, inner):
                return False
        else:
            parts = item if type(item) is list else item.values()
            if not all(_all_known(part, inner) for part in parts):
                return False
    return True


_NESTED: Final = (dict, list)


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
