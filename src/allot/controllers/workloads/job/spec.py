"""The parsed spec of a job."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.api.raw import RawObject
from allot.controllers.workloads.accessors import Json

OUR_NAME: Final = "kubernetes.io/job-controller"
MAX_INT32: Final = 2**31 - 1


class JobSpec(NamedTuple):
    """The parts of a job's spec that decisions need."""

    parallelism: int
    completions: int | None
    """None: complete when one pod has succeeded and all have finished."""
    is_indexed: bool
    backoff_limit: int
    backoff_limit_per_index: int | None
    max_failed_indexes: int | None
    active_deadline_seconds: int | None
    is_suspended: bool
    replaces_only_failed: bool
    """Whether a terminating pod is replaced only after it has failed (podReplacementPolicy Failed)."""
    restarts_containers: bool
    failure_rules: tuple[Json, ...]
    success_rules: tuple[Json, ...]

    @property
    def is_per_index(self) -> bool:
        return self.is_indexed and self.backoff_limit_per_index is not None


def read_spec(job: RawObject) -> JobSpec:
    def value(name: str, default: int | None = None) -> int | None:
        found: int | None = job.get("spec", name, default=default)
        return found

    parallelism, backoff = value("parallelism", 1), value("backoffLimit", 6)
    return JobSpec(
        parallelism=1 if parallelism is None else parallelism,
        completions=value("completions"),
        is_indexed=job.get("spec", "completionMode") == "Indexed",
        backoff_limit=6 if backoff is None else backoff,
        backoff_limit_per_index=value("backoffLimitPerIndex"),
        max_failed_indexes=value("maxFailedIndexes"),
        active_deadline_seconds=value("activeDeadlineSeconds"),
        is_suspended=bool(job.get("spec", "suspend", default=False)),
        replaces_only_failed=job.get("spec", "podReplacementPolicy") == "Failed",
        restarts_containers=job.get("spec", "template", "spec", "restartPolicy") == "OnFailure",
        failure_rules=tuple(job.get("spec", "podFailurePolicy", "rules", default=())),
        success_rules=tuple(job.get("spec", "successPolicy", "rules", default=())),
    )


def is_managed_here(job: RawObject) -> bool:
    """Whether `spec.managedBy` names this controller or is not set."""
    return bool(job.get("spec", "managedBy", default=OUR_NAME) == OUR_NAME)
