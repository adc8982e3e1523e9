"""The loop: pods that are to be deleted as they come, nodes that are gone after a while, finished pods now and then."""

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
"""Finished pods that are deleted at the same time."""


class PodGarbageCollectorSettings(NamedTuple):
    """What an administrator may change."""

    finished_pods: int = 12_500
    """How many finished pods may stay. With 0, all."""
    check_seconds: float = 20.0
    """How often finished pods are counted, and how long the server has to delete a pod without a node."""
    quarantine_seconds: float = 40.0
    """How long a node has to be missing before its pods are lost."""


class MissingNode(NamedTuple):
    """A node that pods are bound to, but that is not here."""

    name: str


class PodGarbageCollector(QueueController[PodRef | MissingNode]):
    """Deletes without grace: nobody is there to use it."""

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

    # --- what happens in the cluster ---

    def _follow_pod(self, pod: Pod) -> None:
        node = pod.node_name
        if is_deleting(pod):
            # Usually the server is done with a pod that has no node; a binding may be under way.
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

    # --- what is done about it ---

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
        """Delete the pods of a node, if it is gone: the informer may have missed it, the server has not."""
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
        turns = asyncio.Semaphore(_AT_ONCE)

        async def collect(pod: Pod) -> None:
            async with turns:
                try:
                    await self._collect(pod, CollectionReason.TERMINATED)
                except ClientError as error:
                    log.warning("pod %s: %s; trying again later", pod.key, error)

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
