"""The control loop: terminating pods on events, missing nodes after a quarantine, finished pods periodically."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter

from allot.api.core import Node, Pod
from allot.api.identities import ObjectKey
from allot.client.errors import ClientError
from allot.client.resources import NODES, PODS
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.pod_disruption import Disruption, PodRef, disrupt, is_deleting, pod_ref
from allot.controllers.pod_garbage_collection.decisions import (
    CollectionReason,
    is_out_of_service,
    reason_to_end,
    surplus,
)
from allot.controllers.pods_by_node import PodsByNode

log = logging.getLogger(__name__)

NODE_IS_GONE: Final = Disruption("DeletionByPodGC", "PodGC: node no longer exists")
_FINISHED: Final = "pod-garbage-collector/finished"
_AT_ONCE: Final = 16
"""Concurrent deletions of finished pods."""


class PodGarbageCollectorSettings(NamedTuple):
    """The settings of the controller."""

    finished_pods: int = 12_500
    """Threshold of finished pods; 0: no limit."""
    check_seconds: float = 20.0
    """Interval of checking finished pods, and the delay before a terminating pod without a node is deleted."""
    quarantine_seconds: float = 40.0
    """How long a node must be missing before its pods are deleted."""


class MissingNode(NamedTuple):
    """Queue key: a node that pods are bound to, but that the informer does not have."""

    name: str


class PodGarbageCollector(QueueController[PodRef | MissingNode]):
    """Deletes without a grace period: no kubelet would use it."""

    name = "pod-garbage-collector-controller"
    queue_name = "orphaned_pods_nodes"

    def __init__(
        self,
        context: ControllerContext,
        settings: PodGarbageCollectorSettings = PodGarbageCollectorSettings(),  # noqa: B008 - a value
    ) -> None:
        super().__init__(context)
        self._settings = settings
        self._metrics = _Metrics(context.registry)
        self._pods = context.informers.informer(PODS)
        self._pods.add_index(_FINISHED, _finished_values)
        self._pods_by_node = PodsByNode(self._pods)
        self._nodes = context.informers.informer(NODES)
        self._pods.add_handlers(self._follow_pod, lambda _, pod: self._follow_pod(pod))
        self._nodes.add_handlers(
            self._follow_node, lambda _, node: self._follow_node(node), self._miss_node
        )

    def background_tasks(self) -> tuple[Coroutine[None, None, None], ...]:
        return (self._collect_finished(),) if self._settings.finished_pods > 0 else ()

    # --- event handlers ---

    def _follow_pod(self, pod: Pod) -> None:
        node = pod.node_name
        if is_deleting(pod):
            # The API server normally deletes a pod without a node itself; a binding may be in progress.
            self.queue.add_after(pod_ref(pod), 0 if node else self._settings.check_seconds)
        if node and ObjectKey("", node) not in self._nodes.store:
            self.queue.add_after(MissingNode(node), self._settings.quarantine_seconds)

    def _follow_node(self, node: Node) -> None:
        if is_out_of_service(node):
            for pod in self._pods_by_node.of(node.metadata.name):
                if is_deleting(pod):
                    self.queue.add(pod_ref(pod))

    def _miss_node(self, node: Node) -> None:
        self.queue.add_after(MissingNode(node.metadata.name), self._settings.quarantine_seconds)

    # --- reconciling ---

    async def reconcile(self, key: PodRef | MissingNode) -> None:
        match key:
            case PodRef():
                await self._end(key)
            case MissingNode():
                await self._clear(key.name)

    async def _end(self, ref: PodRef) -> None:
        pod = self._pods.get(ref.key)
        if pod is None or pod_ref(pod) != ref:
            return
        reason = reason_to_end(pod, self._nodes.get(ObjectKey("", pod.node_name)))
        if reason is not None:
            await self._collect(pod, reason)

    async def _clear(self, node: str) -> None:
        """Delete the pods of a node if it is gone. The live lookup avoids relying on a stale informer."""
        key = ObjectKey("", node)
        pods = self._pods_by_node.of(node)
        if not pods or key in self._nodes.store:
            return
        if await self.client.find(NODES, key) is not None:
            self.queue.add_after(MissingNode(node), self._settings.quarantine_seconds)
            return
        for pod in pods:
            await self._collect(pod, CollectionReason.ORPHANED)

    async def _collect_finished(self) -> None:
        clock = self.clock
        while True:
            finished = self._pods.by_index(_FINISHED, "")
            if len(finished) > self._settings.finished_pods:
                await self._collect_surplus(surplus(finished, self._settings.finished_pods))
            await clock.sleep(self._settings.check_seconds)

    async def _collect_surplus(self, pods: Iterable[Pod]) -> None:
        slots = asyncio.Semaphore(_AT_ONCE)

        async def collect(pod: Pod) -> None:
            async with slots:
                try:
                    await self._collect(pod, CollectionReason.TERMINATED)
                except ClientError as error:
                    log.warning("pod %s: %s; retrying later", pod.key, error)

        async with asyncio.TaskGroup() as group:
            for pod in pods:
                group.create_task(collect(pod))

    async def _collect(self, pod: Pod, reason: CollectionReason) -> None:
        log.info("collecting pod %s: %s", pod.key, reason.value)
        why = NODE_IS_GONE if reason is CollectionReason.ORPHANED else None
        try:
            await disrupt(self.client, pod, why, fail=True, grace_seconds=0)
        except ClientError:
            self._metrics.errors.labels(pod.metadata.namespace, reason.value).inc()
            raise
        self._metrics.deletions.labels(pod.metadata.namespace, reason.value).inc()


class _Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("namespace", "reason")
        self.deletions = Counter(
            "pod_gc_collector_force_delete_pods",
            "Pods that were deleted without grace.",
            labels,
            registry=registry,
        )
        self.errors = Counter(
            "pod_gc_collector_force_delete_pod_errors",
            "Failures to do so.",
            labels,
            registry=registry,
        )


def _finished_values(pod: Pod) -> Iterable[str]:
    return ("",) if pod.is_finished else ()
