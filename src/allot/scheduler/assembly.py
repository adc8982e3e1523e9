"""Puts a scheduler together around a client: state, queue, plugins, informers."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import time
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from allot.api.core import Node
from allot.api.raw import RawObject
from allot.client import resources
from allot.client.client import Client
from allot.client.clock import wall_clock
from allot.client.errors import ApiStatusError
from allot.client.events import EventRecorder
from allot.client.informer import InformerFactory
from allot.client.options import PatchType
from allot.exposition import show_gates
from allot.features import (
    BINDING_CONDITIONS,
    DEFAULTS,
    DEVICE_STATUS,
    EXTENDED_RESOURCE,
    FeatureGates,
)
from allot.rules import AVOID_FAILED_DEVICES, RELEASE_WAITING_PODS_WHEN_OFF
from allot.scheduler.configuration import (
    ProfileConfiguration,
    SchedulerConfiguration,
)
from allot.scheduler.core.event_handlers import EventHandlers
from allot.scheduler.core.pod_status import BindingWaitReporter, PodStatusReporter
from allot.scheduler.core.scheduler import Scheduler
from allot.scheduler.core.scheduling_cycle import with_pods
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import SubQueue
from allot.scheduler.explain.explainer import PodExplainer
from allot.scheduler.explain.failure_reasons import FailureReasons
from allot.scheduler.framework.backoff import Backoff
from allot.scheduler.framework.concurrency_limit import released_slot
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.deadlines import DecisionLimits
from allot.scheduler.framework.plugins import Plugin
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import SUCCESS, Status
from allot.scheduler.metrics import SchedulerMetrics
from allot.scheduler.plugins.default_binder import DefaultBinder
from allot.scheduler.plugins.default_preemption import DefaultPreemption
from allot.scheduler.plugins.dynamic_resources.binding_gate import BindingGate
from allot.scheduler.plugins.dynamic_resources.binding_wait import BindingWait
from allot.scheduler.plugins.dynamic_resources.claim_tracker import ClaimTracker
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from allot.scheduler.plugins.dynamic_resources.device_state import DeviceState
from allot.scheduler.plugins.dynamic_resources.extended_claims import ExtendedClaims
from allot.scheduler.plugins.dynamic_resources.failed_devices import FailedDevices
from allot.scheduler.plugins.dynamic_resources.filter_results import DynamicResourcesArgs
from allot.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from allot.scheduler.plugins.preemption_victims import DisruptionBudget
from allot.scheduler.plugins.registry import (
    Handle,
    judging_plugin,
    read_dynamic_resources_args,
)
from allot.scheduler.plugins.volume_binding import VolumeBinding
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.volumes import VolumeState
from allot.scheduler.state.workloads import WorkloadSelectors

COMPONENT: Final = "default-scheduler"


class SchedulerProcess:
    """A scheduler with everything it needs; `run` runs it until cancelled."""

    def __init__(
        self,
        client: Client,
        configuration: SchedulerConfiguration | None = None,
        gates: FeatureGates = DEFAULTS,
        *,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], datetime] = wall_clock,
        limits: DecisionLimits | None = None,
    ) -> None:
        """`limits` bound how long a decision takes. Without them, as in virtual time, only step budgets do."""
        configuration = configuration or SchedulerConfiguration()
        if configuration.rules is not None:
            gates = gates.with_rules(configuration.rules)
        self.client = client
        self.gates = gates
        self.metrics = SchedulerMetrics()
        show_gates(gates, self.metrics.registry)
        self.informers = InformerFactory(client)
        self._has_begun = False
        self.recorder = EventRecorder(client, COMPONENT, f"{COMPONENT}-{socket.gethostname()}")
        self.outcomes = PodStatusReporter(client, self.recorder, today)
        self.binding_gates: list[BindingGate] = []
        self.cluster = ClusterState()
        self.claims = ClaimTracker(gates)
        self.devices = DeviceState(gates, self.cluster.touch)
        self._volumes = VolumeState()
        self._workloads = WorkloadSelectors()
        self._today = today
        self._clock = clock
        self._writer = ClaimWriter(client, self.claims.get)
        self._extended = self._extended_claims()
        self._volume_api = _VolumeApi(client)
        self._budgets = self.informers.informer(resources.POD_DISRUPTION_BUDGETS)
        self.profiles = {
            profile.scheduler_name: self._profile(profile) for profile in configuration.profiles
        }
        first = next(iter(self.profiles.values()))
        self.queue = SchedulingQueue(
            first.queue_sort[0],
            {name: profile.pre_enqueue for name, profile in self.profiles.items()},
            {
                plugin.name: plugin.events_to_register()
                for profile in self.profiles.values()
                for plugin in profile.plugins
            },
            Backoff(configuration.initial_backoff_seconds, configuration.max_backoff_seconds),
            lambda sub_queue, event: self.metrics.incoming.labels(sub_queue.value, event).inc(),
        )
        self.metrics.collect_queue(self.queue.lengths, self.queue.rejections)
        self.metrics.collect_cache_size(self.cluster.sizes)
        self.explainer = PodExplainer(self.cluster)
        # In virtual time nothing may depend on how fast the machine is.
        cpu_clock = time.thread_time if clock is time.monotonic else clock
        self.reasons = FailureReasons(
            self.cluster, lambda: not self.queue.has_active, clock, cpu_clock
        )
        self.scheduler = Scheduler(
            self.profiles,
            self.queue,
            self.cluster,
            self.outcomes,
            self.metrics,
            clock,
            self.reasons,
            limits,
        )
        follower = EventHandlers(
            self.queue,
            self.cluster,
            self.claims,
            self.devices,
            self._volumes,
            self._workloads,
            self.profiles.__contains__,
            self.scheduler.wake,
            clock,
            self._on_pod_delete,
        )
        follower.follow(self.informers)
        self.informers.informer(resources.NODES).add_handlers(
            lambda _: None, lambda _old, _new: None, self._on_node_delete
        )
        self._volume_api.follow(self.informers)

    @property
    def is_starting(self) -> bool:
        """Whether the cluster is being read. Who waits to be elected has not begun."""
        return self._has_begun and not self.informers.has_synced

    async def run(self) -> None:
        """Follow the cluster, then schedule, until cancelled."""
        self._has_begun = True
        self.informers.start()
        self.recorder.start()
        try:
            await self.informers.wait_synced()
            self._release_claims_of_gated_pods()
            await self.scheduler.run()
        finally:
            await self.recorder.stop()
            await self.informers.stop()

    def _profile(self, configuration: ProfileConfiguration) -> Profile:
        dry_run = _DryRunFilters(self.cluster)
        plugins = [
            self._plugin(name, configuration.args.get(name) or {}, dry_run)
            for name in configuration.plugins
        ]
        profile = Profile(
            configuration.scheduler_name,
            plugins,
            configuration.weights,
            disabled=configuration.disabled,
            percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score,
        )
        dry_run.profile = profile
        return profile

    def _plugin(self, name: str, args: Mapping[str, Any], dry_run: _DryRunFilters) -> Plugin:
        match name:
            case "VolumeBinding":
                return VolumeBinding(self._volumes, self.cluster, self._volume_api, args)
            case "DynamicResources":
                return self._dynamic_resources(args)
            case "DefaultPreemption":
                return DefaultPreemption(
                    dry_run,
                    self._disruption_budgets,
                    self._evict,
                    random.randrange,
                    args,
                    attempted=self.metrics.preemption_attempts.inc,
                )
            case "DefaultBinder":
                return DefaultBinder(self.client)
        known = Handle(self.cluster, self.claims, self.devices, self._volumes, self._workloads)
        return judging_plugin(name, args, known)

    def _dynamic_resources(self, args: Mapping[str, Any]) -> DynamicResources:
        known = read_dynamic_resources_args(args)
        failed = None
        if AVOID_FAILED_DEVICES in self.gates:
            failed = FailedDevices(self._spawn, self._retry, self._clock)
        return DynamicResources(
            self.claims,
            self.devices,
            self._writer,
            self.cluster.node,
            self._spawn,
            self._today,
            known,
            extended=self._extended,
            gate=self._binding_gate(known, failed),
            failed_devices=failed,
            monotonic=self._clock,
            warn=self.outcomes.warn,
            alternative_chosen=self.metrics.alternative_chosen,
        )

    def _binding_gate(
        self, args: DynamicResourcesArgs, failed: FailedDevices | None
    ) -> BindingGate | None:
        if BINDING_CONDITIONS not in self.gates or DEVICE_STATUS not in self.gates:
            return None
        timeout = timedelta(seconds=args.binding_timeout_seconds)
        wait = BindingWait(self.claims, timeout, self._today, self._has_node)
        reporter = BindingWaitReporter(self.outcomes, self.metrics)
        gate = BindingGate(
            self.claims,
            self._writer,
            wait,
            reporter,
            self._spawn,
            self._clock,
            lambda: self.informers.has_synced,
            failed,
            heeds_server=RELEASE_WAITING_PODS_WHEN_OFF in self.gates,
        )
        self.binding_gates.append(gate)
        return gate

    def _extended_claims(self) -> ExtendedClaims | None:
        if EXTENDED_RESOURCE not in self.gates:
            return None
        return ExtendedClaims(
            self.client,
            self._writer,
            self.claims,
            self.devices.extended,
            self._today,
            self.metrics.claim_created,
        )

    def _release_claims_of_gated_pods(self) -> None:
        """What was missing when the first pods came may have come since."""
        for queued in tuple(self.queue.pods()):
            if queued.sub_queue is SubQueue.GATED:
                for gate in self.binding_gates:
                    gate.release_if_claim_missing(queued.pod)

    def _on_pod_delete(self, pod: PodInfo) -> None:
        """A pod was deleted; one that waited for its devices lets go of them."""
        if self.scheduler.stop_binding(pod.uid):
            for gate in self.binding_gates:
                gate.release_claims(pod)

    def _has_node(self, name: str) -> bool:
        node = self.cluster.node(name)
        return node is not None and node.facts is not None

    def _on_node_delete(self, node: Node) -> None:
        """Pods that wait for their devices on a node that is deleted are decided about again."""
        for gate in self.binding_gates:
            gate.on_node_delete(node.metadata.name)

    def _retry(self, pod: PodInfo) -> None:
        """Devices that a pod avoided may be had again."""
        self.queue.retry(pod.uid, self._clock())
        self.scheduler.wake()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.scheduler.spawn(work)

    def _disruption_budgets(self) -> list[DisruptionBudget]:
        return [DisruptionBudget.of(budget) for budget in self._budgets.list()]

    async def _evict(self, victim: PodInfo, pod: PodInfo, node_name: str) -> None:
        """Mark a pod as making room for another, and delete it."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{pod.scheduler_name}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": self._today().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        with contextlib.suppress(ApiStatusError):
            await self.client.patch(
                resources.PODS, victim.key, patch, PatchType.STRATEGIC, subresource="status"
            )
        try:
            await self.client.delete(resources.PODS, victim.key)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise


