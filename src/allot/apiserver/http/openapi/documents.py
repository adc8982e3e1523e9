"""The index of OpenAPI documents and the documents, each made when it is first asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.identities import GroupVersion
from allot.apiserver.http.openapi import components
from allot.apiserver.http.openapi.custom_schemas import custom_schemas
from allot.apiserver.http.openapi.operations import Operation, base_path, operations, root_operation
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.registry.served import BY_DEFAULT, ServedResources
from allot.apiserver.schemas.fields import Type
from allot.apiserver.schemas.tables import META
from allot.apiserver.schemas.types import reachable

INFO: Final = {"title": "Kubernetes", "version": "1.38"}
_SECURITY: Final = {
    "BearerToken": {
        "type": "apiKey",
        "description": "A token in the form `Bearer <token>`.",
        "name": "authorization",
        "in": "header",
    }
}
_ALWAYS: Final = {f"{META}.ObjectMeta", f"{META}.ListMeta"}
"""Types that schemas of custom resources refer to."""
_PIECES_DEPTH: Final = 3
"""As deep as schemas are in a document: components, schemas, name."""
_REFERENCE: Final = "#/components/schemas/"


def paths(served: ServedResources = BY_DEFAULT) -> dict[str, GroupVersion]:
    """Every document by its path: `api/v1`, `apis/resource.k8s.io/v1`."""
    return served.derived("openapi paths", lambda: _paths(served))


def _paths(served: ServedResources) -> dict[str, GroupVersion]:
    found = [
        GroupVersion(group, version)
        for group in served.groups
        for version in served.versions_of(group)
    ]
    return {base_path(group_version).removeprefix("/"): group_version for group_version in found}


def index(served: ServedResources = BY_DEFAULT) -> bytes:
    """What `/openapi/v3` answers: where each document is, with its hash."""
    return served.derived("openapi index", lambda: _index(served))


def _index(served: ServedResources) -> bytes:
    found = {
        path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={document_hash(path, served)}"}
        for path in sorted(paths(served))
    }
    return msgspec.json.encode({"paths": found})


def document(path: str, served: ServedResources = BY_DEFAULT) -> bytes | None:
    """The document of a group and version; None if there is no such path."""
    group_version = paths(served).get(path)
    return None if group_version is None else _made(group_version, served).body


def document_hash(path: str, served: ServedResources = BY_DEFAULT) -> str | None:
    """The hash that the index names, and that serves as the document's ETag."""
    group_version = paths(served).get(path)
    return None if group_version is None else _made(group_version, served).hash


class _Document(NamedTuple):
    body: bytes
    hash: str


def _made(group_version: GroupVersion, served: ServedResources) -> _Document:
    resources = tuple(served.resources_in(group_version))
    if any(resource.custom is not None for resource in resources):
        return served.derived(("openapi", group_version), lambda: _encoded(group_version, served))
    return _built_in(group_version, resources, served)


_documents: Final[dict[tuple[GroupVersion, tuple[Resource, ...], frozenset[str]], _Document]] = {}


def _built_in(
    group_version: GroupVersion, resources: tuple[Resource, ...], served: ServedResources
) -> _Document:
    """Documents without custom resources are made once for all servers of the process."""
    key = group_version, resources, served.hidden_fields(group_version)
    if key not in _documents:
        _documents[key] = _encoded(group_version, served)
    return _documents[key]


def _encoded(group_version: GroupVersion, served: ServedResources) -> _Document:
    body = encode_in_pieces(build_document(group_version, served))
    return _Document(body, hashlib.sha512(body).hexdigest().upper())


def encode_in_pieces(value: Any, depth: int = _PIECES_DEPTH) -> bytes:
    """JSON of a document of megabytes, one path and one schema at a time, so that other threads run in between."""
    if not depth or not isinstance(value, dict):
        return msgspec.json.encode(value)
    pieces = {key: msgspec.Raw(encode_in_pieces(below, depth - 1)) for key, below in value.items()}
    return msgspec.json.encode(pieces)


def build_document(
    group_version: GroupVersion, served: ServedResources = BY_DEFAULT
) -> dict[str, Any]:
    """A document as plain JSON values."""
    found = [root_operation(group_version)]
    custom: dict[str, Any] = {}
    for resource in served.resources_in(group_version):
        found += operations(resource, group_version.version)
        custom |= custom_schemas(resource)
    types = reachable(_type_names(found) - custom.keys() | (_ALWAYS if custom else set()))
    hidden = served.hidden_fields(group_version)
    if hidden:
        types = {name: _shown(type_, hidden) for name, type_ in types.items()}
    return {
        "openapi": "3.0.0",
        "info": INFO,
        "paths": _path_items(found),
        "components": {
            "schemas": dict(sorted((components.schemas(types, group_version) | custom).items())),
            "securitySchemes": _SECURITY,
        },
    }


def _shown(type_: Type, hidden: Collection[str]) -> Type:
    short = type_.name.rpartition(".")[2]
    fields = {
        name: field for name, field in type_.fields.items() if f"{short}.{name}" not in hidden
    }
    return type_._replace(fields=fields) if len(fields) < len(type_.fields) else type_


def _type_names(found: Iterable[Operation]) -> set[str]:
    """The types that operations send and answer, and that of watch events, which none names."""
    contents = [
        part["content"]
        for operation in found
        for part in (*operation.json["responses"].values(), operation.json.get("requestBody", {}))
        if "content" in part
    ]
    references = {media["schema"]["$ref"] for content in contents for media in content.values()}
    names = {reference.removeprefix(_REFERENCE) for reference in references}
    return (names | {f"{META}.WatchEvent"}) - components.IRREGULAR.keys()


def _path_items(found: Iterable[Operation]) -> dict[str, Any]:
    """Operations by path and method; parameters that all methods of a path share are listed once."""
    by_path: dict[str, list[Operation]] = {}
    for operation in found:
        by_path.setdefault(operation.path, []).append(operation)
    items: dict[str, Any] = {}
    for path, ones in sorted(by_path.items()):
        shared = set.intersection(*(set(operation.parameters) for operation in ones))
        item = items[path] = {}
        for operation in ones:
            own = [one for one in operation.parameters if one not in shared]
            item[operation.method] = operation.json
            if own:
                item[operation.method]["parameters"] = [one.as_json() for one in sorted(own)]
        if shared:
            item["parameters"] = [one.as_json() for one in sorted(shared)]
    return items
