"""Accessors for raw objects of any kind: identity, age, labels, replicas."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from allot.api.raw import RawObject
from allot.api.times import read_time

Json = dict[str, Any]

LONG_AGO: Final = datetime(1, 1, 1, tzinfo=UTC)


def uid_of(obj: RawObject) -> str:
    return str((obj.data.get("metadata") or {}).get("uid") or "")


def name_of(obj: RawObject) -> str:
    return obj.key.name


def namespace_of(obj: RawObject) -> str:
    return obj.key.namespace


def is_deleting(obj: RawObject) -> bool:
    return obj.get("metadata", "deletionTimestamp") is not None


def labels_of(obj: RawObject) -> Mapping[str, str]:
    return obj.data["metadata"].get("labels") or {}


def annotations_of(obj: RawObject) -> Mapping[str, str]:
    annotations: Mapping[str, str] = obj.get("metadata", "annotations", default={})
    return annotations


def generation_of(obj: RawObject) -> int:
    return int(obj.get("metadata", "generation", default=0))


def created_at(obj: RawObject) -> datetime:
    return read_time(obj.get("metadata", "creationTimestamp")) or LONG_AGO


def selector_of(workload: RawObject) -> Json:
    """The label selector. That of a replication controller is a map of labels."""
    selector: Json = workload.get("spec", "selector", default={})
    if any(isinstance(value, str) for value in selector.values()):
        return {"matchLabels": selector}
    return selector


def template_of(workload: RawObject) -> Json:
    template: Json = workload.get("spec", "template", default={})
    return template


def replicas_of(workload: RawObject) -> int:
    """`spec.replicas`."""
    return int(workload.get("spec", "replicas", default=1))


def min_ready_seconds_of(workload: RawObject) -> int:
    return int(workload.get("spec", "minReadySeconds", default=0))


def counted(workload: RawObject, field: str) -> int:
    """A count in its status; zero if it is not set."""
    return int(workload.get("status", field, default=0))


def without_nulls(value: Any) -> Any:
    """JSON without null fields, which are equivalent to missing ones."""
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in value]
    return value


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, apart from null fields."""
    return bool(one == other or without_nulls(one) == without_nulls(other))
