"""Custom resources in OpenAPI: the schemas of their definitions, with what every object has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.apiserver.http.openapi.components import reference
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.schemas.tables import META

Schema = dict[str, Any]

_METADATA: Final = {
    "allOf": [reference(f"{META}.ObjectMeta")],
    "description": "Name, namespace, labels and all else that every object has.",
}
_TYPE: Final = {
    "apiVersion": {
        "type": "string",
        "description": "The group and version this object is written in.",
    },
    "kind": {"type": "string", "description": "The kind of this object."},
}


def custom_name(resource: Resource) -> str:
    """The name of the schema: `com.example.v1.Widget`."""
    return f"{_package(resource)}.{resource.kind}"


def custom_list_name(resource: Resource) -> str:
    return f"{_package(resource)}.{resource.info.list_name}"


def _package(resource: Resource) -> str:
    return f"{'.'.join(reversed(resource.group.split('.')))}.{resource.versions[0]}"


def custom_schemas(resource: Resource) -> dict[str, Schema]:
    """The schemas of a custom resource and of lists of it; none for a built-in one."""
    custom = resource.custom
    if custom is None:
        return {}
    gvk = resource.gvk(custom.name)
    kind = gvk._asdict()
    whole = {
        **_published(custom.schema.source, is_resource=True),
        "x-kubernetes-group-version-kind": [kind],
    }
    name = custom_name(resource)
    several = {
        "description": f"A list of objects of kind {resource.kind}.",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_TYPE,
            "items": {
                "description": "The objects.",
                "type": "array",
                "items": reference(name),
            },
            "metadata": {
                "allOf": [reference(f"{META}.ListMeta")],
                "description": "The version of the list, and where its next page starts.",
            },
        },
        "x-kubernetes-group-version-kind": [{**kind, "kind": resource.info.list_name}],
    }
    return {name: whole, custom_list_name(resource): several}


def _published(source: Mapping[str, Any], *, is_resource: bool = False) -> Schema:
    """A schema with the type and metadata of the objects in it."""
    made: Schema = dict(source)
    properties = {
        name: _published(below or {}) for name, below in (source.get("properties") or {}).items()
    }
    if is_resource or source.get("x-kubernetes-embedded-resource"):
        properties = {**properties, **_TYPE, "metadata": _METADATA}
    if properties:
        made["properties"] = dict(sorted(properties.items()))
    for name in ("items", "additionalProperties"):
        if isinstance(source.get(name), dict):
            made[name] = _published(source[name])
    return made
