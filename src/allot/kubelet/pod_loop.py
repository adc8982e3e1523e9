"""The control loop for pods of simulated nodes: writes what `pod_lifecycle` decides.

One informer has the pods of all nodes. The cost of an event does not depend on the number of pods.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final

from allot.api.claims import ResourceClaim
from allot.api.core import Node, Pod
from allot.api.identities import ObjectKey
from allot.backoff import Backoff
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.event_recorder import EventRecorder
from allot.client.events import NORMAL, WARNING, Recorder, reference_to
from allot.client.informer import Informer
from allot.client.options import DeleteOptions
from allot.client.resources import PODS
from allot.client.work_queue import WorkQueue, run_workers
from allot.kubelet.addresses import POD_NETWORK, pick_address
from allot.kubelet.container_behaviour import container_behaviour
from allot.kubelet.container_events import ContainerEvent, container_events, killing_events
from allot.kubelet.dra.container_devices import (
    CONTAINER_DEVICES,
    ContainerError,
    annotation,
    described,
)
from allot.kubelet.dra.nodes import BY_NODE, DraNodes
from allot.kubelet.dra.pod_work import Progress
from allot.kubelet.metrics import KubeletMetrics
from allot.kubelet.node_status import address_of, is_offline
from allot.kubelet.pod_claims import existing_claims, what_is_missing
from allot.kubelet.pod_lifecycle import (
    ContainerObstacle,
    PodAddresses,
    PodDecision,
    decide,
    has_begun,
)
from allot.kubelet.settings import KubeletSettings

log = logging.getLogger(__name__)

WORKERS: Final = 16
CONFLICT_SECONDS: Final = 0.1
"""Requeue delay after a conflict; the informer normally has the newer version by then."""
FAILURES: Final = Backoff(initial_seconds=0.05, max_seconds=30.0, jitter=0.0)
UNRESERVED_CLAIM_GRACE_SECONDS: Final = 1.0
"""How long a missing reservation is not reported: the claim's event may arrive after the pod's."""
STEPS_AT_ONCE: Final = 8
"""Steps of one pod before it is queued again."""
KUBELET: Final = "kubelet"
FAILED_PREPARE: Final = "FailedPrepareDynamicResources"
FAILED_UNPREPARE: Final = "FailedUnprepareDynamicResources"
FAILED: Final = "Failed"
INJECTED: Final = "DevicesInjected"
OBSTACLE_SECONDS: Final = 2.0
"""How often the creation of a container is tried again."""
_BY_CLAIM: Final = "claim that the pod waits for"
_BY_ADDRESS: Final = "address"


class PodLoop:
    """Simulates the pods that are bound to the nodes of an informer."""

    def __init__(
        self,
        client: Client,
        nodes: Informer[Node],
        pods: Informer[Pod],
        claims: Informer[ResourceClaim],
        recorder: EventRecorder,
        settings: KubeletSettings,
        metrics: KubeletMetrics,
        resources: DraNodes,
    ) -> None:
        self._metrics = metrics
        self._resources = resources
        self._client = client
        self._clock = client.clock
        self._nodes, self._pods, self._claims = nodes, pods, claims
        self._recorder = recorder
        self._settings = settings
        self._queue: WorkQueue[ObjectKey] = WorkQueue(clock=client.clock, backoff=FAILURES)
        self._waiting_since: dict[ObjectKey, float] = {}
        resources.on_pod_change = self._queue.add
        pods.add_index(BY_NODE, lambda pod: (pod.node_name,))
        pods.add_index(_BY_CLAIM, _claims_waited_for)
        pods.add_index(_BY_ADDRESS, lambda pod: (pod.get("status", "podIP", default=""),))
        pods.add_handlers(
            on_add=self._follow,
            on_update=self._follow_change,
            on_delete=lambda pod: self._forget(pod.key),
        )
        nodes.add_handlers(
            on_add=lambda node: self._follow_node(None, node), on_update=self._follow_node
        )
        claims.add_handlers(
            on_add=self._follow_claim, on_update=lambda _, claim: self._follow_claim(claim)
        )

    async def run(self) -> None:
        await run_workers(self._queue, self._reconcile, WORKERS)

    # --- event handlers ---

    def _follow(self, pod: Pod) -> None:
        if self._node_of(pod) is not None:
            self._queue.add(pod.key)

    def _follow_change(self, old: Pod, new: Pod) -> None:
        self._follow(new)
        was_deleted = old.metadata.deletion_timestamp is not None
        if new.metadata.deletion_timestamp is not None and not was_deleted:
            self._record_container_events(new, killing_events(new.get("status", default={})))

    def _forget(self, key: ObjectKey) -> None:
        self._waiting_since.pop(key, None)
        self._queue.forget(key)

    def _follow_node(self, old: Node | None, node: Node) -> None:
        """Queue the pods of a node that becomes ready."""
        if _serves(node) and (old is None or not _serves(old)):
            for pod in self._pods.by_index(BY_NODE, node.metadata.name):
                self._queue.add(pod.key)

    def _follow_claim(self, claim: ResourceClaim) -> None:
        metadata = claim.metadata
        for pod in self._pods.by_index(_BY_CLAIM, f"{metadata.namespace}/{metadata.name}"):
            self._queue.add(pod.key)

    def _node_of(self, pod: Pod) -> Node | None:
        node = self._nodes.get(ObjectKey("", pod.node_name))
        return node if node is not None and _serves(node) else None

    # --- reconciling ---

    async def _reconcile(self, key: ObjectKey) -> None:
        pod = self._pods.get(key)
        node = self._node_of(pod) if pod is not None else None
        if pod is None or node is None or not self._may_look_at(pod):
            return
        try:
            await self._bring_up_to_date(key, pod, address_of(node))
        except ApiStatusError as error:
            if error.is_conflict:
                self._queue.add_after(key, CONFLICT_SECONDS)
            elif not error.is_not_found:
                raise

    async def _bring_up_to_date(self, key: ObjectKey, pod: Pod, host_ip: str) -> None:
        now = self._clock.today()
        place = PodAddresses(host_ip, self._address(pod, host_ip))
        wanted = None
        for _ in range(STEPS_AT_ONCE):
            may_start = self._is_prepared(pod)
            obstacle = None
            if may_start and not has_begun(pod):
                pod, obstacle = await self._create_containers(key, pod)
            decision = decide(
                pod, place, self._settings, now, may_start=may_start, obstacle=obstacle
            )
            if (decision.ends_pod or pod.is_finished) and not self._is_released(pod):
                return  # the claims must not be used by others before that
            if decision.is_gone:
                options = DeleteOptions(uid=pod.metadata.uid, grace_period_seconds=0)
                await self._client.delete(PODS, key, options)
                log.info("pod %s: removed from node %s", key, pod.node_name)
                return
            if decision.wake_seconds is not None:
                self._queue.add_after(key, decision.wake_seconds)
            status = self._with_health(pod, decision)
            if status is None or status == wanted:
                return  # the server drops part of the status: do not write it again
            wanted = status
            before = pod.get("status", default={})
            pod = await self._client.update_status(PODS, pod.with_value(wanted, "status"))
            self._metrics.status_written(before, wanted)
            self._record_container_events(pod, container_events(before, wanted))
            if wanted.get("phase") != before.get("phase"):
                log.info("pod %s: %s on node %s", key, wanted.get("phase"), pod.node_name)
        self._queue.add(key)

    def _with_health(self, pod: Pod, decision: PodDecision) -> dict[str, Any] | None:
        """The status to write; None: unchanged."""
        before = pod.get("status", default={})
        if pod.is_finished or not pod.spec.resource_claims:
            return decision.status
        status = self._resources.with_health(decision.status or before, pod)
        return status if status != before else None

    # --- claims ---

    def _is_prepared(self, pod: Pod) -> bool:
        """Whether the pod may start, as far as its claims are concerned. If it runs, they are prepared all the same."""
        if pod.is_finished or pod.metadata.deletion_timestamp is not None:
            return False
        runs = has_begun(pod)
        if not runs and what_is_missing(pod, self._claims.get):
            return False
        claims = existing_claims(pod, self._claims.get)
        if not claims:
            return True
        outcome = self._resources.prepare(pod, claims)
        if outcome.progress is Progress.FAILED:
            self._report_failed_prepare(pod, outcome.message)
        if outcome.retry_seconds:
            self._queue.add_after(pod.key, outcome.retry_seconds)
        return outcome.progress is Progress.DONE

    def _is_released(self, pod: Pod) -> bool:
        """Whether the claims of a pod that has ended are unprepared."""
        outcome = self._resources.release(pod)
        if outcome.progress is Progress.FAILED:
            note = f"Failed to unprepare dynamic resources: unprepare dynamic resources: {outcome.message}"
            self._warn(pod, FAILED_UNPREPARE, note)
        if outcome.retry_seconds:
            self._queue.add_after(pod.key, outcome.retry_seconds)
        return outcome.progress is Progress.DONE

    async def _create_containers(
        self, key: ObjectKey, pod: Pod
    ) -> tuple[Pod, ContainerObstacle | None]:
        """Show what containers get from their devices, in an annotation; or why one cannot be created."""
        try:
            devices = self._resources.container_devices(pod)
        except ContainerError as error:
            self._warn(pod, FAILED, f"Error: {error}")
            self._queue.add_after(key, OBSTACLE_SECONDS)
            return pod, ContainerObstacle(error.container, str(error))
        if not devices:
            return pod, None
        shown = annotation(devices)
        if pod.metadata.annotations.get(CONTAINER_DEVICES) != shown:
            change = {"metadata": {"annotations": {CONTAINER_DEVICES: shown}}}
            pod = await self._client.patch(PODS, key, change)
            for name, parts in devices.items():
                note = f"Container {name} gets {described(parts)}"
                self._recorder_of(pod).event(
                    reference_to(PODS, pod), NORMAL, INJECTED, "Starting", note
                )
        return pod, None

    def _may_look_at(self, pod: Pod) -> bool:
        """Whether to report a missing claim now: the claim's event may arrive after the pod's."""
        key = pod.key
        if pod.is_finished or pod.metadata.deletion_timestamp is not None or has_begun(pod):
            return True
        missing = what_is_missing(pod, self._claims.get)
        if not missing:
            self._waiting_since.pop(key, None)
            for problem in container_behaviour(pod, self._settings).problems:
                self._warn(pod, "InvalidAnnotation", problem)
            return True
        waits = self._clock.now() - self._waiting_since.setdefault(key, self._clock.now())
        if waits < UNRESERVED_CLAIM_GRACE_SECONDS:
            self._queue.add_after(key, UNRESERVED_CLAIM_GRACE_SECONDS - waits)
            return False
        self._report_failed_prepare(pod, missing)
        return True

    def _report_failed_prepare(self, pod: Pod, problem: str) -> None:
        note = f"Failed to prepare dynamic resources: prepare dynamic resources: {problem}"
        self._warn(pod, FAILED_PREPARE, note)
        self._metrics.could_not_start(pod, FAILED_PREPARE)

    def _warn(self, pod: Pod, reason: str, note: str) -> None:
        self._recorder_of(pod).event(reference_to(PODS, pod), WARNING, reason, "Starting", note)

    def _record_container_events(self, pod: Pod, events: Iterable[ContainerEvent]) -> None:
        recorder, about = self._recorder_of(pod), reference_to(PODS, pod)
        for (field, name), reason, note in events:
            path = f"spec.{field}{{{name}}}"
            recorder.event(about._replace(field_path=path), NORMAL, reason, reason, note)

    def _recorder_of(self, pod: Pod) -> Recorder:
        return self._recorder.for_component(KUBELET, pod.node_name)

    def _address(self, pod: Pod, host_ip: str) -> str:
        if pod.get("spec", "hostNetwork"):
            return host_ip
        known = pod.get("status", "podIP", default="")
        return known or pick_address(pod.metadata.uid, POD_NETWORK, self._has)

    def _has(self, address: str) -> bool:
        """Whether an unfinished pod has the address."""
        return any(not pod.is_finished for pod in self._pods.by_index(_BY_ADDRESS, address))


def _serves(node: Node) -> bool:
    return not is_offline(node) and bool(address_of(node))


def _claims_waited_for(pod: Pod) -> Sequence[str]:
    return () if pod.is_finished or has_begun(pod) else pod.used_claim_keys
