"""The scale endpoint: how many pods a workload runs and should run, in one form for all kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.api.base import replace
from allot.api.raw import RawObject
from allot.api.selectors import selector_string
from allot.apiserver.kinds.custom_versions import ScalePaths
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Table, number
from allot.apiserver.printers.words import age_of
from allot.validation.container_resources import NOT_NEGATIVE
from allot.validation.fields import FieldError, FieldPath, invalid

WORKLOAD_PATHS: Final = ScalePaths(("spec", "replicas"), ("status", "replicas"))
_SHOWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def _scale_row(scale: RawObject, age: Age) -> list[Cell]:
    return [
        scale.metadata.name,
        scale.get("spec", "replicas", default=0),
        scale.get("status", "replicas", default=0),
        age_of(scale, age),
    ]


SCALE_TABLE: Final = Table((NAME, number("Desired"), number("Available"), AGE), _scale_row)


def scale_of(workload: RawObject, paths: ScalePaths | None = None) -> dict[str, Any]:
    """The autoscaling/v1 Scale of a workload; `paths` say where a custom resource has its numbers."""
    metadata = workload.get("metadata", default={})
    if paths is None:
        selector = workload.get("spec", "selector", default={})
        if workload.kind == "ReplicationController":
            selector = {"matchLabels": selector}
        labels = selector_string(selector)
    else:
        labels = workload.get(*paths.selector, default="") if paths.selector else ""
    paths = paths or WORKLOAD_PATHS
    status: dict[str, Any] = {"replicas": workload.get(*paths.status_replicas, default=0)}
    wanted = workload.get(*paths.spec_replicas, default=0)
    if labels:
        status["selector"] = labels
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _SHOWN_METADATA if name in metadata},
        # As everywhere in Kubernetes, a number that is optional and zero is not written.
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def validate_scale(scale: Mapping[str, Any]) -> Iterator[FieldError]:
    replicas = _replicas(scale)
    if replicas < 0:
        yield invalid(FieldPath("spec") / "replicas", replicas, NOT_NEGATIVE)


def with_scale(
    workload: RawObject, scale: Mapping[str, Any], paths: ScalePaths | None = None
) -> RawObject:
    """The workload at another size. The version the client saw goes along, for the conflict check."""
    sent = scale.get("metadata") or {}
    version, uid = sent.get("resourceVersion"), sent.get("uid")
    if version or uid:
        metadata = workload.metadata
        seen = replace(
            metadata,
            resource_version=version or metadata.resource_version,
            uid=uid or metadata.uid,
        )
        workload = workload.with_metadata(seen)
    return workload.with_value(_replicas(scale), *(paths or WORKLOAD_PATHS).spec_replicas)


def _replicas(scale: Mapping[str, Any]) -> int:
    replicas = (scale.get("spec") or {}).get("replicas")
    return replicas if isinstance(replicas, int) else 0
