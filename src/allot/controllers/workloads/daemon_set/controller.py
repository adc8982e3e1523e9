"""The control loop of daemon sets."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.api.core import Node, Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.selectors import is_empty_selector
from allot.backoff import Backoff
from allot.client.errors import ClientError
from allot.client.events import NORMAL, WARNING
from allot.client.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES
from allot.controllers.controller import ControllerContext
from allot.controllers.workloads.accessors import (
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    selector_of,
    template_of,
)
from allot.controllers.workloads.daemon_set import decision
from allot.controllers.workloads.daemon_set.decision import DaemonSetPlan
from allot.controllers.workloads.daemon_set.nodes import has_changed, placement_by_node
from allot.controllers.workloads.daemon_set.pods import make_pod, node_of
from allot.controllers.workloads.dependents import Dependents
from allot.controllers.workloads.pod_control import BURST_REPLICAS
from allot.controllers.workloads.revisions import REVISION_HASH, RevisionHistory, hash_of
from allot.controllers.workloads.status_writes import write_status
from allot.controllers.workloads.workload_controller import WorkloadController
from allot.lru_cache import LRUCache

REPLACEMENT: Final = Backoff(initial_seconds=1.0, max_seconds=900.0, jitter=0.0)
_REMEMBERED: Final = 10_000


class _Attempts(NamedTuple):
    """How often pods finished on a node, and when the last one was replaced."""

    ends: int
    at: float


class DaemonSetController(WorkloadController):
    """Keeps a pod of each daemon set on each eligible node."""

    name = "daemonset-controller"
    resource = DAEMON_SETS

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.nodes = self.informers.informer(NODES)
        self.nodes.add_handlers(
            lambda _node: self._queue_all(), self._node_updated, lambda _node: self._queue_all()
        )
        self.dependents = Dependents(
            self.client, self.workloads, self.pods, self.queue, self.expectations
        )
        revisions = self.informers.informer(CONTROLLER_REVISIONS)
        self.history = RevisionHistory(
            self.client,
            self.resource,
            Dependents(self.client, self.workloads, revisions, self.queue),
        )
        self._attempts: LRUCache[tuple[ObjectKey, str], _Attempts] = LRUCache(_REMEMBERED)

    def _node_updated(self, old: Node, new: Node) -> None:
        if has_changed(old, new):
            self._queue_all()

    def _queue_all(self) -> None:
        for daemon_set in self.workloads.list():
            self.queue.add(daemon_set.key)

    async def sync(self, workload: RawObject) -> None:
        if is_empty_selector(selector_of(workload)) or is_deleting(workload):
            return
        history = await self.history.of(workload)
        revision_hash = hash_of(history.update)
        pods = await self.dependents.claim(workload)
        pods_by_node = decision.group_by_node(pods)
        spec = template_of(workload).get("spec") or {}
        places = placement_by_node(self.nodes.list(), spec)
        now, failure = self.today(), None
        if self.expectations_satisfied(workload.key):
            arguments = (workload, places, pods_by_node, revision_hash, now)
            plan = decision.plan_pods(*arguments)
            failure = await self._carry_out(workload, plan, revision_hash)
            # The number of unavailable pods is known only when every node has its pod.
            is_settled = not plan.create_on and not plan.delete
            if failure is None and is_settled and decision.is_rolling(workload):
                update = decision.plan_update(*arguments)
                failure = await self._carry_out(workload, update, revision_hash)
        status = decision.daemon_set_status(workload, places, pods_by_node, revision_hash, now)
        await write_status(self.client, self.resource, workload, status)
        in_use = {labels_of(pod).get(REVISION_HASH) for pod in pods}
        names = {name_of(found) for found in history.all if hash_of(found) in in_use}
        await self.history.forget(workload, history, names | {name_of(history.update)})
        self.requeue_when_available(workload, pods, now)
        if failure is not None:
            raise failure

    async def _carry_out(
        self, daemon_set: RawObject, plan: DaemonSetPlan, revision_hash: str
    ) -> ClientError | None:
        gone = [pod for pod in plan.finished if self._may_replace(daemon_set, pod)]
        delete = [*plan.delete, *gone][:BURST_REPLICAS]
        failure = await self.pod_control.delete_all(daemon_set, delete)
        nodes = plan.create_on[:BURST_REPLICAS]
        pods = [make_pod(daemon_set, node, revision_hash) for node in nodes]
        created = await self.pod_control.create_all(daemon_set, pods, f"{name_of(daemon_set)}-")
        return failure or created

    def _may_replace(self, daemon_set: RawObject, pod: Pod) -> bool:
        """Whether a finished pod may be replaced now: with a backoff per node."""
        place = daemon_set.key, node_of(pod)
        now = self.clock.now()
        before = self._attempts.get(place) or _Attempts(0, now)
        wait = before.at + REPLACEMENT.seconds(before.ends, 0.0) - now if before.ends else 0.0
        if wait > 0:
            self.queue.add_after(daemon_set.key, wait)
            return False
        # A pod that ran for long resets the backoff.
        held_out = now - before.at > 2 * REPLACEMENT.max_seconds
        self._attempts.put(place, _Attempts(1 if held_out else before.ends + 1, now))
        where = f"{namespace_of(pod)}/{name_of(pod)} on node {node_of(pod)}"
        if pod.phase == "Failed":
            note = f"Found failed daemon pod {where}, will try to kill it"
            self.record_event(daemon_set, "FailedDaemonPod", note, WARNING)
        else:
            note = f"Found succeeded daemon pod {where}, will try to delete it"
            self.record_event(daemon_set, "SucceededDaemonPod", note, NORMAL)
        return True
