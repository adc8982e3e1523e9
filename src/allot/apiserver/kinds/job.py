"""Jobs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from allot.api.base import replace
from allot.api.durations import human_duration
from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, change_each, fill, make, part
from allot.apiserver.defaults.pods import template_defaults
from allot.apiserver.defaults.workloads import with_template_labels
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.printers.ages import time_at
from allot.apiserver.printers.column import AGE, NAME, TEMPLATE, Age, Cell, Column, Table, wide
from allot.apiserver.printers.words import count_at, selector_of, template_of
from allot.validation import jobs
from allot.validation.fields import FieldError
from allot.validation.jobs import CONTROLLER_UID
from allot.validation.pod_warnings import IN_POD_NAMES, template_warnings

MAX_INT32: Final = 2**31 - 1


def job_defaults(job: Data) -> Data:
    labels = part(job, "spec", "template", "metadata", "labels")
    job = change(job, "spec", _job_spec_defaults)
    # A new job takes the labels of its template when those have its name and uid.
    is_labeled = CONTROLLER_UID in labels or part(job, "spec").get("manualSelector")
    return with_template_labels(job, labels) if labels and is_labeled else job


def _job_spec_defaults(spec: Data) -> Data:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec = spec | {"completions": 1}
    per_index = spec.get("backoffLimitPerIndex") is not None
    has_failure_policy = spec.get("podFailurePolicy") is not None
    spec = fill(
        template_defaults(spec),
        parallelism=1,
        backoffLimit=MAX_INT32 if per_index else 6,
        suspend=False,
        manualSelector=False,
    )
    replacement = "Failed" if has_failure_policy else "TerminatingOrFailed"
    for name, value in (("completionMode", "NonIndexed"), ("podReplacementPolicy", replacement)):
        if spec.get(name) is None:
            spec = spec | {name: value}
    return change(
        spec,
        "podFailurePolicy",
        lambda policy: change_each(policy, "rules", _failure_rule_defaults),
    )


def _failure_rule_defaults(rule: Data) -> Data:
    return change_each(rule, "onPodConditions", lambda pattern: fill(pattern, status="True"))


def with_job_selector(job: Data) -> Data:
    """A new job whose pods are found by its uid, which its metadata must have by now.

    What the client says already is kept, to be judged. With `manualSelector` the selector is its business.
    """
    spec, metadata = part(job, "spec"), job["metadata"]
    if spec.get("manualSelector"):
        return job
    uid = metadata["uid"]
    labels = jobs.generated_labels(metadata.get("name", ""), uid)
    spec = make(
        spec,
        "template",
        lambda template: make(
            template,
            "metadata",
            lambda template_metadata: (
                template_metadata | {"labels": labels | part(template_metadata, "labels")}
            ),
        ),
    )
    matched = {CONTROLLER_UID: uid} | part(spec, "selector", "matchLabels")
    selector = part(spec, "selector") | {"matchLabels": matched}
    job = job | {"spec": spec | {"selector": selector}}
    return with_template_labels(job, part(spec, "template", "metadata", "labels"))


class JobStrategy(RawStrategy):
    """A new job has its uid before it is validated, because its selector has it."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        new = super().prepare_create(new, request)
        if new.get("spec", "manualSelector"):
            return new
        new = new.with_metadata(replace(new.metadata, uid=request.new_uid()))
        return type(new)(with_job_selector(dict(new.data)))

    def validate_create(self, new: RawObject, request: WriteRequest) -> Iterator[FieldError]:
        """Labels that the job has from the server alone are judged in its template."""
        metadata, judged = new.metadata, new
        made = jobs.generated_labels(metadata.name, metadata.uid)
        is_taken = metadata.labels == part(new.data, "spec", "template", "metadata", "labels")
        if is_taken and metadata.labels.keys() <= made.keys():
            judged = new.with_metadata(replace(metadata, labels={}))
        yield from super().validate_create(judged, request)
        yield from jobs.validate_new_job(new)


def _job_row(job: RawObject, age: Age) -> list[Cell]:
    return [
        job.metadata.name,
        _job_status(job),
        _completions(job),
        _duration(job, age),
        age(job.metadata.creation_timestamp),
        *template_of(job),
        selector_of(job),
    ]


def _job_status(job: RawObject) -> str:
    for word, condition in (("Complete", "Complete"), ("Failed", "Failed")):
        if job.has_condition(condition):
            return word
    if job.metadata.deletion_timestamp is not None:
        return "Terminating"
    for condition in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if job.has_condition(condition):
            return condition
    return "Running"


def _completions(job: RawObject) -> str:
    succeeded = count_at(job, "status", "succeeded")
    wanted = job.get("spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallel = count_at(job, "spec", "parallelism")
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def _duration(job: RawObject, age: Age) -> str:
    started = time_at(job, "status", "startTime")
    if started is None:
        return ""
    ended = time_at(job, "status", "completionTime")
    return age(started) if ended is None else human_duration((ended - started).total_seconds())


DEFINITION: Final = KindDefinition(
    strategy=partial(
        JobStrategy,
        KindRules(
            validate_change=jobs.validate_job_update,
            status={},
            generation=COUNTED,
            warnings=template_warnings,
            name_is_used_in=IN_POD_NAMES,
        ),
    ),
    defaults=job_defaults,
    table=Table(
        (
            NAME,
            Column("Status"),
            Column("Completions"),
            Column("Duration"),
            AGE,
            *TEMPLATE,
            wide("Selector"),
        ),
        _job_row,
    ),
    subresources=(STATUS,),
    selectable_fields={"status.successful": "status.succeeded"},
)
