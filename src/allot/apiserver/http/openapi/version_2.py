"""OpenAPI v2 of all versions in one document, made from their v3 documents. Older clients and Helm ask for it.

Fields that only v3 has are left out: `oneOf`, `anyOf`, `not`, `nullable`, and defaults of custom resources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.protobuf.wire import delimited, encode_tag, encode_varint
from allot.apiserver.http.openapi.documents import INFO, build_document, paths
from allot.apiserver.registry.served import BY_DEFAULT, ServedResources

Schema = dict[str, Any]

SWAGGER: Final = "2.0"
_ONLY_V3: Final = frozenset({"oneOf", "anyOf", "not", "nullable"})
_SCHEMAS: Final = ("items", "additionalProperties")
_METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch"})


class OpenApiDocument(NamedTuple):
    """The document in both of its forms."""

    json: bytes
    protobuf: bytes
    etag: str


def document(served: ServedResources = BY_DEFAULT) -> OpenApiDocument:
    return served.derived("openapi v2", lambda: build(served))


class _Encoded(NamedTuple):
    """A path or a definition."""

    json: msgspec.Raw
    protobuf: bytes


def build(served: ServedResources = BY_DEFAULT) -> OpenApiDocument:
    """Path by path: as plain values all paths are millions of objects, which take long to free in one go."""
    all_paths: dict[str, _Encoded] = {}
    schemas: dict[str, Schema] = {}
    for group_version in paths(served).values():
        made = build_document(group_version, served)
        for name, schema in made["components"]["schemas"].items():
            _merge(schemas, name, _schema(schema))
        for path, item in made["paths"].items():
            all_paths[path] = _encoded_path(path, item)
    definitions = {name: _encoded_schema(name, schemas.pop(name)) for name in sorted(schemas)}
    all_paths = dict(sorted(all_paths.items()))
    body = msgspec.json.encode(
        {
            "swagger": SWAGGER,
            "info": INFO,
            "paths": {path: found.json for path, found in all_paths.items()},
            "definitions": {name: found.json for name, found in definitions.items()},
        }
    )
    message = _message(all_paths.values(), definitions.values())
    return OpenApiDocument(body, message, f'"{hashlib.sha512(body).hexdigest().upper()}"')


def _encoded_path(path: str, item: Mapping[str, Any]) -> _Encoded:
    made = {
        key: _operation(value)
        if key in _METHODS
        else [_parameter(parameter) for parameter in value]
        for key, value in item.items()
    }
    json = msgspec.Raw(msgspec.json.encode(made))
    return _Encoded(json, delimited(2, _named(path, _path_message(made))))


def _encoded_schema(name: str, schema: Schema) -> _Encoded:
    json = msgspec.Raw(msgspec.json.encode(schema))
    return _Encoded(json, delimited(1, _named(name, _schema_message(schema))))


def _merge(definitions: dict[str, Schema], name: str, schema: Schema) -> None:
    """A type of several documents is one definition, with the kinds that it has in each of them."""
    kinds = "x-kubernetes-group-version-kind"
    known = definitions.setdefault(name, schema)
    if kinds in known:
        known[kinds] += [kind for kind in schema.get(kinds, ()) if kind not in known[kinds]]


def _schema(schema: Mapping[str, Any]) -> Schema:
    made = {key: value for key, value in schema.items() if key not in _ONLY_V3}
    match schema.get("allOf"):
        case [{"$ref": reference}]:
            made.pop("allOf")
            made["$ref"] = reference
        case [*several]:
            made["allOf"] = [_schema(below) for below in several]
    if "$ref" in made:
        made["$ref"] = made["$ref"].replace("#/components/schemas/", "#/definitions/")
        # Beside a reference only words count.
        made.pop("default", None)
    if "oneOf" in schema and "type" not in made:
        # A quantity, or a number or name of a port.
        made["type"] = "string"
    for key in _SCHEMAS:
        if isinstance(made.get(key), Mapping):
            made[key] = _schema(made[key])
    if "properties" in made:
        made["properties"] = {name: _schema(below) for name, below in made["properties"].items()}
    return made


def _parameter(parameter: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parameter.items() if key != "schema"} | dict(
        parameter["schema"]
    )


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    made = {
        key: value
        for key, value in operation.items()
        if key not in ("requestBody", "responses", "parameters")
    }
    body = operation.get("requestBody")
    parameters = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    if body:
        content = body["content"]
        made["consumes"] = list(content)
        schema = _schema(next(iter(content.values()))["schema"])
        needed = {"required": True} if body.get("required") else {}
        parameters.insert(0, {"name": "body", "in": "body", **needed, "schema": schema})
    if parameters:
        made["parameters"] = parameters
    made["responses"] = {}
    for code, answer in operation["responses"].items():
        content = answer.get("content")
        made["responses"][code] = {"description": answer["description"]}
        if content:
            made.setdefault("produces", list(content))
            made["responses"][code]["schema"] = _schema(next(iter(content.values()))["schema"])
    return made


# --- protobuf: messages of openapi.v2 ---


_DOCUMENT_SWAGGER, _DOCUMENT_INFO, _DOCUMENT_PATHS, _DOCUMENT_DEFINITIONS = 1, 2, 8, 9
_SCHEMA_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_DEFAULT, _REQUIRED, _ENUM, _ADDITIONAL, _TYPE, _ITEMS = 5, 19, 20, 21, 22, 23
_ALL_OF, _PROPERTIES, _EXTENSION = 24, 25, 31
_OPERATION_METHODS: Final = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_OPERATION_ID, _OPERATION_PARAMETERS, _OPERATION_EXTENSION = 5, 8, 13


def _message(all_paths: Iterable[_Encoded], definitions: Iterable[_Encoded]) -> bytes:
    """What clients in Go read from it: the definitions, and which query parameters operations take."""
    info = _text(1, INFO["title"]) + _text(2, INFO["version"])
    return b"".join(
        (
            _text(_DOCUMENT_SWAGGER, SWAGGER),
            delimited(_DOCUMENT_INFO, info),
            delimited(_DOCUMENT_PATHS, b"".join(found.protobuf for found in all_paths)),
            delimited(_DOCUMENT_DEFINITIONS, b"".join(found.protobuf for found in definitions)),
        )
    )


def _text(number: int, text: str) -> bytes:
    return delimited(number, text.encode())


def _named(name: str, content: bytes) -> bytes:
    return _text(1, name) + delimited(2, content)


def _any(value: Any) -> bytes:
    """A value as YAML; JSON is YAML."""
    return delimited(2, msgspec.json.encode(value))


def _extensions(number: int, found: Mapping[str, Any]) -> Iterable[bytes]:
    return (
        delimited(number, _named(name, _any(value)))
        for name, value in found.items()
        if name.startswith("x-")
    )


def _schema_message(schema: Mapping[str, Any]) -> bytes:
    parts = [_text(number, schema[key]) for key, number in _SCHEMA_TEXTS.items() if key in schema]
    if "default" in schema:
        parts.append(delimited(_DEFAULT, _any(schema["default"])))
    parts += [_text(_REQUIRED, name) for name in schema.get("required", ())]
    parts += [delimited(_ENUM, _any(value)) for value in schema.get("enum", ())]
    match schema.get("additionalProperties"):
        case bool() as allowed:
            parts.append(delimited(_ADDITIONAL, encode_tag(2, 0) + encode_varint(int(allowed))))
        case Mapping() as below:
            parts.append(delimited(_ADDITIONAL, delimited(1, _schema_message(below))))
    if "type" in schema:
        parts.append(delimited(_TYPE, _text(1, schema["type"])))
    if isinstance(schema.get("items"), Mapping):
        parts.append(delimited(_ITEMS, delimited(1, _schema_message(schema["items"]))))
    parts += [delimited(_ALL_OF, _schema_message(below)) for below in schema.get("allOf", ())]
    properties = (
        delimited(1, _named(name, _schema_message(below)))
        for name, below in schema.get("properties", {}).items()
    )
    if "properties" in schema:
        parts.append(delimited(_PROPERTIES, b"".join(properties)))
    parts += _extensions(_EXTENSION, schema)
    return b"".join(parts)


def _path_message(item: Mapping[str, Any]) -> bytes:
    shared = item.get("parameters", ())
    return b"".join(
        delimited(number, _operation_message(item[method], shared))
        for method, number in _OPERATION_METHODS.items()
        if method in item
    )


def _operation_message(operation: Mapping[str, Any], shared: Iterable[Any]) -> bytes:
    parts = [_text(_OPERATION_ID, operation["operationId"])]
    for parameter in (*operation.get("parameters", ()), *shared):
        if parameter["in"] == "query":
            query = _text(2, "query") + _text(4, parameter["name"]) + _text(6, parameter["type"])
            item = delimited(1, delimited(2, delimited(3, query)))
            parts.append(delimited(_OPERATION_PARAMETERS, item))
    parts += _extensions(_OPERATION_EXTENSION, operation)
    return b"".join(parts)
