"""The ReplicaSet controller: keeps the number of pods."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Final

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.client.errors import ClientError
from allot.client.resources import REPLICA_SETS
from allot.controllers.controller import ControllerContext
from allot.controllers.workloads.accessors import (
    Json,
    generation_of,
    is_deleting,
    labels_of,
    min_ready_seconds_of,
    name_of,
    replicas_of,
    template_of,
    uid_of,
)
from allot.controllers.workloads.conditions import (
    ConditionUpdate,
    conditions_of,
    with_condition,
    without_condition,
)
from allot.controllers.workloads.dependents import Dependents
from allot.controllers.workloads.ownership import BY_CONTROLLER, controller_of, controller_uid
from allot.controllers.workloads.pod_control import BURST_REPLICAS
from allot.controllers.workloads.pod_ranking import pods_to_delete
from allot.controllers.workloads.pod_states import (
    is_active,
    is_available,
    is_ready,
    is_terminating,
)
from allot.controllers.workloads.pod_templates import pod_from_template
from allot.controllers.workloads.status_writes import write_status
from allot.controllers.workloads.workload_controller import WorkloadController

REPLICA_FAILURE: Final = "ReplicaFailure"


def replica_set_status(
    replica_set: RawObject,
    active: Sequence[Pod],
    failure: ConditionUpdate | None,
    now: datetime,
    terminating: int | None = None,
) -> Json:
    """The status, from the active pods and an error of creating or deleting pods.

    `terminating` are pods that are being deleted; None if they are not counted.
    """
    conditions = conditions_of(replica_set)
    if failure is not None:
        conditions = with_condition(conditions, failure, now)
    else:
        conditions = without_condition(conditions, REPLICA_FAILURE)
    template_labels = (template_of(replica_set).get("metadata") or {}).get("labels") or {}
    min_ready = min_ready_seconds_of(replica_set)
    return {
        "replicas": len(active),
        "fullyLabeledReplicas": _or_none(
            sum(template_labels.items() <= labels_of(pod).items() for pod in active)
        ),
        "readyReplicas": _or_none(sum(map(is_ready, active))),
        "availableReplicas": _or_none(sum(is_available(pod, min_ready, now) for pod in active)),
        "terminatingReplicas": terminating,
        "observedGeneration": generation_of(replica_set),
        "conditions": list(conditions) or None,
    }


def _or_none(count: int) -> int | None:
    """Zero counts are left out."""
    return count or None


def failure_condition(surplus: int, error: ClientError) -> ConditionUpdate:
    """The condition ReplicaFailure. `surplus` below zero means too few pods."""
    reason = "FailedDelete" if surplus > 0 else "FailedCreate"
    return ConditionUpdate(REPLICA_FAILURE, "True", reason, str(error))


class ReplicaSetController(WorkloadController):
    """Keeps the number of pods of replica sets."""

    name = "replicaset-controller"
    resource = REPLICA_SETS
    counts_terminating: ClassVar[bool] = True

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workloads.add_index(BY_CONTROLLER, controller_uid)
        self.dependents = Dependents(
            self.client, self.workloads, self.pods, self.queue, self.expectations
        )

    async def sync(self, workload: RawObject) -> None:
        pods = await self.dependents.claim(workload)
        active = [pod for pod in pods if is_active(pod)]
        failure: ClientError | None = None
        surplus = len(active) - replicas_of(workload)
        if surplus and not is_deleting(workload) and self.expectations_satisfied(workload.key):
            failure = await self._correct(workload, active, surplus)
        now = self.today()
        condition = failure_condition(surplus, failure) if failure else None
        terminating = sum(map(is_terminating, pods)) if self.counts_terminating else None
        status = replica_set_status(workload, active, condition, now, terminating)
        await write_status(self.client, self.resource, workload, status)
        self.requeue_when_available(workload, active, now)
        if failure is not None:
            raise failure

    async def _correct(
        self, replica_set: RawObject, active: Sequence[Pod], surplus: int
    ) -> ClientError | None:
        if surplus < 0:
            pod = pod_from_template(template_of(replica_set), self.resource, replica_set)
            count = min(-surplus, BURST_REPLICAS)
            return await self.pod_control.create_all(
                replica_set, [pod] * count, f"{name_of(replica_set)}-"
            )
        count = min(surplus, BURST_REPLICAS)
        related = self._related(replica_set)
        chosen = pods_to_delete(active, count, related, self.today())
        return await self.pod_control.delete_all(replica_set, chosen)

    def _related(self, replica_set: RawObject) -> list[Pod]:
        """The pods of all replica sets of the same deployment."""
        controller = controller_of(replica_set)
        relatives = (
            self.workloads.by_index(BY_CONTROLLER, controller.uid) if controller else [replica_set]
        )
        return [
            pod
            for relative in relatives
            for pod in self.pods.by_index(BY_CONTROLLER, uid_of(relative))
            if is_active(pod)
        ]
