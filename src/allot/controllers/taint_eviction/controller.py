"""The control loop: deletes each pod when its tolerations end."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from allot.api.core import Node, Pod
from allot.api.identities import ObjectKey
from allot.client.events import NORMAL, reference_to
from allot.client.resources import NODES, PODS
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.eviction_metrics import EvictionMetrics
from allot.controllers.pod_disruption import Disruption, PodRef, disrupt, is_deleting, pod_ref
from allot.controllers.pods_by_node import PodsByNode
from allot.controllers.taint_eviction.decisions import (
    NodeTaint,
    evicting_taints,
    leaves_at,
    tolerations_of,
)

log = logging.getLogger(__name__)

WHY: Final = Disruption("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
REASON: Final = "TaintManagerEviction"
ACTION: Final = "Evicting"


class TaintEvictionController(QueueController[PodRef]):
    """Pods wait in the queue until their eviction is due; the decision is made on the state at that time."""

    name = "taint-eviction-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._recorder = context.recorder
        self._metrics = EvictionMetrics("taint_eviction_controller", context.registry)
        self._seen_at: dict[str, dict[NodeTaint, datetime]] = {}
        """When taints without `timeAdded` were first observed, by node."""
        self._tainted: set[str] = set()
        """Nodes with taints that evict."""
        self._waiting: set[PodRef] = set()
        """Pods with a pending eviction; an event is recorded when it is cancelled."""
        self._deleted: set[PodRef] = set()
        """Pods that were deleted, but that the informer still has."""
        self._pods = context.informers.informer(PODS)
        self._pods_by_node = PodsByNode(self._pods)
        self._nodes = context.informers.informer(NODES)
        self._nodes.add_handlers(self._node_added, self._node_updated, self._node_deleted)
        self._pods.add_handlers(self._pod_added, self._pod_updated, self._pod_deleted)

    # --- event handlers ---

    def _node_added(self, node: Node) -> None:
        if evicting_taints(node):
            self._follow_taints(node)

    def _node_updated(self, old: Node, new: Node) -> None:
        if evicting_taints(old) != evicting_taints(new):
            self._follow_taints(new)

    def _follow_taints(self, node: Node) -> None:
        name = node.metadata.name
        known, today = self._seen_at.get(name, {}), self.clock.today()
        taints = evicting_taints(node)
        if taints:
            self._tainted.add(name)
        else:
            self._tainted.discard(name)
        undated = (taint for taint in taints if taint.added_at is None)
        self._seen_at[name] = {taint: known.get(taint, today) for taint in undated}
        if not self._seen_at[name]:
            del self._seen_at[name]
        self._add_pods(name)

    def _node_deleted(self, node: Node) -> None:
        """Its pods are left to the pod garbage collector."""
        self._seen_at.pop(node.metadata.name, None)
        self._tainted.discard(node.metadata.name)
        self._add_pods(node.metadata.name)

    def _add_pods(self, node: str) -> None:
        for pod in self._pods_by_node.of(node):
            self.queue.add(pod_ref(pod))

    def _pod_added(self, pod: Pod) -> None:
        if self._may_leave(pod):
            self.queue.add(pod_ref(pod))

    def _may_leave(self, pod: Pod) -> bool:
        """Whether the pod may have to leave its node, or was to leave one."""
        if pod.node_name in self._tainted:
            return True
        if not self._waiting and not self._deleted:
            return False
        ref = pod_ref(pod)
        return ref in self._waiting or ref in self._deleted

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if self._may_leave(new) and _situation(old) != _situation(new):
            self.queue.add(pod_ref(new))

    def _pod_deleted(self, pod: Pod) -> None:
        self._pod_added(pod)

    # --- reconciling ---

    async def reconcile(self, key: PodRef) -> None:
        pod = self._pods.get(key.key)
        if pod is None or pod_ref(pod) != key or is_deleting(pod):
            self._deleted.discard(key)
            self._waiting.discard(key)
            return
        if key in self._deleted:
            return
        end = leaves_at(pod, self._taints_of(pod.node_name))
        if end is None:
            if key in self._waiting:
                self._waiting.discard(key)
                self._record_event(pod, f"Cancelling deletion of Pod {key.key}")
            return
        wait = (end - self.clock.today()).total_seconds()
        if wait > 0:
            self._waiting.add(key)
            self.queue.add_after(key, wait)
            return
        await self._evict(pod, end)

    def _taints_of(self, name: str) -> list[tuple[NodeTaint, datetime]]:
        node = self._nodes.get(ObjectKey("", name))
        if node is None:
            return []
        seen_at = self._seen_at.get(name, {})
        today = self.clock.today()
        return [
            (taint, taint.added_at or seen_at.get(taint, today)) for taint in evicting_taints(node)
        ]

    async def _evict(self, pod: Pod, end: datetime) -> None:
        ref = pod_ref(pod)
        log.info("evicting pod %s from node %s", ref.key, pod.node_name)
        self._record_event(pod, f"Marking for deletion Pod {ref.key}")
        if await disrupt(self.client, pod, WHY):
            self._metrics.deleted((self.clock.today() - end).total_seconds())
        known = self._pods.get(ref.key)
        if known is not None and pod_ref(known) == ref and not is_deleting(known):
            self._deleted.add(ref)
        self._waiting.discard(ref)

    def _record_event(self, pod: Pod, note: str) -> None:
        self._recorder.event(reference_to(PODS, pod), NORMAL, REASON, ACTION, note)


def _situation(pod: Pod) -> tuple[object, ...]:
    """The fields of a pod that affect its eviction."""
    return pod.node_name, is_deleting(pod), tolerations_of(pod)
