"""Puts a scheduler together around a client: state, queue, plugins, informers."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import time
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from allot.api.raw import RawObject
from allot.client import resources
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.events import EventRecorder
from allot.client.informer import InformerFactory
from allot.client.options import PatchType
from allot.features import (
    BINDING_CONDITIONS,
    DEFAULTS,
    DEVICE_STATUS,
    EXTENDED_RESOURCE,
    FeatureGates,
)
from allot.scheduler.configuration import (
    ConfigurationError,
    ProfileConfiguration,
    SchedulerConfiguration,
    duration_seconds,
)
from allot.scheduler.explaining import Explainer
from allot.scheduler.following import ClusterFollower
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import Plugin
from allot.scheduler.framework.status import SUCCESS, Status
from allot.scheduler.metrics import SchedulerMetrics
from allot.scheduler.outcomes import Outcomes, WaitReports
from allot.scheduler.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from allot.scheduler.plugins.default_binder import DefaultBinder
from allot.scheduler.plugins.default_preemption import DefaultPreemption
from allot.scheduler.plugins.dynamic_resources.answers import DynamicResourcesArgs
from allot.scheduler.plugins.dynamic_resources.binding_gate import BindingGate
from allot.scheduler.plugins.dynamic_resources.binding_wait import BindingWait
from allot.scheduler.plugins.dynamic_resources.claim_tracker import ClaimTracker
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from allot.scheduler.plugins.dynamic_resources.device_state import DeviceState
from allot.scheduler.plugins.dynamic_resources.extended_claims import ExtendedClaims
from allot.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from allot.scheduler.plugins.image_locality import ImageLocality
from allot.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from allot.scheduler.plugins.node_affinity import NodeAffinity
from allot.scheduler.plugins.node_name import NodeName
from allot.scheduler.plugins.node_ports import NodePorts
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit, never
from allot.scheduler.plugins.node_unschedulable import NodeUnschedulable
from allot.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from allot.scheduler.plugins.preemption_victims import DisruptionBudget
from allot.scheduler.plugins.priority_sort import PrioritySort
from allot.scheduler.plugins.scheduling_gates import SchedulingGates
from allot.scheduler.plugins.taint_toleration import TaintToleration
from allot.scheduler.plugins.topology_spread import PodTopologySpread
from allot.scheduler.plugins.volume_binding import VolumeBinding
from allot.scheduler.plugins.volume_restrictions import VolumeRestrictions
from allot.scheduler.plugins.volume_zone import VolumeZone
from allot.scheduler.profiles import Profile
from allot.scheduler.queue import Backoff, SchedulingQueue
from allot.scheduler.scheduler import Scheduler
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.volumes import VolumeState
from allot.scheduler.state.workloads import WorkloadSelectors

COMPONENT: Final = "default-scheduler"


def wall_clock() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


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
    ) -> None:
        configuration = configuration or SchedulerConfiguration()
        self.client = client
        self.gates = gates
        self.metrics = SchedulerMetrics()
        self.informers = InformerFactory(client)
        self.recorder = EventRecorder(client, COMPONENT, f"{COMPONENT}-{socket.gethostname()}")
        self.outcomes = Outcomes(client, self.recorder, today)
        self._gates_before_binding: list[BindingGate] = []
        self.cluster = ClusterState()
        self.claims = ClaimTracker(gates)
        self.devices = DeviceState(gates, self.cluster.touch)
        self._volumes = VolumeState()
        self._workloads = WorkloadSelectors()
        self._today = today
        self._writer = ClaimWriter(client)
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
            lambda place, event: self.metrics.incoming.labels(place.value, event).inc(),
        )
        self.metrics.follow_queue(self.queue.lengths)
        self.explainer = Explainer(self.cluster)
        self.scheduler = Scheduler(
            self.profiles,
            self.queue,
            self.cluster,
            self.outcomes,
            self.metrics,
            clock,
            self.explainer.useful_reason,
        )
        follower = ClusterFollower(
            self.queue,
            self.cluster,
            self.claims,
            self.devices,
            self._volumes,
            self._workloads,
            self.profiles.__contains__,
            self.scheduler.wake,
            clock,
            self._pod_gone,
        )
        follower.follow(self.informers)
        self._volume_api.follow(self.informers)

    async def run(self) -> None:
        """Follow the cluster, then schedule, until cancelled."""
        self.informers.start()
        self.recorder.start()
        try:
            await self.informers.wait_synced()
            await self.scheduler.run()
        finally:
            await self.recorder.stop()
            await self.informers.stop()

    def _profile(self, configuration: ProfileConfiguration) -> Profile:
        what_if = _WhatIf()
        plugins = [
            self._plugin(name, configuration.args.get(name) or {}, what_if)
            for name in configuration.plugins
        ]
        profile = Profile(
            configuration.scheduler_name,
            plugins,
            configuration.weights,
            disabled=configuration.disabled,
            percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score,
        )
        what_if.profile = profile
        return profile

    def _plugin(self, name: str, args: Mapping[str, Any], what_if: _WhatIf) -> Plugin:
        cluster, volumes = self.cluster, self._volumes
        match name:
            case "SchedulingGates":
                return SchedulingGates()
            case "PrioritySort":
                return PrioritySort()
            case "NodeName":
                return NodeName()
            case "NodeUnschedulable":
                return NodeUnschedulable()
            case "TaintToleration":
                return TaintToleration()
            case "NodeAffinity":
                return NodeAffinity(args)
            case "NodePorts":
                return NodePorts()
            case "NodeResourcesFit":
                extended = EXTENDED_RESOURCE in self.gates
                return NodeResourcesFit(
                    args, self.devices.extended.stands_behind if extended else never
                )
            case "NodeResourcesBalancedAllocation":
                return NodeResourcesBalancedAllocation(args)
            case "VolumeRestrictions":
                return VolumeRestrictions(volumes)
            case "NodeVolumeLimits":
                return NodeVolumeLimits(volumes)
            case "VolumeBinding":
                return VolumeBinding(volumes, cluster, self._volume_api, args)
            case "VolumeZone":
                return VolumeZone(volumes)
            case "PodTopologySpread":
                return PodTopologySpread(args, self._workloads.selector_of)
            case "InterPodAffinity":
                return InterPodAffinity(args)
            case "DynamicResources":
                return self._dynamic_resources(args)
            case "DefaultPreemption":
                return DefaultPreemption(
                    what_if, self._disruption_budgets, self._evict, random.randrange, args
                )
            case "ImageLocality":
                return ImageLocality()
            case "DefaultBinder":
                return DefaultBinder(self.client)
        raise ConfigurationError(f"unknown plugin {name}")

    def _dynamic_resources(self, args: Mapping[str, Any]) -> DynamicResources:
        known = read_dynamic_resources_args(args)
        return DynamicResources(
            self.claims,
            self.devices,
            self._writer,
            self.cluster.node,
            self._spawn,
            self._today,
            known,
            extended=self._extended,
            gate=self._binding_gate(known),
        )

    def _binding_gate(self, args: DynamicResourcesArgs) -> BindingGate | None:
        if BINDING_CONDITIONS not in self.gates or DEVICE_STATUS not in self.gates:
            return None
        timeout = timedelta(seconds=args.binding_timeout_seconds)
        wait = BindingWait(self.claims, timeout, self._today)
        reporter = WaitReports(self.outcomes, self.metrics)
        gate = BindingGate(self.claims, self._writer, wait, reporter, self._spawn)
        self._gates_before_binding.append(gate)
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

    def _pod_gone(self, pod: PodInfo) -> None:
        """A pod was deleted; one that waited for its devices lets go of them."""
        if self.scheduler.stop_binding(pod.uid):
            for gate in self._gates_before_binding:
                gate.abandon(pod)

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


def read_dynamic_resources_args(args: Mapping[str, Any]) -> DynamicResourcesArgs:
    """The arguments of DynamicResources; `ConfigurationError` for values that make no sense."""
    known = DynamicResourcesArgs()
    path = "DynamicResourcesArgs"
    filter_seconds, binding_seconds = known
    if args.get("filterTimeout") is not None:
        filter_seconds = duration_seconds(args["filterTimeout"], f"{path}.filterTimeout")
        if filter_seconds < 0:
            raise ConfigurationError(f"{path}.filterTimeout: must be zero or positive")
    if args.get("bindingTimeout") is not None:
        binding_seconds = duration_seconds(args["bindingTimeout"], f"{path}.bindingTimeout")
        if binding_seconds < 1:
            raise ConfigurationError(f"{path}.bindingTimeout: must be at least 1 second")
    return DynamicResourcesArgs(filter_seconds, binding_seconds)


class _WhatIf:
    """The filters of a profile, asked about a node as it would be."""

    profile: Profile

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        for plugin in self.profile.pre_filter:
            if plugin.name not in state.skipped_filters:
                plugin.add_pod(state, pod, other, node)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        for plugin in self.profile.pre_filter:
            if plugin.name not in state.skipped_filters:
                plugin.remove_pod(state, pod, other, node)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
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
            async with asyncio.timeout(timeout_seconds):
                while not is_done():
                    await event.wait()
                    event.clear()
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(event)
        return True
