"""HorizontalPodAutoscalers in both of their versions: v2, as they are stored, and v1.

v1 knows the CPU utilization alone. Other metrics and the behavior are in annotations there, so that nothing is lost on
the way and back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

V1: Final = "v1"
_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS, _BEHAVIOR = f"{_PREFIX}metrics", f"{_PREFIX}behavior"
_PERCENTAGE: Final = "targetCPUUtilizationPercentage"
Json = dict[str, Any]


def to_v2(autoscaler: Mapping[str, Any]) -> Json:
    """A v1 autoscaler as v2."""
    spec: Json = dict(autoscaler.get("spec") or {})
    metadata: Json = dict(autoscaler.get("metadata") or {})
    annotations: Json = dict(metadata.get("annotations") or {})
    metrics = _read(annotations.pop(_METRICS, None), list)
    behavior = _read(annotations.pop(_BEHAVIOR, None), dict)
    percentage = spec.pop(_PERCENTAGE, None)
    if percentage is not None:
        target = {"type": "Utilization", "averageUtilization": percentage}
        metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}, *metrics]
    if metrics:
        spec["metrics"] = metrics
    if behavior:
        spec["behavior"] = behavior
    return _whole(autoscaler, spec, metadata, annotations)


def to_v1(autoscaler: Mapping[str, Any]) -> Json:
    """A v2 autoscaler as v1."""
    spec: Json = dict(autoscaler.get("spec") or {})
    metadata: Json = dict(autoscaler.get("metadata") or {})
    annotations: Json = dict(metadata.get("annotations") or {})
    metrics: list[Json] = spec.pop("metrics", None) or []
    behavior = spec.pop("behavior", None)
    cpu = next((metric for metric in metrics if _utilization(metric) is not None), None)
    if cpu is not None:
        spec[_PERCENTAGE] = _utilization(cpu)
        metrics = [metric for metric in metrics if metric is not cpu]
    if metrics:
        annotations[_METRICS] = json.dumps(metrics, separators=(",", ":"))
    if behavior:
        annotations[_BEHAVIOR] = json.dumps(behavior, separators=(",", ":"))
    status: Json = {"currentReplicas": 0, **(autoscaler.get("status") or {})}
    status.pop("currentMetrics", None)
    status.pop("conditions", None)
    return {**_whole(autoscaler, spec, metadata, annotations), "status": status}


def _utilization(metric: Json) -> int | None:
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    value = (resource.get("target") or {}).get("averageUtilization")
    return value if isinstance(value, int) else None


def _read(text: object, type_: type[Any]) -> Any:
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        value = None
    return value if isinstance(value, type_) else type_()


def _whole(autoscaler: Mapping[str, Any], spec: Json, metadata: Json, annotations: Json) -> Json:
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    return {**autoscaler, "metadata": metadata, "spec": spec}
