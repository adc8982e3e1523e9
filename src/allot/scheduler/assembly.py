"""A scheduler process: state, queue, profiles, scheduler and event handlers around one client."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from allot.api.core import Node
from allot.backoff import Backoff
from allot.client import resources
from allot.client.client import Client
from allot.client.event_recorder import EventRecorder
from allot.client.informer import InformerFactory, Sources
from allot.client.wall_clock import wall_clock
from allot.exposition import show_gates
from allot.features import DEFAULTS, FeatureGates
from allot.scheduler.configuration import ProfileConfiguration, SchedulerConfiguration
from allot.scheduler.core.event_handlers import EventHandlers
from allot.scheduler.core.pod_status import PodStatusReporter
from allot.scheduler.core.scheduler import Scheduler
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import SubQueue
from allot.scheduler.explain.explainer import PodExplainer
from allot.scheduler.explain.failure_reasons import FailureReasons
from allot.scheduler.framework.deadlines import DecisionLimits
from allot.scheduler.framework.handle import Handle
from allot.scheduler.framework.metrics import SchedulerMetrics
from allot.scheduler.framework.plugins import LifecyclePlugin
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.registry import PluginRegistry
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.device_state import DeviceState
from allot.scheduler.state.pods import PodInfo

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
        plugins: PluginRegistry | None = None,
        sources: Sources | None = None,
    ) -> None:
        """`limits` bound the time of a decision. Without them, as in virtual time, only step budgets do.

        `plugins` is the registry that the configuration's plugins come from: by default those of this package and of
        all installed ones. `sources` are informers that other components of this process use as well.
        """
        configuration = configuration or SchedulerConfiguration()
        if configuration.rules is not None:
            gates = gates.with_rules(configuration.rules)
        self.client = client
        self.gates = gates
        self.metrics = SchedulerMetrics()
        show_gates(gates, self.metrics.registry)
        self.informers = InformerFactory(client, sources=sources)
        self._has_begun = False
        instance = f"{COMPONENT}-{socket.gethostname()}"
        self.recorder = EventRecorder(client, COMPONENT, instance, is_busy=self._is_busy)
        self.pod_status = PodStatusReporter(client, self.recorder, today)
        self.cluster = ClusterState()
        self.claims = ClaimTracker(gates)
        self.devices = DeviceState(gates, self.cluster.touch)
        self._clock = clock
        self.handle = Handle(
            gates,
            self.cluster,
            self.claims,
            self.devices,
            clock=clock,
            utc_now=today,
            client=client,
            informers=self.informers,
            events=self.pod_status,
            metrics=self.metrics,
            spawn=self._spawn,
            requeue=self._requeue,
        )
        self._registry = plugins or PluginRegistry.with_installed()
        self.profiles = {
            profile.scheduler_name: self._profile(profile) for profile in configuration.profiles
        }
        self.queue = SchedulingQueue.of_profiles(
            self.profiles,
            Backoff(configuration.initial_backoff_seconds, configuration.max_backoff_seconds),
            self.metrics.incoming.inc,
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
            self.pod_status,
            self.metrics,
            clock,
            self.reasons,
            limits,
            self.handle.waiting_pods,
        )
        EventHandlers(
            self.queue,
            self.handle,
            self.profiles.__contains__,
            self._on_pod_delete,
        ).register(self.informers)
        self.informers.informer(resources.NODES).add_handlers(None, None, self._on_node_delete)

    def _is_busy(self) -> bool:
        """Whether pods wait for a decision, or are being bound."""
        return self.queue.has_active or bool(self.scheduler.bindings.limit.in_use)

    @property
    def is_starting(self) -> bool:
        """Whether the caches are being filled. A replica that waits for leadership has not begun."""
        return self._has_begun and not self.informers.has_synced

    async def run(self) -> None:
        """Fill the caches, then schedule, until cancelled."""
        self._has_begun = True
        self.informers.start()
        self.recorder.start()
        try:
            await self.informers.wait_synced()
            gated = [each.pod for each in self.queue.pods() if each.sub_queue is SubQueue.GATED]
            for plugin in self._lifecycle_plugins():
                plugin.caches_synced(gated)
            await self.scheduler.run()
        finally:
            await self.recorder.stop()
            await self.informers.stop()

    def _profile(self, configuration: ProfileConfiguration) -> Profile:
        handle = replace(self.handle)
        profile = Profile(
            configuration.scheduler_name,
            [
                self._registry[name].factory(configuration.args.get(name) or {}, handle)
                for name in configuration.plugins
            ],
            configuration.weights,
            disabled=configuration.disabled,
            percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score,
        )
        handle.filters.profile = profile
        return profile

    def _lifecycle_plugins(self) -> list[LifecyclePlugin]:
        return [
            plugin
            for profile in self.profiles.values()
            for plugin in profile.plugins
            if isinstance(plugin, LifecyclePlugin)
        ]

    def _on_pod_delete(self, pod: PodInfo) -> None:
        """A pod that was being bound releases what was reserved for it."""
        if self.scheduler.bindings.stop(pod.uid):
            for plugin in self._lifecycle_plugins():
                plugin.binding_cancelled(pod)

    def _on_node_delete(self, node: Node) -> None:
        for plugin in self._lifecycle_plugins():
            plugin.node_deleted(node.metadata.name)

    def _requeue(self, pod: PodInfo) -> None:
        self.queue.retry(pod.uid, self._clock())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.scheduler.spawn(work)
