"""Pods from the template of a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.client.resources import Resource
from allot.controllers.workloads.accessors import Json, namespace_of
from allot.controllers.workloads.ownership import controller_reference


def pod_from_template(
    template: Mapping[str, Any], resource: Resource[Any], owner: RawObject
) -> Pod:
    """A pod of `owner`, an object of `resource`. It has no name yet."""
    template_metadata: Json = template.get("metadata") or {}
    metadata: Json = {
        "namespace": namespace_of(owner),
        "ownerReferences": [controller_reference(resource, owner)],
    }
    for field in ("labels", "annotations", "finalizers"):
        if template_metadata.get(field):
            metadata[field] = template_metadata[field]
    return Pod(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": template.get("spec") or {},
        }
    )


def with_metadata_entries(pod: Pod, field: str, entries: Mapping[str, str]) -> Pod:
    """The pod with these additional labels or annotations."""
    merged = {**pod.get("metadata", field, default={}), **entries}
    return pod.with_value(merged, "metadata", field)


def with_finalizer(pod: Pod, finalizer: str) -> Pod:
    finalizers = [*pod.get("metadata", "finalizers", default=())]
    if finalizer not in finalizers:
        finalizers.append(finalizer)
    return pod.with_value(finalizers, "metadata", "finalizers")
