"""Which schemas a CustomResourceDefinition may have.

First the keywords and their values, then the structure: every field has one type, at one place, so that objects can be
pruned and defaulted without guessing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.cel.library.regexes import RegexError, compiled
from allot.validation.fields import (
    ErrorType,
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    required,
)
from allot.validation.structural.schemas import JUNCTORS, SUPPORTED_FORMATS, Schema

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES: Final = ("atomic", "set", "map")
_MAP_TYPES: Final = ("atomic", "granular")
_SCALARS: Final = ("boolean", "integer", "number", "string")
_UNSUPPORTED: Final = ("definitions", "dependencies", "id", "patternProperties", "additionalItems")
_EMPTY: Final = "must be empty to be structural"
_UNDEFINED: Final = "must be undefined to be structural"
_FALSE: Final = "must be false to be structural"
_NESTED_RULES: Final = {
    "type": _EMPTY,
    "title": _EMPTY,
    "description": _EMPTY,
    "default": _UNDEFINED,
    "additionalProperties": _UNDEFINED,
    "nullable": _FALSE,
    "x-kubernetes-preserve-unknown-fields": _FALSE,
    "x-kubernetes-embedded-resource": _FALSE,
    "x-kubernetes-int-or-string": _FALSE,
    "x-kubernetes-list-map-keys": _EMPTY,
    "x-kubernetes-list-type": _UNDEFINED,
    "x-kubernetes-map-type": _UNDEFINED,
    "x-kubernetes-validations": _EMPTY,
}
"""What the schemas in allOf, anyOf, oneOf and not may not say."""


def unsupported(path: FieldPath, value: str, allowed: tuple[str, ...]) -> FieldError:
    """A value that is not one of a list, in the list's own order."""
    listed = ", ".join(f'"{each}"' for each in allowed)
    return FieldError(ErrorType.NOT_SUPPORTED, path, value, f"supported values: {listed}")


# --- keywords ---


