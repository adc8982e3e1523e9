"""Workload kinds: selectors and pod templates. Jobs and cron jobs are in `jobs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.api.raw import RawObject
from allot.api.selectors import is_empty_selector, labels_selector, selects_labels
from allot.validation.container_resources import NOT_NEGATIVE
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.label_selector import validate_label_selector
from allot.validation.metadata import IMMUTABLE
from allot.validation.parts import as_part, parts
from allot.validation.pod_templates import validate_lasting_template, validate_template
from allot.validation.rollouts import validate_number_or_percentage, validate_rollout

SPEC: Final = FieldPath("spec")
SELECTOR: Final = SPEC / "selector"
TEMPLATE: Final = SPEC / "template"
DOES_NOT_MATCH: Final = "`selector` does not match template `labels`"

# What Kubernetes calls the kind when its selector is empty.
_CALLED: Final = {
    "Deployment": "deployment",
    "ReplicaSet": "deployment",
    "StatefulSet": "statefulset",
    "DaemonSet": "daemonset",
}
_NO_SELECTOR: Final = {
    "Deployment": "invalid label selector",
    "ReplicaSet": "invalid label selector",
    "StatefulSet": "",
}
"""What is said about a selector that selects nothing because it is wrong; their templates are not looked at then."""
_COUNTS: Final = (
    "replicas",
    "minReadySeconds",
    "revisionHistoryLimit",
    "progressDeadlineSeconds",
    "parallelism",
    "completions",
    "backoffLimit",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
    "startingDeadlineSeconds",
)


def validate_workload(workload: RawObject) -> Iterator[FieldError]:
    """Deployments, replica sets, stateful sets and daemon sets."""
    spec = as_part(workload.get("spec"))
    yield from validate_counts(spec, SPEC)
    yield from _validate_selector(workload.kind, spec)
    owner = "ReplicaSet" if workload.kind == "Deployment" else workload.kind
    if not (workload.kind in _NO_SELECTOR and _is_wrong(spec.get("selector"))):
        yield from validate_lasting_template(as_part(spec.get("template")), TEMPLATE, owner)
    yield from validate_rollout(workload.kind, spec, SPEC)


def _validate_selector(kind: str, spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """The selector, and whether it selects the pods of the template."""
    selector, labels = spec.get("selector"), template_labels(spec)
    if selector is None:
        if kind != "DaemonSet":
            yield required(SELECTOR)
        yield invalid(TEMPLATE / "metadata" / "labels", labels or None, DOES_NOT_MATCH)
        return
    problems = list(validate_label_selector(selector, SELECTOR))
    yield from problems
    if is_empty_selector(selector):
        yield invalid(SELECTOR, selector, f"empty selector is invalid for {_CALLED[kind]}")
    elif problems:
        if kind in _NO_SELECTOR:
            yield invalid(SELECTOR, _shown_selector(selector), _NO_SELECTOR[kind])
    elif not selects_labels(selector, labels):
        yield invalid(TEMPLATE / "metadata" / "labels", labels or None, DOES_NOT_MATCH)


def _is_wrong(selector: Any) -> bool:
    return bool(selector) and any(validate_label_selector(selector, SELECTOR))


def _shown_selector(selector: Mapping[str, Any]) -> dict[str, Any]:
    """With the fields that Kubernetes always writes."""
    expressions = [
        {"key": "", "operator": "", **each} for each in parts(selector, "matchExpressions")
    ]
    return dict(selector) | ({"matchExpressions": expressions} if expressions else {})


def validate_workload_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    selector = new.get("spec", "selector")
    if selector != old.get("spec", "selector"):
        yield invalid(SELECTOR, selector, IMMUTABLE)


_STATEFUL_FIELDS: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def validate_stateful_set_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    if _fixed_part(new) != _fixed_part(old):
        listed = "', '".join(_STATEFUL_FIELDS[:-1])
        yield forbidden(
            SPEC,
            "updates to statefulset spec for fields other than "
            f"'{listed}' and '{_STATEFUL_FIELDS[-1]}' are forbidden",
        )


def _fixed_part(stateful_set: RawObject) -> dict[str, Any]:
    spec = as_part(stateful_set.get("spec"))
    return {name: value for name, value in spec.items() if name not in _STATEFUL_FIELDS}


def validate_replication_controller(controller: RawObject) -> Iterator[FieldError]:
    spec = as_part(controller.get("spec"))
    yield from validate_counts(spec, SPEC)
    selector = as_part(spec.get("selector"))
    if not selector:
        yield required(SELECTOR)
    if spec.get("template") is None:
        yield required(TEMPLATE)
        return
    labels = template_labels(spec)
    if selector and not labels_selector(selector).matches(labels):
        yield invalid(TEMPLATE / "metadata" / "labels", labels or None, DOES_NOT_MATCH)
    yield from validate_lasting_template(as_part(spec["template"]), TEMPLATE, controller.kind)


def validate_pod_template(template: RawObject) -> Iterator[FieldError]:
    yield from validate_template(as_part(template.get("template")), FieldPath("template"))


_UNHEALTHY_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")


def validate_budget(budget: RawObject) -> Iterator[FieldError]:
    spec = as_part(budget.get("spec"))
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield invalid(SPEC, spec, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field)
        yield from validate_number_or_percentage(value, SPEC / field)
        if isinstance(value, str) and value[:-1].isdecimal() and int(value[:-1]) > 100:
            yield invalid(SPEC / field, value, "must not be greater than 100%")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _UNHEALTHY_POLICIES:
        yield not_supported(SPEC / "unhealthyPodEvictionPolicy", policy, _UNHEALTHY_POLICIES)
    yield from validate_label_selector(as_part(spec.get("selector")), SELECTOR)


def validate_budget_status(budget: RawObject) -> Iterator[FieldError]:
    for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        count = budget.get("status", field)
        if isinstance(count, int) and count < 0:
            yield invalid(FieldPath("status") / field, count, NOT_NEGATIVE)


# --- parts ---


def validate_counts(spec: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    for field in _COUNTS:
        value = spec.get(field)
        if isinstance(value, int) and value < 0:
            yield invalid(path / field, value, NOT_NEGATIVE)


def template_labels(spec: Mapping[str, Any]) -> dict[str, str]:
    template = as_part(spec.get("template"))
    return as_part(as_part(template.get("metadata")).get("labels"))
