"""What the scheduler counts, under the names that Kubernetes and the KEPs give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from allot.scheduler.sleeping_pods import Place


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(start * factor**number for number in range(count))


class SchedulerMetrics:
    """The metrics of one scheduler."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.attempts = Counter(
            "scheduler_schedule_attempts",
            "Attempts to schedule pods, by how they ended.",
            ("result", "profile"),
            registry=registry,
        )
        self.attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "How long an attempt took, with binding if it came to that.",
            ("result", "profile"),
            buckets=exponential(0.001, 2, 15),
            registry=registry,
        )
        self.point_seconds = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "How long all plugins of an extension point took.",
            ("extension_point", "status", "profile"),
            buckets=exponential(0.0001, 2, 12),
            registry=registry,
        )
        self.pod_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From the first time a pod could be scheduled to its binding.",
            ("attempts",),
            buckets=exponential(0.01, 2, 20),
            registry=registry,
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "How many attempts a pod needed.",
            buckets=exponential(1, 2, 5),
            registry=registry,
        )
        self.incoming = Counter(
            "scheduler_queue_incoming_pods",
            "Pods that came to a queue, by the event that brought them.",
            ("queue", "event"),
            registry=registry,
        )
        self.pending = Gauge(
            "scheduler_pending_pods", "Pods that wait, by queue.", ("queue",), registry=registry
        )
        self.unschedulable = Gauge(
            "scheduler_unschedulable_pods",
            "Pods that wait because a plugin rejected them.",
            ("plugin", "profile"),
            registry=registry,
        )
        self.cache_size = Gauge(
            "scheduler_cache_size",
            "Nodes, pods and assumed pods that the scheduler knows.",
            ("type",),
            registry=registry,
        )
        self.binding_allocations = Counter(
            "scheduler_dra_bindingconditions_allocations",
            "Devices with binding conditions that were waited for, by how that ended.",
            ("profile", "driver", "status"),
            registry=registry,
        )
        self.binding_wait_seconds = Histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "How long pods waited for devices with binding conditions.",
            ("profile", "driver", "status"),
            buckets=exponential(0.1, 2, 14),
            registry=registry,
        )
        self.pre_bind_seconds = Histogram(
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

    def claim_created(self, success: bool) -> None:
        """A claim was made for a pod's extended resources, or could not be."""
        self.claim_creates.labels("success" if success else "failure", "false", "", "Pod").inc()

    def follow_queue(self, lengths: Callable[[], Mapping[Place, int]]) -> None:
        """Let the gauge of pending pods show the queue at the time it is read."""

        def length(place: Place) -> float:
            return float(lengths().get(place, 0))

        for place in (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED):
            self.pending.labels(place.value).set_function(partial(length, place))
