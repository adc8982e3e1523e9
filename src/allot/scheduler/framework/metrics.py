"""What the scheduler counts, under the names that Kubernetes and the KEPs give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from allot.scheduler.framework.counters import QuickCounter
from allot.scheduler.framework.durations import Durations, Observe
from allot.scheduler.framework.histograms import QuickHistogram
from allot.scheduler.framework.status import Code


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(start * factor**number for number in range(count))


class SchedulerMetrics:
    """The metrics of one scheduler."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.attempts = QuickCounter(
            "scheduler_schedule_attempts",
            "Attempts to schedule pods, by how they ended.",
            ("result", "profile"),
            registry=registry,
        )
        self.attempt_seconds = QuickHistogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "How long an attempt took, with binding if it came to that.",
            ("result", "profile"),
            buckets=exponential(0.001, 2, 15),
            registry=registry,
        )
        self._point_seconds = QuickHistogram(
            "scheduler_framework_extension_point_duration_seconds",
            "How long all plugins of an extension point took.",
            ("extension_point", "status", "profile"),
            buckets=exponential(0.0001, 2, 12),
            registry=registry,
        )
        self._plugin_seconds = QuickHistogram(
            "scheduler_plugin_execution_duration_seconds",
            "How long one call of a plugin took, in one of ten cycles.",
            ("plugin", "extension_point", "status"),
            buckets=exponential(0.00001, 1.5, 20),
            registry=registry,
        )
        self.pod_seconds = QuickHistogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From the first time a pod could be scheduled to its binding.",
            ("attempts",),
            buckets=exponential(0.01, 2, 20),
            registry=registry,
        )
        self.pod_attempts = QuickHistogram(
            "scheduler_pod_scheduling_attempts",
            "How many attempts a pod needed.",
            (),
            buckets=exponential(1, 2, 5),
            registry=registry,
        )
        self.incoming = QuickCounter(
            "scheduler_queue_incoming_pods",
            "Pods that came to a queue, by the event that brought them.",
            ("queue", "event"),
            registry=registry,
        )
        self.pending = Gauge(
            "scheduler_pending_pods", "Pods that wait, by queue.", ("queue",), registry=registry
        )
        self.cache_size = Gauge(
            "scheduler_cache_size",
            "Nodes, pods and assumed pods that the scheduler knows.",
            ("type",),
            registry=registry,
        )
        self.binding_allocations = Counter(
            "scheduler_dra_bindingconditions_allocations",
            "PreBind executions that required binding conditions, by how they ended.",
            ("profile", "status"),
            registry=registry,
        )
        self.binding_device_allocations = Counter(
            "scheduler_dra_bindingconditions_device_allocations",
            "Devices with binding conditions that were waited for, by how that ended.",
            ("profile", "driver", "status"),
            registry=registry,
        )
        self.prioritized_allocations = QuickCounter(
            "scheduler_dra_prioritized_list_allocations",
            "Requests with prioritized alternatives that were allocated, by the alternative they got (0 is the best).",
            ("profile", "alternative"),
            registry=registry,
        )
        self.binding_wait_seconds = Histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "How long pods waited for devices with binding conditions.",
            ("profile", "driver", "status"),
            buckets=exponential(0.1, 2, 14),
            registry=registry,
        )
        self.pre_bind_seconds = QuickHistogram(
            "scheduler_dra_bindingconditions_prebind_duration_seconds",
            "How long the claims of pods took from the decision until they could be bound.",
            ("status", "requires_bindingconditions"),
            buckets=exponential(0.001, 2, 21),
            registry=registry,
        )
        self.preemption_attempts = Counter(
            "scheduler_preemption_attempts",
            "Attempts to make room for a pod.",
            registry=registry,
        )

        self.claim_creates = Counter(
            "dynamic_resource_allocation_resourceclaim_creates",
            "Claims that were made for extended resources of pods.",
            ("status", "admin_access", "owner_api_group", "owner_api_kind"),
            registry=registry,
        )

    def observe_attempt(self, result: str, scheduler_name: str, seconds: float) -> None:
        """Count an attempt, including its binding."""
        self.attempts.inc(result, scheduler_name)
        self.attempt_seconds.observe(seconds, result, scheduler_name)

    def pod_scheduled(self, attempts: int, seconds: float) -> None:
        """A pod is bound, so many seconds after it could first be scheduled."""
        self.pod_attempts.observe(attempts)
        self.pod_seconds.observe(seconds, str(attempts) if attempts < 15 else "15+")

    def claim_created(self, success: bool) -> None:
        """A claim was made for a pod's extended resources, or could not be."""
        self.claim_creates.labels("success" if success else "failure", "false", "", "Pod").inc()

    def durations_of(self, scheduler_name: str) -> Durations:
        """What observes the durations of a profile's cycles."""

        def observer_of_point(point: str, code: Code) -> Observe:
            return self._point_seconds.writer(point, code.value, scheduler_name)

        def observer_of_plugin(plugin: str, point: str, code: Code) -> Observe:
            return self._plugin_seconds.writer(plugin, point, code.value)

        return Durations(observer_of_point, observer_of_plugin, tidy=self._count_many)

    def _count_many(self) -> None:
        for histogram in (
            self.attempt_seconds,
            self._point_seconds,
            self._plugin_seconds,
            self.pod_seconds,
            self.pod_attempts,
            self.pre_bind_seconds,
        ):
            histogram.count_many()

    def alternative_chosen(self, profile: str, rank: int) -> None:
        """A request got one of its prioritized alternatives; 0 is the most preferred."""
        self.prioritized_allocations.inc(profile, str(rank))

    def collect_queue(
        self,
        lengths: Callable[[], Mapping[str, int]],
        rejections: Callable[[], Mapping[tuple[str, str], int]],
    ) -> None:
        """Let the gauges of pending and of unschedulable pods show the queue at the time they are read."""

        def length(name: str) -> float:
            return float(lengths().get(name, 0))

        for name in ("active", "backoff", "unschedulable", "gated"):
            self.pending.labels(name).set_function(partial(length, name))
        self.registry.register(_UnschedulablePods(rejections))

    def collect_cache_size(self, sizes: Callable[[], Mapping[str, int]]) -> None:
        """Let the gauge of the cache's size show what is known at the time it is read."""

        def size(type_: str) -> float:
            return float(sizes()[type_])

        for type_ in sizes():
            self.cache_size.labels(type_).set_function(partial(size, type_))


class _UnschedulablePods(Collector):
    """A gauge that is put together when it is read: pods come and go with every event."""

    def __init__(self, rejections: Callable[[], Mapping[tuple[str, str], int]]) -> None:
        self._rejections = rejections
        self._seen: set[tuple[str, str]] = set()
        """What was not 0 once is shown when it is 0."""

    def collect(self) -> Iterator[Metric]:
        gauge = GaugeMetricFamily(
            "scheduler_unschedulable_pods",
            "Pods that wait because a plugin rejected them. A pod counts for each of them.",
            labels=("plugin", "profile"),
        )
        rejections = self._rejections()
        self._seen.update(rejections)
        for labels in sorted(self._seen):
            gauge.add_metric(labels, rejections.get(labels, 0))
        yield gauge
