"""The resources of a CustomResourceDefinition: one per version, all stored in one place."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from allot.api.custom_resources import CustomResourceDefinition
from allot.api.kinds import Kind
from allot.apiserver.kinds.custom_resource.columns import table_of
from allot.apiserver.kinds.custom_resource.strategy import CustomResourceStrategy
from allot.apiserver.kinds.custom_versions import CustomKind, CustomVersion
from allot.apiserver.kinds.definition import SCALE, STATUS, KindDefinition, Subresource
from allot.apiserver.kinds.resources import Resource, resource_for

VERBS: Final = (
    "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch",
)  # fmt: skip


def resources_of(definition: CustomResourceDefinition) -> CustomKind:
    """The kind that a definition adds, with a resource for each of its versions."""
    kind = CustomKind(definition)
    for version in kind.versions.values():
        kind.resources[version.name] = _resource(kind, version)
    return kind


def _resource(kind: CustomKind, version: CustomVersion) -> Resource:
    definition = kind.definition
    names = definition.accepted_names
    row = Kind(
        definition.group,
        names["kind"],
        names["plural"],
        (version.name,),
        definition.is_namespaced,
        tuple(names.get("shortNames") or ()),
        tuple(names.get("categories") or ()),
        singular=names.get("singular") or "",
        list_name=names.get("listKind") or "",
    )
    subresources: list[Subresource] = []
    if version.has_status:
        subresources.append(STATUS)
    if version.scale is not None:
        subresources.append(SCALE)
    return resource_for(
        row,
        KindDefinition(
            strategy=partial(CustomResourceStrategy, version),
            table=table_of(version.source.get("additionalPrinterColumns") or ()),
            subresources=tuple(subresources),
            selectable_fields=_selectable(version.source.get("selectableFields") or ()),
            verbs=VERBS,
        ),
        version,
    )


def _selectable(fields: Any) -> dict[str, str]:
    paths = [field["jsonPath"].lstrip(".") for field in fields]
    return {path: path for path in paths}
