"""The control loop: each node has a timer that every heartbeat resets."""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge

from allot.api.core import Node, Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.client.errors import ApiStatusError
from allot.client.events import NORMAL, WARNING, reference_to
from allot.client.options import PatchType, Scope
from allot.client.resources import LEASES, NODES, PODS
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.node_lifecycle.health import (
    FALSE,
    READY,
    TRUE,
    NodeHealth,
    heartbeats_of,
    observe,
    ready_status,
    with_unknown_conditions,
)
from allot.controllers.node_lifecycle.taints import (
    MANAGED_NO_EXECUTE_TAINTS,
    NoExecuteTaint,
    evicting_key,
    has_evicting_taint,
    with_taints,
)
from allot.controllers.node_lifecycle.zones import (
    EvictionRates,
    ZoneCount,
    Zones,
    eviction_rate,
    zone_of,
)
from allot.controllers.pods_by_node import PodsByNode

log = logging.getLogger(__name__)

NODE_LEASES: Final = "kube-node-lease"
NODE_NOT_READY: Final = "NodeNotReady"
CONFLICT_SECONDS: Final = 0.1
"""Requeue delay after a conflict; the informer normally has the newer version by then."""
TIMER_TOLERANCE_SECONDS: Final = 0.01
"""Timers may fire early by this much."""
FULL_DISRUPTION_RECHECK_SECONDS: Final = 5.0
"""How often evictions are reconsidered while all zones are disrupted."""


class NodeLifecycleSettings(NamedTuple):
    """The settings of the controller."""

    grace_seconds: float = 50.0
    """How long a node may go without a heartbeat."""
    startup_grace_seconds: float = 60.0
    """How long a new node may take for its first heartbeat."""
    monitors_without_lease: bool = True
    """Whether to monitor nodes that never had a lease, as Kubernetes does."""
    rates: EvictionRates = EvictionRates()


