"""Types as OpenAPI schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.apiserver.http.openapi.descriptions import field_description, type_description
from allot.apiserver.schemas.fields import FREE_FORM, Field, Type
from allot.apiserver.schemas.tables import META

Schema = dict[str, Any]

PATCH: Final = f"{META}.Patch"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_FIELDS_V1: Final = f"{META}.FieldsV1"
_TIME: Final = f"{META}.Time"
_MICRO_TIME: Final = f"{META}.MicroTime"

_SCHEMA_UNIONS: Final = {
    "JSON": "Any JSON value.",
    "JSONSchemaPropsOrArray": "A schema, or a list of schemas.",
    "JSONSchemaPropsOrBool": "A schema, or whether anything is allowed.",
    "JSONSchemaPropsOrStringArray": "A schema, or a list of names.",
}
IRREGULAR: Final[Mapping[str, Schema]] = {
    **{
        f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.{name}": {"description": text}
        for name, text in _SCHEMA_UNIONS.items()
    },
    PATCH: {
        "description": "A change of an object, in the form that the content type names.",
        "type": "object",
    },
    _QUANTITY: {
        "description": "An amount: a number, maybe with a fraction, and a suffix. m is a thousandth; k, M, G, T, P"
        " and E are powers of 1000; Ki, Mi, Gi, Ti, Pi and Ei powers of 1024. Examples: 500m, 2, 1.5, 16Gi.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    _INT_OR_STRING: {
        "description": "A whole number, or a string such as 25% or the name of a port.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    _RAW_EXTENSION: {
        "description": "A JSON object that is kept as it is. What it means, others know.",
        "type": "object",
    },
    _FIELDS_V1: {
        "description": "Names of fields as a tree: f:<name> for fields, k:<keys> and v:<value> for items.",
        "type": "object",
    },
    _TIME: {
        "description": "A time in RFC 3339 form, such as 2026-01-31T12:00:00Z.",
        "type": "string",
        "format": "date-time",
    },
    _MICRO_TIME: {
        "description": "A time in RFC 3339 form with six digits of microseconds.",
        "type": "string",
        "format": "date-time",
    },
}
"""Types that are not objects with fields in JSON, or whose fields are free-form."""

_NAMES: Final = {
    "quantity": _QUANTITY,
    "int-or-string": _INT_OR_STRING,
    "time": _TIME,
    "microtime": _MICRO_TIME,
}
_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_ANY: Final = {
    "RawExtension": _RAW_EXTENSION,
    "FieldsV1": _FIELDS_V1,
    **{name: f"{_EXTENSIONS}.{name}" for name in _SCHEMA_UNIONS},
}
_IN_EVERY_GROUP: Final = frozenset({"DeleteOptions", "WatchEvent"})


def reference(name: str) -> Schema:
    """The type with this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def schemas(types: Mapping[str, Type], group_version: GroupVersion) -> dict[str, Schema]:
    """All types, and those of irregular form that they use, as the document of a version has them."""
    irregular = {
        name
        for schema in types.values()
        for field in schema.fields.values()
        if (name := _irregular_name(field))
    }
    found = {name: type_schema(schema, group_version) for name, schema in types.items()}
    for name in (PATCH, *irregular):
        found[name] = IRREGULAR[name]
    return dict(sorted(found.items()))


def type_schema(schema: Type, group_version: GroupVersion) -> Schema:
    made: Schema = {"type": "object"}
    if text := type_description(schema.name):
        made["description"] = text
    if schema.required:
        made["required"] = list(schema.required)
    properties = {}
    for name, field in schema.fields.items():
        properties[name] = field_schema(field)
        if text := field_description(schema, name):
            properties[name]["description"] = text
    made["properties"] = properties
    if schema.map_type:
        made["x-kubernetes-map-type"] = schema.map_type
    if schema.unions:
        made["x-kubernetes-unions"] = [dict(union) for union in schema.unions]
    if kinds := _kinds(schema, group_version):
        made["x-kubernetes-group-version-kind"] = kinds
    return made


def _kinds(schema: Type, group_version: GroupVersion) -> list[dict[str, str]]:
    here = [
        GroupVersionKind(*group_version, gvk.kind)
        for gvk in schema.kinds
        if gvk.kind in _IN_EVERY_GROUP and gvk.group_version != group_version
    ]
    return [gvk._asdict() for gvk in (*schema.kinds, *here)]


def field_schema(field: Field) -> Schema:
    item = _item_schema(field)
    match field.container:
        case "list":
            made: Schema = {"type": "array", "items": item}
        case "map":
            made = {"type": "object", "additionalProperties": item}
        case _:
            made = {"allOf": [item]} if "$ref" in item else item
    if field.default is not None:
        made["default"] = field.default
    extensions = {
        "x-kubernetes-list-type": field.list_type,
        "x-kubernetes-list-map-keys": list(field.list_map_keys),
        "x-kubernetes-map-type": field.map_type,
        "x-kubernetes-patch-strategy": field.patch_strategy,
        "x-kubernetes-patch-merge-key": field.merge_key,
    }
    made.update({name: value for name, value in extensions.items() if value})
    return made


def _irregular_name(field: Field) -> str:
    if field.type in FREE_FORM:
        return _ANY[field.format]
    return _NAMES.get(field.type, "")


def _item_schema(field: Field) -> Schema:
    if field.is_type:
        return reference(field.type)
    if name := _irregular_name(field):
        return reference(name)
    match field.type:
        case "bytes":
            return {"type": "string", "format": "byte"}
        case "strings":
            return {"type": "array", "items": {"type": "string"}}
        case "integer" | "number":
            return {"type": field.type, "format": field.format}
    made: Schema = {"type": field.type}
    if field.enum:
        made["enum"] = list(field.enum)
    return made
