"""HorizontalPodAutoscalers. They are stored as v2; `apiserver.watch_cache.autoscaler_versions` converts."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, always_written, change, fill, part
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, count_at, joined, text_at
from allot.validation.autoscaling import validate_autoscaler

_UNKNOWN: Final = "<unknown>"
_CPU: Final = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_DOUBLE: Final = {"type": "Percent", "value": 100, "periodSeconds": 15}
_SCALE_UP: Final = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _DOUBLE],
}
_SCALE_DOWN: Final = {"selectPolicy": "Max", "policies": [_DOUBLE]}


def autoscaler_defaults(autoscaler: Data) -> Data:
    return change(change(autoscaler, "spec", _spec_defaults), "status", _status_defaults)


def _status_defaults(status: Data) -> Data:
    return always_written(status, "currentMetrics")


def _spec_defaults(spec: Data) -> Data:
    spec = fill(spec, minReplicas=1)
    if not spec.get("metrics"):
        spec = {**spec, "metrics": [_CPU]}
    return change(spec, "behavior", _behavior_defaults)


def _behavior_defaults(behavior: Data) -> Data:
    up = {**_SCALE_UP, **part(behavior, "scaleUp")}
    down = {**_SCALE_DOWN, **part(behavior, "scaleDown")}
    filled = {**behavior, "scaleUp": up, "scaleDown": down}
    return behavior if filled == behavior else filled


def _autoscaler_row(autoscaler: RawObject, age: Age) -> list[Cell]:
    least = autoscaler.get("spec", "minReplicas")
    target = ("spec", "scaleTargetRef")
    return [
        autoscaler.metadata.name,
        f"{text_at(autoscaler, *target, 'kind')}/{text_at(autoscaler, *target, 'name')}",
        _targets(autoscaler.get("spec", "metrics", default=[])),
        "<unset>" if least is None else str(least),
        count_at(autoscaler, "spec", "maxReplicas"),
        count_at(autoscaler, "status", "currentReplicas"),
        age_of(autoscaler, age),
    ]


def _targets(metrics: list[dict[str, Any]], limit: int = 2) -> str:
    if not metrics:
        return "<none>"
    shown = joined(map(_target, metrics[:limit]), ", ")
    more = len(metrics) - limit
    return f"{shown} + {more} more..." if more > 0 else shown


def _target(metric: dict[str, Any]) -> str:
    """Nothing measures, so that the current value is unknown."""
    source: dict[str, Any] = next((v for v in metric.values() if isinstance(v, dict)), {})
    target = source.get("target") or {}
    match metric.get("type"):
        case "Resource" | "ContainerResource":
            average = target.get("averageValue")
            wanted = average or f"{target.get('averageUtilization', 0)}%"
            return f"{source.get('name', '')}: {_UNKNOWN}/{wanted}"
        case "Pods":
            return f"{_UNKNOWN}/{target.get('averageValue')}"
        case _:
            average = target.get("averageValue")
            return f"{_UNKNOWN}/{average} (avg)" if average else f"{_UNKNOWN}/{target.get('value')}"


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=validate_autoscaler,
            status={"desiredReplicas": 0, "currentMetrics": None},
            generation=COUNTED,
        ),
    ),
    defaults=autoscaler_defaults,
    table=Table(
        (
            NAME,
            Column("Reference"),
            Column("Targets"),
            Column("MinPods"),
            Column("MaxPods"),
            Column("Replicas"),
            AGE,
        ),
        _autoscaler_row,
    ),
    subresources=(STATUS,),
)
