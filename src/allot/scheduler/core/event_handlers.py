"""Event handlers of the informers: each change of an object updates the state and is reported to the scheduling queue.

This is what wakes a waiting pod: `SchedulingQueue.on_cluster_event` asks the plugins' queueing hints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.core import Namespace, Node, Pod
from allot.api.raw import RawObject
from allot.api.slices import ResourceSlice
from allot.client import resources
from allot.client.informer import InformerFactory
from allot.client.options import Scope
from allot.client.resources import Resource
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.framework import events
from allot.scheduler.framework.events import (
    ASSIGNED_POD,
    NODE,
    WAITING_POD,
    Action,
    ClusterEvent,
    node_update_actions,
    pod_update_actions,
)
from allot.scheduler.framework.handle import Handle
from allot.scheduler.state.nodes import NodeFacts
from allot.scheduler.state.pods import PodInfo

T = TypeVar("T")

POD_PLACED: Final = ClusterEvent(ASSIGNED_POD, Action.ADD)
CLAIM_ADDED: Final = ClusterEvent(events.RESOURCE_CLAIM, Action.ADD)
CLAIM_UPDATED: Final = ClusterEvent(events.RESOURCE_CLAIM, Action.UPDATE_OTHER)
CLAIM_DELETED: Final = ClusterEvent(events.RESOURCE_CLAIM, Action.DELETE)
UNFINISHED: Final = Scope(field_selector="status.phase!=Succeeded,status.phase!=Failed")


class EventHandlers:
    """Keeps the state of one scheduler up to date."""

    def __init__(
        self,
        queue: SchedulingQueue,
        handle: Handle,
        is_responsible_for: Callable[[str], bool],
        on_pod_deleted: Callable[[PodInfo], None] = lambda _: None,
    ) -> None:
        """`is_responsible_for` says whether this scheduler schedules pods with a scheduler name."""
        self._queue = queue
        self._cluster = handle.cluster
        self._claims = handle.claims
        self._devices = handle.devices
        self._volumes = handle.volumes
        self._workloads = handle.workloads
        self._clock = handle.clock
        self._is_responsible_for = is_responsible_for
        self._on_pod_deleted = on_pod_deleted
        self._waiting: dict[str, PodInfo] = {}
        """Pods without a node that this scheduler is responsible for, by uid."""
        self._latest: PodInfo | None = None
        """The last new pod, which the next one may be similar to."""
        self._claims.add_listener(self._on_claim_change)
        self._claims.add_ledger_listener(self._devices.allocation_changed)
        self._claims.add_release_listener(self._on_claim_release)

    def register(self, informers: InformerFactory) -> None:
        """Add the handlers to all informers. They are called once the informers start."""
        informers.informer(resources.NODES).add_handlers(
            self.on_node_update, lambda _, node: self.on_node_update(node), self.on_node_delete
        )
        informers.informer(resources.NAMESPACES).add_handlers(
            self.on_namespace_update,
            lambda _, new: self.on_namespace_update(new),
            self.on_namespace_delete,
        )
        informers.informer(resources.DEVICE_CLASSES).add_handlers(
            lambda new: self.on_class_update(None, new), self.on_class_update, self.on_class_delete
        )
        informers.informer(resources.RESOURCE_SLICES).add_handlers(
            lambda new: self.on_slice_update(None, new), self.on_slice_update, self.on_slice_delete
        )
        informers.informer(resources.DEVICE_TAINT_RULES).add_handlers(
            self.on_taint_rule_update,
            lambda _, new: self.on_taint_rule_update(new),
            self.on_taint_rule_delete,
        )
        informers.informer(resources.RESOURCE_CLAIMS).add_handlers(
            self._claims.put, lambda _, new: self._claims.put(new), self._claims.remove
        )
        self._register_workloads(informers)
        self._register_volumes(informers)
        # Pods come last, so that the first of them finds all other state in place.
        informers.informer(resources.PODS, UNFINISHED).add_handlers(
            self.on_pod_update, lambda _, pod: self.on_pod_update(pod), self.on_pod_delete
        )

    # --- pods ---

    def on_pod_update(self, pod: Pod) -> None:
        uid: str = pod.data["metadata"].get("uid") or ""
        before = self._waiting.get(uid)
        known = before or self._cluster.pod(uid)
        info = PodInfo.of(pod, known, self._latest)
        if known is None:
            self._latest = info
        if info.node_name or info.is_finished:
            self._placed(info)
        elif self._is_responsible_for(info.scheduler_name):
            # An assumed pod, such as one that waits for its devices, needs no nomination.
            if not self._cluster.is_assumed(uid):
                self._update_nomination(before, info)
            elif uid not in self._queue:
                return  # bound already; the informer is behind
            self._waiting[uid] = info
            now = self._clock()
            if before is None:
                self._queue.add(info, now)
            else:
                self._queue.update(info, now, _change_of_waiting_pod)

    def _update_nomination(self, before: PodInfo | None, pod: PodInfo) -> None:
        """Take over a changed `status.nominatedNodeName`."""
        if before is None or before.nominated_node_name != pod.nominated_node_name:
            self._cluster.nominations.put(pod, pod.nominated_node_name)
            if before is not None and before.nominated_node_name:
                # What was nominated is free again, as if the pod had been deleted.
                gone = before.assigned_to(before.nominated_node_name)
                self._on_cluster_event(ClusterEvent(ASSIGNED_POD, Action.DELETE), gone, None)

    def _placed(self, pod: PodInfo) -> None:
        """A pod that has a node, or has finished."""
        self._waiting.pop(pod.uid, None)
        self._cluster.nominations.remove(pod.uid)
        was_assumed = self._cluster.is_assumed(pod.uid)
        before = self._cluster.set_pod(pod)
        self._queue.delete(pod.uid)
        if pod.is_finished:
            if before is not None:
                self._on_cluster_event(ClusterEvent(ASSIGNED_POD, Action.DELETE), before, None)
        elif before is None or was_assumed:
            self._on_cluster_event(POD_PLACED, None, pod)
        else:
            change = ClusterEvent(ASSIGNED_POD, pod_update_actions(before, pod))
            self._on_cluster_event(change, before, pod)

    def on_pod_delete(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self._waiting.pop(uid, None)
        self._cluster.nominations.remove(uid)
        self._queue.delete(uid)
        self._on_pod_deleted(PodInfo.of(pod))
        before = self._cluster.remove_pod(uid)
        if before is not None:
            self._on_cluster_event(ClusterEvent(ASSIGNED_POD, Action.DELETE), before, None)

    # --- nodes and namespaces ---

    def on_node_update(self, node: Node) -> None:
        facts = NodeFacts.of(node)
        before = self._cluster.set_node(facts)
        if before is None:
            self._on_cluster_event(ClusterEvent(NODE, Action.ADD), None, facts)
            return
        changed = node_update_actions(before, facts)
        if changed:
            self._on_cluster_event(ClusterEvent(NODE, changed), before, facts)

    def on_node_delete(self, node: Node) -> None:
        before = self._cluster.remove_node(node.metadata.name)
        self._devices.forget_node(node.metadata.name)
        if before is not None:
            self._on_cluster_event(ClusterEvent(NODE, Action.DELETE), before, None)

    def on_namespace_update(self, namespace: Namespace) -> None:
        self._cluster.set_namespace(namespace.metadata.name, namespace.metadata.labels)
        self._on_cluster_event(ClusterEvent(events.NAMESPACE, Action.UPDATE_OTHER), None, namespace)

    def on_namespace_delete(self, namespace: Namespace) -> None:
        self._cluster.remove_namespace(namespace.metadata.name)

    # --- devices ---

    def _on_claim_change(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = old if new is None else new
        assert claim is not None
        key = claim.key
        event = CLAIM_ADDED if old is None else CLAIM_DELETED if new is None else CLAIM_UPDATED
        self._queue.on_cluster_event(event, old, new, self._clock(), key)

    def _on_claim_release(self, claim: ResourceClaim) -> None:
        """A pending allocation was given up: its devices are free, as if a claim had been deleted."""
        self._on_cluster_event(CLAIM_DELETED, claim, None)

    def on_class_update(self, old: DeviceClass | None, new: DeviceClass) -> None:
        self._devices.put_class(new)
        self._on_cluster_event(ClusterEvent(events.DEVICE_CLASS, _action(old, new)), old, new)

    def on_class_delete(self, class_: DeviceClass) -> None:
        self._devices.remove_class(class_)

    def on_slice_update(self, old: ResourceSlice | None, new: ResourceSlice) -> None:
        self._devices.put_slice(new)
        self._on_cluster_event(ClusterEvent(events.RESOURCE_SLICE, _action(old, new)), old, new)

    def on_slice_delete(self, slice_: ResourceSlice) -> None:
        self._devices.remove_slice(slice_)
        self._on_cluster_event(ClusterEvent(events.RESOURCE_SLICE, Action.DELETE), slice_, None)

    def on_taint_rule_update(self, rule: DeviceTaintRule) -> None:
        if self._devices.put_rule(rule):
            self._on_device_taints_change()

    def on_taint_rule_delete(self, rule: DeviceTaintRule) -> None:
        self._devices.remove_rule(rule)
        self._on_device_taints_change()

    def _on_device_taints_change(self) -> None:
        """A taint rule changes device taints, as an update of their slices would."""
        self._on_cluster_event(ClusterEvent(events.RESOURCE_SLICE, Action.UPDATE_OTHER), None, None)

    # --- workloads and volumes ---

    def _register_workloads(self, informers: InformerFactory) -> None:
        known = self._workloads
        informers.informer(resources.SERVICES).add_handlers(
            lambda new: known.set_service(*new.key, new.data),
            lambda _, new: known.set_service(*new.key, new.data),
            lambda old: known.remove_service(*old.key),
        )
        for resource in (
            resources.REPLICATION_CONTROLLERS,
            resources.REPLICA_SETS,
            resources.STATEFUL_SETS,
        ):
            self._register_workload(informers, resource)

    def _register_workload(self, informers: InformerFactory, resource: Resource[RawObject]) -> None:
        known, kind = self._workloads, resource.kind
        informers.informer(resource).add_handlers(
            lambda new: known.set_workload(kind, *new.key, new.data),
            lambda _, new: known.set_workload(kind, *new.key, new.data),
            lambda old: known.remove_workload(kind, *old.key),
        )

    def _register_volumes(self, informers: InformerFactory) -> None:
        volumes = self._volumes
        registered: tuple[tuple[Resource[RawObject], str, Any, Any], ...] = (
            (
                resources.PERSISTENT_VOLUME_CLAIMS,
                events.PERSISTENT_VOLUME_CLAIM,
                volumes.set_claim,
                lambda old: volumes.remove_claim(*old.key),
            ),
            (
                resources.PERSISTENT_VOLUMES,
                events.PERSISTENT_VOLUME,
                volumes.set_volume,
                lambda old: volumes.remove_volume(old.metadata.name),
            ),
            (
                resources.STORAGE_CLASSES,
                events.STORAGE_CLASS,
                volumes.set_class,
                lambda old: volumes.remove_class(old.metadata.name),
            ),
            (
                resources.CSI_STORAGE_CAPACITIES,
                events.CSI_STORAGE_CAPACITY,
                volumes.set_capacity,
                lambda old: volumes.remove_capacity(*old.key),
            ),
            (
                resources.CSI_DRIVERS,
                events.CSI_DRIVER,
                volumes.set_csi_driver,
                lambda old: volumes.remove_csi_driver(old.metadata.name),
            ),
            (
                resources.CSI_NODES,
                events.CSI_NODE,
                volumes.set_csi_node,
                lambda old: volumes.remove_csi_node(old.metadata.name),
            ),
            (
                resources.VOLUME_ATTACHMENTS,
                events.VOLUME_ATTACHMENT,
                volumes.set_attachment,
                lambda old: volumes.remove_attachment(old.metadata.name),
            ),
        )
        for resource, name, put, remove in registered:
            self._register_volume_kind(informers, resource, name, put, remove)

    def _register_volume_kind(
        self,
        informers: InformerFactory,
        resource: Resource[RawObject],
        name: str,
        put: Callable[[RawObject], None],
        remove: Callable[[RawObject], None],
    ) -> None:
        def changed(old: RawObject | None, new: RawObject) -> None:
            put(new)
            self._on_cluster_event(ClusterEvent(name, _action(old, new)), old, new)

        def gone(old: RawObject) -> None:
            remove(old)
            self._on_cluster_event(ClusterEvent(name, Action.DELETE), old, None)

        informers.informer(resource).add_handlers(lambda new: changed(None, new), changed, gone)

    def _on_cluster_event(self, event: ClusterEvent, old: Any, new: Any) -> None:
        self._queue.on_cluster_event(event, old, new, self._clock())


def _change_of_waiting_pod(old: PodInfo, new: PodInfo) -> ClusterEvent:
    return ClusterEvent(WAITING_POD, pod_update_actions(old, new))


def _action(old: object | None, new: object | None) -> Action:
    if old is None:
        return Action.ADD
    return Action.DELETE if new is None else Action.UPDATE_OTHER