class NodeLifecycleController(QueueController[str]):
    """Keys are node names. Only the times of the last heartbeats are kept in memory."""

    name = "node-lifecycle-controller"
    event_source = "node-controller"
    queue_name = "node_lifecycle_controller"

    def __init__(
        self,
        context: ControllerContext,
        settings: NodeLifecycleSettings = NodeLifecycleSettings(),  # noqa: B008 - a value
    ) -> None:
        super().__init__(context)
        self._settings = settings
        self._recorder = context.recorder
        self._metrics = _Metrics(context.registry)
        self._health: dict[str, NodeHealth] = {}
        self._zones = Zones()
        self._all_lost = False
        self._next_at: dict[str, float] = {}
        """By zone: when the next node may be tainted NoExecute."""
        self._nodes = context.informers.informer(NODES)
        self._leases = context.informers.informer(LEASES, Scope(NODE_LEASES))
        self._pods_by_node = PodsByNode(context.informers.informer(PODS))
        self._nodes.add_handlers(
            self._node_added, lambda _, node: self._node_changed(node), self._node_deleted
        )
        self._leases.add_handlers(self._lease_changed, lambda _, lease: self._lease_changed(lease))

    # --- event handlers ---

    def _node_added(self, node: Node) -> None:
        self._record_event(
            node, "RegisteredNode", f"Registered Node {node.metadata.name} in Controller"
        )
        self._node_changed(node)

    def _node_changed(self, node: Node) -> None:
        self._look(node)
        self._zones.put(node, ready=ready_status(node) == TRUE)
        self._zones_changed(zone_of(node))
        self.queue.add(node.metadata.name)

    def _node_deleted(self, node: Node) -> None:
        name = node.metadata.name
        self._record_event(node, "RemovingNode", f"Removing Node {name} from Controller")
        self._health.pop(name, None)
        self._zones.drop(name)
        self._zones_changed(zone_of(node))

    def _lease_changed(self, lease: RawObject) -> None:
        node = self._nodes.get(ObjectKey("", lease.metadata.name))
        if node is not None:
            self._look(node)

    def _look(self, node: Node) -> NodeHealth:
        name = node.metadata.name
        lease = self._leases.get(ObjectKey(NODE_LEASES, name))
        health = observe(
            self._health.get(name),
            node,
            heartbeats_of(node, lease),
            self.clock.now(),
            self.clock.today(),
        )
        self._health[name] = health
        return health

    def _zones_changed(self, zone: str) -> None:
        self._metrics.count(zone, self._zones.count(zone))
        was_lost, self._all_lost = self._all_lost, self._zones.are_all_lost()
        if was_lost == self._all_lost:
            return
        if was_lost:
            # Heartbeats arrive again. Nodes may have been alive while none arrived.
            now = self.clock.now()
            self._health = {name: health._replace(at=now) for name, health in self._health.items()}
        for node in self._nodes.list():
            self.queue.add(node.metadata.name)

    # --- reconciling ---

    async def reconcile(self, key: str) -> None:
        node = self._nodes.get(ObjectKey("", key))
        if node is None:
            return
        wait = self._deadline(node) - self.clock.now()
        if wait <= 0:
            await self._give_up(node)
        elif wait < float("inf"):
            self.queue.add_after(key, wait)
        await self._taint(node)

    def _deadline(self, node: Node) -> float:
        health, settings = self._look(node), self._settings
        if health.heartbeats.renewal is None and not settings.monitors_without_lease:
            return float("inf")
        has_reported = ready_status(node) is not None
        grace = settings.grace_seconds if has_reported else settings.startup_grace_seconds
        return health.at + grace

    async def _give_up(self, node: Node) -> None:
        """Set the node's conditions to Unknown, and its pods to not ready."""
        lost = with_unknown_conditions(node, self.clock.today())
        if lost is not node:
            log.warning("node %s: no heartbeat within the grace period", node.metadata.name)
            try:
                await self.client.update_status(NODES, lost)
            except ApiStatusError as error:
                if error.is_conflict:
                    self.queue.add_after(node.metadata.name, CONFLICT_SECONDS)
                elif not error.is_not_found:
                    raise
                return
            if ready_status(node) == TRUE:
                text = f"Node {node.metadata.name} status is now: {NODE_NOT_READY}"
                self._recorder.event(
                    reference_to(NODES, node), NORMAL, NODE_NOT_READY, "Watching", text
                )
        for pod in self._pods_by_node.of(node.metadata.name):
            await self._mark(pod)

    async def _mark(self, pod: Pod) -> None:
        patch = unready_patch(pod, written_time(self.clock.today()))
        if patch is None:
            return
        try:
            await self.client.patch(PODS, pod.key, patch, PatchType.STRATEGIC, subresource="status")
        except ApiStatusError as error:
            if not (error.is_not_found or error.is_conflict):  # deleted, or replaced
                raise
            return
        self._recorder.event(
            reference_to(PODS, pod), WARNING, NODE_NOT_READY, "Watching", "Node is not ready"
        )

    # --- taints ---

    async def _taint(self, node: Node) -> None:
        name = node.metadata.name
        evicting = self._evicting(node)
        today = self.clock.today()
        try:
            await self.client.update_with_retry(
                NODES,
                ObjectKey("", name),
                lambda found: with_taints(found, evicting, today),
                start=node,
            )
        except ApiStatusError as error:
            if not error.is_not_found:
                raise

    def _evicting(self, node: Node) -> NoExecuteTaint:
        """Whether the node gets, keeps or loses its NoExecute taint."""
        match ready_status(node):
            case None:
                return NoExecuteTaint.KEEP
            case "True":
                return NoExecuteTaint.REMOVE
        if self._all_lost:
            return NoExecuteTaint.REMOVE
        if has_evicting_taint(node, *MANAGED_NO_EXECUTE_TAINTS):
            return (
                NoExecuteTaint.ADD
            )  # replacing one NoExecute taint by the other is not rate limited
        zone = zone_of(node)
        wait = self._wait_for_turn(zone)
        if wait > 0:
            self.queue.add_after(node.metadata.name, wait)
            return NoExecuteTaint.KEEP
        log.info("node %s: tainted NoExecute (%s)", node.metadata.name, evicting_key(node))
        self._metrics.evictions.labels(zone).inc()
        return NoExecuteTaint.ADD

    def _wait_for_turn(self, zone: str) -> float:
        """Seconds until another node of the zone may be tainted NoExecute."""
        rate = eviction_rate(self._zones.count(zone), self._settings.rates)
        if rate <= 0:
            return FULL_DISRUPTION_RECHECK_SECONDS
        now = self.clock.now()
        wait = self._next_at.get(zone, now) - now
        if wait > TIMER_TOLERANCE_SECONDS:
            return wait
        self._next_at[zone] = now + 1 / rate
        return 0.0

    def _record_event(self, node: Node, reason: str, text: str) -> None:
        note = f"Node {node.metadata.name} event: {text}"
        self._recorder.event(reference_to(NODES, node), NORMAL, reason, "Watching", note)


def unready_patch(pod: Pod, moment: str) -> dict[str, Any] | None:
    """The status patch for a pod whose node is unreachable; None if the pod is not ready anyway."""
    conditions: list[dict[str, Any]] = pod.get("status", "conditions", default=[])
    if not any(found.get("type") == READY and found.get("status") == TRUE for found in conditions):
        return None
    condition = {"type": READY, "status": FALSE, "lastTransitionTime": moment}
    return {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}


class _Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        label = ("zone",)
        prefix = "node_collector"
        self.evictions = Counter(
            f"{prefix}_evictions", "Nodes whose pods had to go.", label, registry=registry
        )
        self._size = Gauge(f"{prefix}_zone_size", "Nodes of the zone.", label, registry=registry)
        self._health = Gauge(
            f"{prefix}_zone_health", "Per cent of them that are ready.", label, registry=registry
        )
        self._unready = Gauge(
            f"{prefix}_unhealthy_nodes_in_zone",
            "Nodes that are not ready.",
            label,
            registry=registry,
        )

    def count(self, zone: str, count: ZoneCount) -> None:
        self._size.labels(zone).set(count.size)
        self._unready.labels(zone).set(count.unready)
        self._health.labels(zone).set(100 * count.ready / count.size if count.size else 100)
