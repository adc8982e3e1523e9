"""HorizontalPodAutoscalers, in the form of v2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from allot.api.quantity import Quantity, QuantityError, quantity_from_json
from allot.api.raw import RawObject
from allot.validation.core_names import path_segment_problems
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.label_selector import validate_label_selector
from allot.validation.names import validate_label
from allot.validation.parts import Part, part, parts, text

SPEC: Final = FieldPath("spec")
_SOURCES: Final = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_TARGET_TYPES: Final = ("Utilization", "Value", "AverageValue")
_POLICIES: Final = ("Percent", "Pods")
_SELECTIONS: Final = ("Disabled", "Max", "Min")
MAX_PERIOD_SECONDS: Final = 1800
MAX_WINDOW_SECONDS: Final = 3600


def validate_autoscaler(autoscaler: RawObject) -> Iterator[FieldError]:
    spec = autoscaler.get("spec", default={})
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 0:
        yield invalid(SPEC / "minReplicas", least, "must be greater than or equal to 0")
    if most < 1:
        yield required(SPEC / "maxReplicas")
    if least is not None and most < least:
        yield invalid(SPEC / "maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target = part(spec, "scaleTargetRef")
    yield from _validate_reference(target, SPEC / "scaleTargetRef")
    if not text(target, "apiVersion"):
        path = SPEC / "scaleTargetRef" / "apiVersion"
        yield invalid(path, "", "apiVersion must specify API group")
    elif (version := text(target, "apiVersion")).count("/") > 1:
        path = SPEC / "scaleTargetRef" / "apiVersion"
        yield invalid(path, version, f"unexpected GroupVersion string: {version}")
    metrics = parts(spec, "metrics")
    for index, metric in enumerate(metrics):
        yield from _validate_metric(metric, SPEC / "metrics" @ index)
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        yield forbidden(
            SPEC / "metrics",
            "must specify at least one Object or External metric to support scaling to zero"
            " replicas",
        )
    for direction in ("scaleUp", "scaleDown"):
        rules = part(spec, "behavior").get(direction)
        if isinstance(rules, dict):
            yield from _validate_rules(rules, SPEC / "behavior" / direction)


def _validate_reference(reference: Part, path: FieldPath) -> Iterator[FieldError]:
    for field in ("kind", "name"):
        value = text(reference, field)
        if not value:
            yield required(path / field)
        for problem in path_segment_problems(value):
            yield invalid(path / field, value, problem)


def _validate_container(name: str, path: FieldPath) -> Iterator[FieldError]:
    if name:
        yield from validate_label(name, path)
    else:
        yield required(path, "must specify a container")


def _validate_metric(metric: Part, path: FieldPath) -> Iterator[FieldError]:
    type_ = text(metric, "type")
    if not type_:
        yield required(path / "type", "must specify a metric source type")
    if type_ not in _SOURCES:
        yield not_supported(path / "type", type_, tuple(_SOURCES))
        return
    field = _SOURCES[type_]
    for other in _SOURCES.values():
        if other != field and metric.get(other) is not None:
            yield forbidden(path / other, "must populate the given metric source only")
    if metric.get(field) is None:
        yield required(path / field, "must populate information for the given metric source")
        return
    source = part(metric, field)
    target, place = part(source, "target"), path / field / "target"
    match type_:
        case "Resource" | "ContainerResource":
            if not text(source, "name"):
                yield required(path / field / "name", "must specify a resource name")
            if type_ == "ContainerResource":
                yield from _validate_container(
                    text(source, "container"), path / field / "container"
                )
            yield from _validate_resource_target(target, place)
        case "Pods":
            yield from _validate_identifier(part(source, "metric"), path / field / "metric")
            yield from _validate_target(target, place)
            if _positive(target, "averageValue") is not True:
                yield required(
                    place / "averageValue", "must specify a positive target averageValue"
                )
        case "Object":
            yield from _validate_reference(
                part(source, "describedObject"), path / field / "describedObject"
            )
            yield from _validate_identifier(part(source, "metric"), path / field / "metric")
            yield from _validate_target(target, place)
            if target.get("value") is None and target.get("averageValue") is None:
                yield required(
                    place / "averageValue", "must set either a target value or averageValue"
                )
        case "External":
            yield from _validate_identifier(part(source, "metric"), path / field / "metric")
            yield from _validate_target(target, place)
            if target.get("value") is None and target.get("averageValue") is None:
                yield required(
                    place / "averageValue",
                    "must set either a target value for metric or a per-pod target",
                )
            elif target.get("value") is not None and target.get("averageValue") is not None:
                yield forbidden(
                    place / "value",
                    "may not set both a target value for metric and a per-pod target",
                )


def _validate_identifier(metric: Part, path: FieldPath) -> Iterator[FieldError]:
    name = text(metric, "name")
    if not name:
        yield required(path / "name", "must specify a metric name")
    for problem in path_segment_problems(name):
        yield invalid(path / "name", name, problem)
    if isinstance(metric.get("selector"), dict):
        yield from validate_label_selector(part(metric, "selector"), path / "selector")


def _validate_resource_target(target: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from _validate_target(target, path)
    utilization, average = target.get("averageUtilization"), target.get("averageValue")
    if utilization is None and average is None:
        yield required(
            path / "averageUtilization",
            "must set either a target raw value or a target utilization",
        )
    elif utilization is not None and average is not None:
        yield forbidden(
            path / "averageValue",
            "may not set both a target raw value and a target utilization",
        )


def _validate_target(target: Part, path: FieldPath) -> Iterator[FieldError]:
    type_ = text(target, "type")
    if not type_:
        yield required(path / "type", "must specify a metric target type")
    elif type_ not in _TARGET_TYPES:
        yield invalid(path / "type", type_, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        if target.get(field) is not None and not _positive(target, field):
            yield invalid(path / field, str(target[field]), "must be positive")
    utilization = target.get("averageUtilization")
    if isinstance(utilization, int) and utilization < 1:
        yield invalid(path / "averageUtilization", utilization, "must be greater than 0")


def _amount(value: Any) -> Quantity | None:
    try:
        return quantity_from_json(value)
    except QuantityError:
        return None


def _positive(target: Part, field: str) -> bool | None:
    value = target.get(field)
    amount = _amount(value) if value is not None else None
    return None if amount is None else amount.sign > 0


def _validate_rules(rules: Part, path: FieldPath) -> Iterator[FieldError]:
    window = rules.get("stabilizationWindowSeconds")
    if isinstance(window, int):
        place = path / "stabilizationWindowSeconds"
        if window < 0:
            yield invalid(place, window, "must be greater than or equal to zero")
        if window > MAX_WINDOW_SECONDS:
            yield invalid(place, window, f"must be less than or equal to {MAX_WINDOW_SECONDS}")
    selection = rules.get("selectPolicy")
    if selection is not None and selection not in _SELECTIONS:
        yield not_supported(path / "selectPolicy", selection, _SELECTIONS)
    policies = parts(rules, "policies")
    if not policies:
        yield required(path / "policies", "must specify at least one Policy")
    for index, policy in enumerate(policies):
        yield from _validate_policy(policy, path / "policies" @ index)
    tolerance = rules.get("tolerance")
    amount = _amount(tolerance) if tolerance is not None else None
    if amount is not None and amount.sign < 0:
        yield invalid(path / "tolerance", str(tolerance), "must be greater than or equal to 0")


def _validate_policy(policy: Part, path: FieldPath) -> Iterator[FieldError]:
    type_ = text(policy, "type")
    if type_ not in _POLICIES:
        yield not_supported(path / "type", type_, _POLICIES)
    for field in ("value", "periodSeconds"):
        number = policy.get(field) or 0
        if number <= 0:
            yield invalid(path / field, number, "must be greater than zero")
    period = policy.get("periodSeconds") or 0
    if period > MAX_PERIOD_SECONDS:
        yield invalid(
            path / "periodSeconds", period, f"must be less than or equal to {MAX_PERIOD_SECONDS}"
        )