class _DryRunFilters:
    """The filters of a profile, asked about a node as it would be."""

    profile: Profile

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        for plugin in self.profile.pre_filter:
            if plugin.name not in state.skipped_filters:
                plugin.add_pod(state, pod, other, node)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        for plugin in self.profile.pre_filter:
            if plugin.name not in state.skipped_filters:
                plugin.remove_pod(state, pod, other, node)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Whether the node takes the pod, also if those come first who were promised it."""
        others = self._cluster.nominations.before(pod, node.name)
        if others:
            crowded = with_pods(self.profile, state, pod, node, others)
            status = self._filter(crowded[0], pod, crowded[1])
            if not status.is_success:
                return status
        return self._filter(state, pod, node)

    def _filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        for plugin in self.profile.filter:
            if plugin.name not in state.skipped_filters:
                status = plugin.filter(state, pod, node)
                if not status.is_success:
                    return status.by(plugin.name)
        return SUCCESS


class _VolumeApi:
    """Writes volumes and claims, and waits for what others do with them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._waiters: set[asyncio.Event] = set()

    def follow(self, informers: InformerFactory) -> None:
        for resource in (resources.PERSISTENT_VOLUMES, resources.PERSISTENT_VOLUME_CLAIMS):
            informers.informer(resource).add_handlers(
                lambda _: self._wake(), lambda _old, _new: self._wake(), lambda _: self._wake()
            )

    def _wake(self) -> None:
        for waiter in self._waiters:
            waiter.set()

    async def update(self, changed: RawObject) -> RawObject:
        resource = (
            resources.PERSISTENT_VOLUMES
            if changed.kind == "PersistentVolume"
            else resources.PERSISTENT_VOLUME_CLAIMS
        )
        return await self._client.update(resource, changed)

    async def wait_until(self, is_done: Callable[[], bool], timeout_seconds: float) -> bool:
        event = asyncio.Event()
        self._waiters.add(event)
        try:
            async with released_slot(), asyncio.timeout(timeout_seconds):
                while not is_done():
                    await event.wait()
                    event.clear()
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(event)
        return True
