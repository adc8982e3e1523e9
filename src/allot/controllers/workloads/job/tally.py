"""The tally of a job: what its status has counted, and what its pods add.

A finished pod passes three states, and is counted exactly once even if the controller crashes in between:

    has the finalizer, not in the status        new: write its uid to uncountedTerminatedPods
    its uid is in uncountedTerminatedPods       pending: remove the finalizer, then add it to the count
    no finalizer, not in the status             part of the count
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.controllers.workloads.accessors import counted, is_deleting, uid_of
from allot.controllers.workloads.job.failures import (
    PodFailureAction,
    PodFailureMatch,
    failures_before,
    finished_at,
    match_pod_failure_policy,
)
from allot.controllers.workloads.job.indexes import Indexes, index_of, read_indexes
from allot.controllers.workloads.job.spec import JobSpec
from allot.controllers.workloads.pod_states import is_active, is_ready, is_terminating

TRACKING: Final = "batch.kubernetes.io/job-tracking"


def is_tracked(pod: Pod) -> bool:
    return TRACKING in (pod.data["metadata"].get("finalizers") or ())


def has_failed(pod: Pod, spec: JobSpec) -> bool:
    """Terminating pods count as failed, unless the job waits until they have finished."""
    if pod.phase == "Failed":
        return True
    if not is_deleting(pod) or pod.phase == "Succeeded":
        return False
    return not spec.replaces_only_failed or not pod.node_name  # an unbound pod has no final status


class Uncounted(NamedTuple):
    """`status.uncountedTerminatedPods`."""

    succeeded: frozenset[str]
    failed: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.succeeded | self.failed


def uncounted_of(job: RawObject) -> Uncounted:
    return Uncounted(
        frozenset(job.get("status", "uncountedTerminatedPods", "succeeded", default=())),
        frozenset(job.get("status", "uncountedTerminatedPods", "failed", default=())),
    )


class Tally(NamedTuple):
    """The input of decisions."""

    active: tuple[Pod, ...]
    ready: int
    terminating: int
    new_succeeded: tuple[Pod, ...]
    new_failed: tuple[Pod, ...]
    new_ignored: tuple[Pod, ...]
    """Failed, and ignored by the pod failure policy."""
    kept: frozenset[str]
    """Failed pods that keep their finalizer until their index has a new pod, which inherits the failure count."""
    succeeded: int
    failed: int
    completed_indexes: Indexes
    failed_indexes: Indexes
    conclusion: PodFailureMatch | None
    """A failure that fails the job immediately."""
    failed_pods: tuple[Pod, ...]
    """All failed pods in the informer, counted or not."""
    succeeded_pods: tuple[Pod, ...]
    latest_failed_by_index: dict[int, Pod]


def tally_pods(job: RawObject, spec: JobSpec, pods: Sequence[Pod]) -> Tally:
    uncounted = uncounted_of(job)
    fresh = [pod for pod in pods if is_tracked(pod) and uid_of(pod) not in uncounted.all]
    limit = spec.completions if spec.is_indexed else None
    succeeded = tuple(pod for pod in fresh if pod.phase == "Succeeded" and _fits(pod, limit))
    matched = [
        (pod, match_pod_failure_policy(pod, spec.failure_rules))
        for pod in fresh
        if has_failed(pod, spec)
    ]
    failed = tuple(pod for pod, match in matched if match.action is not PodFailureAction.IGNORE)
    ignored = tuple(pod for pod, match in matched if match.action is PodFailureAction.IGNORE)
    # An index beyond reduced completions is neither a success nor a failure.
    ignored += tuple(pod for pod in fresh if pod.phase == "Succeeded" and not _fits(pod, limit))
    completed = read_indexes(job.get("status", "completedIndexes"), limit)
    completed |= _indexes(succeeded) if spec.is_indexed else frozenset()
    latest = _latest_failed(pods, spec)
    failed_indexes = read_indexes(job.get("status", "failedIndexes"), limit)
    if spec.is_per_index:
        failed_indexes |= _lost(matched, latest, spec)
        failed_indexes -= completed
    active = tuple(pod for pod in pods if is_active(pod))
    if spec.is_indexed:
        count = len(completed)
    else:
        count = counted(job, "succeeded") + len(uncounted.succeeded) + len(succeeded)
    return Tally(
        active=active,
        ready=sum(map(is_ready, active)),
        terminating=sum(map(is_terminating, pods)),
        new_succeeded=succeeded,
        new_failed=failed,
        new_ignored=ignored,
        kept=_kept(latest, active, failed_indexes | completed)
        if spec.is_per_index
        else frozenset(),
        succeeded=count,
        failed=counted(job, "failed") + len(uncounted.failed) + len(failed),
        completed_indexes=completed,
        failed_indexes=failed_indexes,
        conclusion=next(
            (found for _, found in matched if found.action is PodFailureAction.FAIL_JOB), None
        ),
        failed_pods=tuple(
            pod
            for pod in pods
            if pod.phase == "Failed" or (is_tracked(pod) and has_failed(pod, spec))
            if pod not in ignored
        ),
        succeeded_pods=tuple(pod for pod in pods if pod.phase == "Succeeded"),
        latest_failed_by_index=latest,
    )


def _fits(pod: Pod, limit: int | None) -> bool:
    if limit is None:
        return True
    index = index_of(pod)
    return index is not None and index < limit


def _indexes(pods: Iterable[Pod]) -> Indexes:
    return frozenset(index for index in map(index_of, pods) if index is not None)


def _latest_failed(pods: Iterable[Pod], spec: JobSpec) -> dict[int, Pod]:
    if not spec.is_indexed:
        return {}
    by_index: defaultdict[int, list[Pod]] = defaultdict(list)
    for pod in pods:
        index = index_of(pod)
        if index is not None and has_failed(pod, spec):
            by_index[index].append(pod)
    return {
        index: max(found, key=lambda pod: (failures_before(pod), finished_at(pod)))
        for index, found in by_index.items()
    }


def _lost(
    matched: Iterable[tuple[Pod, PodFailureMatch]], latest: dict[int, Pod], spec: JobSpec
) -> Indexes:
    """Indexes beyond their backoff limit, or with the action FailIndex."""
    lost = {index_of(pod) for pod, match in matched if match.action is PodFailureAction.FAIL_INDEX}
    limit = spec.backoff_limit_per_index or 0
    lost |= {index for index, pod in latest.items() if failures_before(pod) >= limit}
    return frozenset(index for index in lost if index is not None)


def _kept(latest: dict[int, Pod], active: Iterable[Pod], over: Indexes) -> frozenset[str]:
    replaced = _indexes(active) | over
    return frozenset(uid_of(pod) for index, pod in latest.items() if index not in replaced)