def validate_keywords(schema: Schema, path: FieldPath) -> Iterator[FieldError]:
    """Keywords that are not supported, or have values that they cannot have."""
    source = schema.source
    for name in _UNSUPPORTED:
        if source.get(name):
            yield forbidden(path / name, f"{name} is not supported")
    if source.get("$ref"):
        yield forbidden(path / "$ref", "$ref is not supported")
    if source.get("uniqueItems"):
        yield forbidden(
            path / "uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        )
    if schema.type and schema.type not in TYPES:
        yield unsupported(path / "type", schema.type, TYPES)
    if schema.pattern:
        try:
            compiled(schema.pattern)
        except RegexError as error:
            problem = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(path / "pattern", schema.pattern, problem)
    if isinstance(source.get("items"), list):
        yield forbidden(path / "items", "items must be a schema object and not an array")
    if schema.allows_additional and schema.properties:
        yield forbidden(
            path / "additionalProperties",
            "additionalProperties and properties are mutual exclusive",
        )
    if source.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(
            path / "x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"
        )
    yield from _map_type_problems(schema, path)
    yield from _list_type_problems(schema, path)
    for name, child in schema.properties.items():
        yield from validate_keywords(child, path / "properties" @ name)
    if schema.items is not None:
        yield from validate_keywords(schema.items, path / "items")
    if schema.additional is not None:
        yield from validate_keywords(schema.additional, path / "additionalProperties")
    for name, several in zip(JUNCTORS, (schema.all_of, schema.any_of, schema.one_of), strict=True):
        for index, child in enumerate(several):
            yield from validate_keywords(child, path / name @ index)
    if schema.not_ is not None:
        yield from validate_keywords(schema.not_, path / "not")


def _map_type_problems(schema: Schema, path: FieldPath) -> Iterator[FieldError]:
    if not schema.map_type:
        return
    if schema.type != "object":
        where = path / "type"
        problem = "must be object if x-kubernetes-map-type is specified"
        yield invalid(where, schema.type, problem) if schema.type else required(where, problem)
    if schema.map_type not in _MAP_TYPES:
        yield unsupported(path / "x-kubernetes-map-type", schema.map_type, _MAP_TYPES)


def _list_type_problems(schema: Schema, path: FieldPath) -> Iterator[FieldError]:
    kind, keys = schema.list_type, schema.list_map_keys
    type_path, keys_path = path / "x-kubernetes-list-type", path / "x-kubernetes-list-map-keys"
    if kind and schema.type != "array":
        where = path / "type"
        problem = "must be array if x-kubernetes-list-type is specified"
        yield invalid(where, schema.type, problem) if schema.type else required(where, problem)
    elif kind and kind not in _LIST_TYPES:
        yield unsupported(type_path, kind, _LIST_TYPES)
    elif not kind and keys:
        yield required(type_path, "must be map if x-kubernetes-list-map-keys is non-empty")
    if kind and kind != "map" and keys:
        problem = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield invalid(type_path, kind, problem)
    items = schema.items
    if kind == "map":
        if not keys:
            yield required(keys_path, "must not be empty if x-kubernetes-list-type is map")
        if items is None:
            yield required(path / "items", "must have a schema if x-kubernetes-list-type is map")
        else:
            yield from _list_map_problems(schema, items, path)
    if kind == "set" and items is not None:
        if items.nullable:
            yield forbidden(
                path / "items" / "nullable", "cannot be nullable when x-kubernetes-list-type is set"
            )
        where = path / "items"
        if items.type == "object" and items.map_type != "atomic":
            problem = "must be atomic as item of a list with x-kubernetes-list-type=set"
            yield invalid(where / "x-kubernetes-map-type", items.map_type or None, problem)
        if items.type == "array" and items.list_type not in ("", "atomic"):
            problem = "must be atomic as item of a list with x-kubernetes-list-type=set"
            yield invalid(where / "x-kubernetes-list-type", items.list_type or None, problem)


def _list_map_problems(schema: Schema, items: Schema, path: FieldPath) -> Iterator[FieldError]:
    keys = schema.list_map_keys
    where = path / "items"
    keys_path = path / "x-kubernetes-list-map-keys"
    if items.type != "object":
        problem = "must be object if parent array's x-kubernetes-list-type is map"
        if items.type:
            yield invalid(where / "type", items.type, problem)
        else:
            yield required(where / "type", problem)
        return
    if items.nullable:
        yield forbidden(where / "nullable", "cannot be nullable when x-kubernetes-list-type is map")
    unknown = [key for key in keys if key not in items.properties]
    if unknown:
        yield invalid(keys_path, list(keys), "entries must all be names of item properties")
    if len(set(keys)) < len(keys):
        yield invalid(keys_path, list(keys), "must not contain duplicate entries")
    for key in dict.fromkeys(keys):
        child = items.properties.get(key)
        if child is None:
            continue
        at = where / "properties" @ key
        if child.type not in _SCALARS and not child.is_int_or_string:
            yield invalid(
                at / "type",
                child.type,
                "must be a scalar type if parent array's x-kubernetes-list-type is map",
            )
        if key not in items.required and not child.has_default:
            yield required(
                at / "default",
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
                "required property",
            )
        if child.nullable:
            yield forbidden(
                at / "nullable",
                "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            )


def schema_warnings(schema: Schema) -> Iterator[str]:
    """What is accepted but has no effect."""
    if schema.format and schema.format not in SUPPORTED_FORMATS:
        yield f'unrecognized format "{schema.format}"'
    items = schema.items
    if schema.list_type == "set" and items is not None and items.type in ("object", "array"):
        yield (
            f'x-kubernetes-list-type: set for items of type "{items.type}" is not supported by '
            "server-side apply or CEL validation rules"
        )
    for _, child in schema.children():
        yield from schema_warnings(child)


# --- structure ---


def validate_structure(schema: Schema, path: FieldPath) -> Iterator[FieldError]:
    """Whether the schema of a whole object is structural."""
    yield from _structure(schema, path, "at the root", is_root=True)


def _structure(
    schema: Schema, path: FieldPath, where: str, *, is_root: bool = False
) -> Iterator[FieldError]:
    source = schema.source
    if schema.type == "array" and schema.items is None:
        yield required(path / "items", "must be specified")
    may_be_anything = schema.preserves_unknown or schema.is_embedded or schema.is_int_or_string
    if not schema.type and (is_root or not may_be_anything):
        yield required(path / "type", f"must not be empty {where}")
    if is_root and schema.type and schema.type != "object":
        yield invalid(path / "type", schema.type, "must be object at the root")
    if is_root and source.get("additionalProperties") not in (None, False):
        yield forbidden(path / "additionalProperties", "must not be used at the root")
    if is_root and schema.nullable:
        yield forbidden(path / "nullable", "nullable cannot be true at the root")
    if schema.is_embedded:
        if not schema.properties and not schema.preserves_unknown:
            yield required(
                path / "properties",
                "must not be empty if x-kubernetes-embedded-resource is true without "
                "x-kubernetes-preserve-unknown-fields",
            )
        if schema.type != "object":
            problem = "must be object if x-kubernetes-embedded-resource is true"
            if schema.type:
                yield invalid(path / "type", schema.type, problem)
            else:
                yield required(path / "type", problem)
    if is_root or schema.is_embedded:
        yield from _type_meta_problems(schema, path)
    for name, child in schema.properties.items():
        if (is_root or schema.is_embedded) and name == "metadata" and not child.type:
            yield required(
                path / "properties" @ name / "type", "must not be empty for specified object fields"
            )
            continue
        yield from _structure(child, path / "properties" @ name, "for specified object fields")
    if schema.items is not None:
        yield from _structure(schema.items, path / "items", "for specified array items")
    if schema.additional is not None:
        yield from _structure(
            schema.additional, path / "additionalProperties", "for specified object fields"
        )
    yield from _nested(schema, path, skips_types=schema.is_int_or_string)


def _type_meta_problems(schema: Schema, path: FieldPath) -> Iterator[FieldError]:
    properties = schema.properties
    for name in ("apiVersion", "kind"):
        child = properties.get(name)
        if child is not None and child.type and child.type != "string":
            yield invalid(path / "properties" @ name / "type", child.type, "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    where = path / "properties" @ "metadata"
    if metadata.type and metadata.type != "object":
        yield invalid(where / "type", metadata.type, "must be object")
    allowed = {
        "type",
        "description",
        "properties",
        "x-kubernetes-preserve-unknown-fields",
        "default",
    }
    keywords = {
        name for name, value in metadata.source.items() if value not in (None, [], {}, "", False)
    }
    says_more = not set(metadata.properties) <= {"name", "generateName"} or not keywords <= allowed
    if says_more and metadata.type in ("object", ""):
        yield forbidden(
            where,
            "must not specify anything other than name and generateName, but metadata is implicitly "
            "specified",
        )


def _nested(schema: Schema, path: FieldPath, *, skips_types: bool) -> Iterator[FieldError]:
    groups = (("allOf", schema.all_of), ("anyOf", schema.any_of), ("oneOf", schema.one_of))
    for name, several in groups:
        for index, child in enumerate(several):
            # anyOf of an integer and a string, also in allOf, is how int-or-string is written.
            is_typed = skips_types and name != "oneOf"
            yield from _nested_problems(child, path / name @ index, may_have_type=is_typed)
    if schema.not_ is not None:
        yield from _nested_problems(schema.not_, path / "not", may_have_type=False)


def _nested_problems(
    schema: Schema, path: FieldPath, *, may_have_type: bool
) -> Iterator[FieldError]:
    source: Mapping[str, Any] = schema.source
    for name, problem in _NESTED_RULES.items():
        if name == "type" and may_have_type:
            continue
        value = source.get(name)
        if (name in source and value not in (None, "", False, [], {})) or (
            name in ("default", "additionalProperties") and name in source and value is not None
        ):
            yield forbidden(path / name, problem)
    for name, child in schema.properties.items():
        yield from _nested_problems(child, path / "properties" @ name, may_have_type=False)
    if schema.items is not None:
        yield from _nested_problems(schema.items, path / "items", may_have_type=False)
    groups = (("allOf", schema.all_of), ("anyOf", schema.any_of), ("oneOf", schema.one_of))
    for name, several in groups:
        for index, child in enumerate(several):
            yield from _nested_problems(child, path / name @ index, may_have_type=may_have_type)
    if schema.not_ is not None:
        yield from _nested_problems(schema.not_, path / "not", may_have_type=False)
