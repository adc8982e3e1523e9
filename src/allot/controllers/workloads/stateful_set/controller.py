"""The control loop of stateful sets."""

from __future__ import annotations

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.client.errors import ClientError
from allot.client.events import WARNING
from allot.client.resources import (
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    STATEFUL_SETS,
)
from allot.controllers.controller import ControllerContext
from allot.controllers.workloads.accessors import (
    is_deleting,
    name_of,
    namespace_of,
)
from allot.controllers.workloads.dependents import Dependents
from allot.controllers.workloads.pod_control import PodControl
from allot.controllers.workloads.revisions import History, RevisionHistory
from allot.controllers.workloads.stateful_set import decision
from allot.controllers.workloads.stateful_set.decision import Revisions, StatefulSetPlan
from allot.controllers.workloads.stateful_set.identity import make_pod, ordinal_of, ordinals_of
from allot.controllers.workloads.stateful_set.volume_claims import VolumeClaims
from allot.controllers.workloads.status_writes import write_status
from allot.controllers.workloads.workload_controller import WorkloadController


class NumberedPodControl(PodControl):
    """Events name the pod and the stateful set, as in Kubernetes."""

    def create_note(self, owner: RawObject, pod: Pod, error: ClientError | None = None) -> str:
        return _note("Create", owner, pod, error)

    def delete_note(self, owner: RawObject, pod: Pod, error: ClientError | None = None) -> str:
        return _note("Delete", owner, pod, error)


def _note(verb: str, owner: RawObject, pod: Pod, error: ClientError | None) -> str:
    what = f"{verb} Pod {name_of(pod)} in StatefulSet {name_of(owner)}"
    return f"{what} failed error: {error}" if error else f"{what} successful"


class StatefulSetController(WorkloadController):
    """Keeps the pods of stateful sets."""

    name = "statefulset-controller"
    resource = STATEFUL_SETS

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.pod_control = NumberedPodControl(
            self.client, self.recorder, self.resource, self.expectations, self.creation_pace
        )
        self.dependents = Dependents(
            self.client,
            self.workloads,
            self.pods,
            self.queue,
            self.expectations,
            fits=lambda owner, pod: ordinal_of(owner, pod) is not None,
        )
        self.history = RevisionHistory(
            self.client,
            self.resource,
            Dependents(
                self.client,
                self.workloads,
                self.informers.informer(CONTROLLER_REVISIONS),
                self.queue,
            ),
        )
        self.claims = VolumeClaims(self.client, self.informers.informer(PERSISTENT_VOLUME_CLAIMS))

    async def sync(self, workload: RawObject) -> None:
        if is_deleting(workload):
            return
        history = await self.history.of(workload)
        pods = await self.dependents.claim(workload)
        revisions = _revisions(workload, history)
        now, failure = self.today(), None
        if self.expectations_satisfied(workload.key):
            numbered = decision.by_ordinal(workload, pods)
            plan = decision.plan_pods(workload, numbered, revisions, now)
            failure = await self._carry_out(workload, plan, history)
        status = decision.stateful_set_status(workload, pods, revisions, now)
        await write_status(self.client, self.resource, workload, status)
        in_use = {decision.revision_of(pod) for pod in pods} | {*revisions}
        await self.history.forget(workload, history, in_use)
        self.requeue_when_available(workload, pods, now)
        if failure is not None:
            raise failure

    async def _carry_out(
        self, stateful_set: RawObject, plan: StatefulSetPlan, history: History
    ) -> ClientError | None:
        for pod in plan.failed:
            self.record_event(
                stateful_set,
                "RecreatingFailedPod",
                f"StatefulSet {namespace_of(stateful_set)}/{name_of(stateful_set)} "
                f"is recreating failed Pod {name_of(pod)}",
                WARNING,
            )
        for pod in plan.delete:
            if ordinal_of(stateful_set, pod) not in ordinals_of(stateful_set):
                await self.claims.leave_to(stateful_set, pod)
        failure = await self.pod_control.delete_all(stateful_set, [*plan.delete, *plan.failed])
        if failure is not None:
            return failure
        made = []
        for ordinal, name in plan.create:
            await self.claims.ensure(stateful_set, ordinal)
            made.append(make_pod(stateful_set, ordinal, history.named(name) or history.update))
        return await self.pod_control.create_all(stateful_set, made, "")


def _revisions(stateful_set: RawObject, history: History) -> Revisions:
    update = name_of(history.update)
    current = stateful_set.get("status", "currentRevision", default=update)
    return Revisions(current if history.named(current) is not None else update, update)
