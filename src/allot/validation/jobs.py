"""Jobs, whose selectors the server makes unless they have their own, and cron jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.api.cron_schedule import ScheduleError, parse_schedule
from allot.api.raw import RawObject
from allot.api.selectors import selects_labels
from allot.validation.fields import FieldError, FieldPath, invalid, not_supported, required
from allot.validation.internal_types import internal_value
from allot.validation.job_execution import validate_execution
from allot.validation.label_selector import validate_label_selector
from allot.validation.metadata import IMMUTABLE
from allot.validation.parts import as_part
from allot.validation.pod_templates import validate_template
from allot.validation.workloads import (
    DOES_NOT_MATCH,
    SELECTOR,
    SPEC,
    TEMPLATE,
    template_labels,
    validate_counts,
)

JOB_RESTART_POLICIES: Final = ("OnFailure", "Never")
CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
LABELS: Final = TEMPLATE / "metadata" / "labels"


def validate_new_job(job: RawObject) -> Iterator[FieldError]:
    """A new job, with the labels and the selector that the server makes unless they are the client's business."""
    spec = as_part(job.get("spec"))
    if not spec.get("manualSelector"):
        yield from _validate_generated_selector(job)
    yield from _validate_job_spec(spec, SPEC)
    yield from _validate_own_selector(spec)
    yield from _validate_match(spec)


def generated_labels(name: str, uid: str) -> dict[str, str]:
    """By which the pods of a job are found, unless it has a selector of its own."""
    return {"controller-uid": uid, "job-name": name, CONTROLLER_UID: uid, JOB_NAME: name}


def _validate_generated_selector(job: RawObject) -> Iterator[FieldError]:
    """A client that says what the server makes has to say the same."""
    metadata, spec = job.metadata, as_part(job.get("spec"))
    selector, labels = as_part(spec.get("selector")), template_labels(spec)
    made = generated_labels(metadata.name, metadata.uid)
    for key, value in made.items():
        if labels.get(key) != value:
            yield invalid(LABELS @ key, _sorted(labels), f"must be '{value}'")
    is_selector = not any(validate_label_selector(selector, SELECTOR))
    if is_selector and not selects_labels(selector, made):
        yield invalid(SELECTOR, _shown_selector(selector), "`selector` not auto-generated")


def _validate_own_selector(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        yield required(SELECTOR)
    else:
        yield from validate_label_selector(selector, SELECTOR)


def _validate_match(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """The selector selects the pods of the template; one that is wrong is not looked at."""
    selector, labels = spec.get("selector"), template_labels(spec)
    if selector is not None and any(validate_label_selector(selector, SELECTOR)):
        return
    if selector is None or not selects_labels(selector, labels):
        yield invalid(LABELS, _sorted(labels) or None, DOES_NOT_MATCH)


def _sorted(labels: Mapping[str, str]) -> dict[str, str]:
    """As Go writes maps."""
    return dict(sorted(labels.items()))


def _shown_selector(selector: Mapping[str, Any]) -> dict[str, Any]:
    """In the order of Kubernetes' type."""
    listed: dict[str, Any] = {}
    if selector.get("matchLabels"):
        listed["matchLabels"] = _sorted(selector["matchLabels"])
    if selector.get("matchExpressions"):
        listed["matchExpressions"] = selector["matchExpressions"]
    return listed


def _validate_job_spec(spec: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    yield from validate_execution(spec, path)
    template = as_part(spec.get("template"))
    yield from validate_template(template, path / "template")
    policy = as_part(template.get("spec")).get("restartPolicy", "Always")
    place = path / "template" / "spec" / "restartPolicy"
    if policy == "Always":
        # Defaulting has set "Always" by now.
        yield required(place, 'valid values: "OnFailure", "Never"')
    elif policy not in JOB_RESTART_POLICIES:
        yield not_supported(place, policy, JOB_RESTART_POLICIES, is_ordered=True)


def validate_job_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    """The template of a job is immutable unless the job is suspended."""
    spec = as_part(new.get("spec"))
    yield from _validate_job_spec(spec, SPEC)
    yield from _validate_own_selector(spec)
    yield from _validate_match(spec)
    fixed = ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"]
    if old.get("spec", "completionMode") != "Indexed":
        fixed.insert(0, "completions")
    if not old.get("spec", "suspend", default=False):
        fixed.append("template")
    for field in fixed:
        value = spec.get(field)
        if value != old.get("spec", field):
            show = _SHOWN.get(field)
            shown = show(value) if show is not None and isinstance(value, dict) else value
            yield invalid(SPEC / field, shown, IMMUTABLE)


def _shown_template(template: Mapping[str, Any]) -> dict[str, Any]:
    """As Kubernetes has it in memory."""
    metadata = as_part(template.get("metadata"))
    listed = {
        name: _sorted(metadata[name]) for name in ("labels", "annotations") if metadata.get(name)
    }
    return listed | {"Spec": internal_value(as_part(template.get("spec")), "PodSpec")}


_SHOWN: Final = {"selector": _shown_selector, "template": _shown_template}


_CONCURRENCY: Final = ("Allow", "Forbid", "Replace")


def validate_cron_job(cron_job: RawObject) -> Iterator[FieldError]:
    spec = as_part(cron_job.get("spec"))
    job = as_part(as_part(spec.get("jobTemplate")).get("spec"))
    yield from _validate_job_spec(job, SPEC / "jobTemplate" / "spec")
    schedule = spec.get("schedule") or ""
    if not schedule:
        yield required(SPEC / "schedule")
    if "TZ" in schedule:
        yield invalid(
            SPEC / "schedule",
            schedule,
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        )
    if schedule and not schedule.startswith(("TZ=", "CRON_TZ=")):
        try:
            parse_schedule(schedule)
        except ScheduleError as error:
            yield invalid(SPEC / "schedule", schedule, str(error))
    policy = spec.get("concurrencyPolicy")
    if policy not in _CONCURRENCY:
        yield not_supported(SPEC / "concurrencyPolicy", policy or "", _CONCURRENCY)
    yield from validate_counts(spec, SPEC)
    path = SPEC / "jobTemplate" / "spec"
    if job.get("selector") is not None:
        yield invalid(path / "selector", job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield not_supported(path / "manualSelector", True, ("nil", "false"), is_ordered=True)
