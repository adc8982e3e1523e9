"""Rows of the kinds that run pods, and of disruption budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.printers.ages import human_duration, time_at
from allot.apiserver.printers.column import (
    AGE,
    NAME,
    NONE,
    TEMPLATE,
    UNSET,
    Age,
    Cell,
    Column,
    Table,
    flag,
    number,
    wide,
)
from allot.apiserver.printers.words import (
    has_condition,
    labels_text,
    or_none,
    selector_cell,
    template_cells,
)


def _count(obj: RawObject, *path: str) -> int:
    value = obj.get(*path, default=0)
    return value if isinstance(value, int) else 0


def _template(obj: RawObject) -> list[str]:
    return template_cells(obj.get("spec", "template", default={}))


def _selector(obj: RawObject) -> str:
    return selector_cell(obj.get("spec", "selector"))


def _deployment_row(deployment: RawObject, age: Age) -> list[Cell]:
    return [
        deployment.metadata.name,
        f"{_count(deployment, 'status', 'readyReplicas')}/{_count(deployment, 'spec', 'replicas')}",
        _count(deployment, "status", "updatedReplicas"),
        _count(deployment, "status", "availableReplicas"),
        age(deployment.metadata.creation_timestamp),
        *_template(deployment),
        _selector(deployment),
    ]


def _replicas_row(workload: RawObject, age: Age) -> list[Cell]:
    """Replica sets and replication controllers, which write their selectors differently."""
    is_set = workload.kind == "ReplicaSet"
    return [
        workload.metadata.name,
        _count(workload, "spec", "replicas"),
        _count(workload, "status", "replicas"),
        _count(workload, "status", "readyReplicas"),
        age(workload.metadata.creation_timestamp),
        *_template(workload),
        _selector(workload) if is_set else labels_text(workload.get("spec", "selector")),
    ]


def _stateful_set_row(stateful_set: RawObject, age: Age) -> list[Cell]:
    ready = _count(stateful_set, "status", "readyReplicas")
    return [
        stateful_set.metadata.name,
        f"{ready}/{_count(stateful_set, 'spec', 'replicas')}",
        age(stateful_set.metadata.creation_timestamp),
        *_template(stateful_set),
    ]


_DAEMON_COUNTS: Final = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def _daemon_set_row(daemon_set: RawObject, age: Age) -> list[Cell]:
    return [
        daemon_set.metadata.name,
        *(_count(daemon_set, "status", field) for field in _DAEMON_COUNTS),
        labels_text(daemon_set.get("spec", "template", "spec", "nodeSelector")),
        age(daemon_set.metadata.creation_timestamp),
        *_template(daemon_set),
        _selector(daemon_set),
    ]


def _template_row(template: RawObject, _: Age) -> list[Cell]:
    part = template.get("template", default={})
    labels = (part.get("metadata") or {}).get("labels")
    return [template.metadata.name, *template_cells(part), labels_text(labels)]


def _revision_row(revision: RawObject, age: Age) -> list[Cell]:
    return [
        revision.metadata.name,
        _controller(revision),
        _count(revision, "revision"),
        age(revision.metadata.creation_timestamp),
    ]


def _controller(obj: RawObject) -> str:
    """Who controls the object: `statefulset.apps/web`."""
    for owner in obj.metadata.owner_references:
        if owner.controller:
            group = owner.api_version.rpartition("/")[0]
            kind = f"{owner.kind.lower()}.{group}" if group else owner.kind.lower()
            return f"{kind}/{owner.name}"
    return NONE


# --- batch ---


def _job_row(job: RawObject, age: Age) -> list[Cell]:
    return [
        job.metadata.name,
        _job_status(job),
        _completions(job),
        _duration(job, age),
        age(job.metadata.creation_timestamp),
        *_template(job),
        _selector(job),
    ]


def _job_status(job: RawObject) -> str:
    for word, condition in (("Complete", "Complete"), ("Failed", "Failed")):
        if has_condition(job, condition):
            return word
    if job.metadata.deletion_timestamp is not None:
        return "Terminating"
    for condition in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if has_condition(job, condition):
            return condition
    return "Running"


def _completions(job: RawObject) -> str:
    succeeded = _count(job, "status", "succeeded")
    wanted = job.get("spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallel = _count(job, "spec", "parallelism")
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def _duration(job: RawObject, age: Age) -> str:
    started = time_at(job, "status", "startTime")
    if started is None:
        return ""
    ended = time_at(job, "status", "completionTime")
    return age(started) if ended is None else human_duration((ended - started).total_seconds())


def _cron_job_row(cron_job: RawObject, age: Age) -> list[Cell]:
    last = time_at(cron_job, "status", "lastScheduleTime")
    job: Mapping[str, Any] = cron_job.get("spec", "jobTemplate", "spec", default={})
    return [
        cron_job.metadata.name,
        str(cron_job.get("spec", "schedule", default="")),
        or_none(cron_job.get("spec", "timeZone")),
        _yes_or_no(cron_job.get("spec", "suspend")),
        len(cron_job.get("status", "active", default=[])),
        age(last) if last is not None else NONE,
        age(cron_job.metadata.creation_timestamp),
        *template_cells(job.get("template") or {}),
        selector_cell(job.get("selector")),
    ]


def _yes_or_no(value: object) -> str:
    return UNSET if value is None else str(bool(value))


def _budget_row(budget: RawObject, age: Age) -> list[Cell]:
    return [
        budget.metadata.name,
        str(budget.get("spec", "minAvailable", default="N/A")),
        str(budget.get("spec", "maxUnavailable", default="N/A")),
        _count(budget, "status", "disruptionsAllowed"),
        age(budget.metadata.creation_timestamp),
    ]


_REPLICAS: Final = Table(
    (NAME, number("Desired"), number("Current"), number("Ready"), AGE, *TEMPLATE, wide("Selector")),
    _replicas_row,
)

TABLES: Final[dict[tuple[str, str], Table]] = {
    ("", "PodTemplate"): Table(
        (NAME, Column("Containers"), Column("Images"), Column("Pod Labels")), _template_row
    ),
    ("", "ReplicationController"): _REPLICAS,
    ("apps", "ReplicaSet"): _REPLICAS,
    ("apps", "Deployment"): Table(
        (
            NAME,
            Column("Ready"),
            number("Up-to-date"),
            number("Available"),
            AGE,
            *TEMPLATE,
            wide("Selector"),
        ),
        _deployment_row,
    ),
    ("apps", "StatefulSet"): Table((NAME, Column("Ready"), AGE, *TEMPLATE), _stateful_set_row),
    ("apps", "DaemonSet"): Table(
        (
            NAME,
            number("Desired"),
            number("Current"),
            number("Ready"),
            number("Up-to-date"),
            number("Available"),
            Column("Node Selector"),
            AGE,
            *TEMPLATE,
            wide("Selector"),
        ),
        _daemon_set_row,
    ),
    ("apps", "ControllerRevision"): Table(
        (NAME, Column("Controller"), number("Revision"), AGE), _revision_row
    ),
    ("batch", "Job"): Table(
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
    ("batch", "CronJob"): Table(
        (
            NAME,
            Column("Schedule"),
            Column("Timezone"),
            flag("Suspend"),
            number("Active"),
            Column("Last Schedule"),
            AGE,
            *TEMPLATE,
            wide("Selector"),
        ),
        _cron_job_row,
    ),
    ("policy", "PodDisruptionBudget"): Table(
        (
            NAME,
            Column("Min Available"),
            Column("Max Unavailable"),
            number("Allowed Disruptions"),
            AGE,
        ),
        _budget_row,
    ),
}
