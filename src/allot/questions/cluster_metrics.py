"""Metrics of a whole cluster: devices by state, what is left of capacity, what still fits, which pods wait and why.

They are computed from an `ObservedCluster`, and so are true for any cluster, whatever scheduler it has. The number of
series is bounded: series per node and per pool can be left out, and are when there are too many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from allot.api.core import Pod
from allot.api.quantity import Quantity
from allot.client import resources
from allot.client.resources import Resource
from allot.controllers.pool_status import newest_slices
from allot.questions.devices import DeviceList, DevicesByClass, DeviceUse
from allot.questions.largest_request import largest_request
from allot.questions.observed_cluster import ObservedCluster
from allot.questions.pending import pods_by_cause
from allot.scheduler.explain.static_scheduler import StaticScheduler

MAX_SERIES: Final = 20_000
"""Of one metric; with more, it is left out."""
MAX_CLASSES: Final = 100
WAIT_BUCKETS: Final = (0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400)
_ALWAYS: Final = (DeviceUse.FREE, DeviceUse.HELD)
"""States that are shown also when no device has them."""
_NANOS: Final = 1_000_000_000


class MetricsDetail(NamedTuple):
    """Which series there are."""

    per_node: bool = True
    per_pool: bool = True
    max_series: int = MAX_SERIES


class Figures(NamedTuple):
    """The metrics of one moment."""

    families: tuple[Metric, ...]
    left_out: tuple[str, ...] = ()
    """What was left out because there are too many: node or pool."""
    oldest: Mapping[str, datetime] = MappingProxyType({})
    """When the oldest pending pod of each cause was created."""


class Waits:
    """How long pods waited for a node, from their creation: counted once for each pod."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}
        self._counts = [0] * (len(WAIT_BUCKETS) + 1)
        self._seconds = 0.0
        self._has_begun = False
        self._is_told = False
        """Whether `change` is called; then pods are known to be gone when that says so."""

    def update(self, pods: Iterable[Pod]) -> None:
        """Count pods that have a node since the last time. Pods of the first time are older than the metric."""
        bound = {pod.metadata.uid: pod for pod in pods if pod.node_name}
        for pod in bound.values():
            self._count(pod)
        if not self._is_told:
            self._seen = dict.fromkeys(bound)
        self._has_begun = True

    def change(self, resource: Resource[Any], old: Any, new: Any) -> None:
        """Take one change of any object between two updates: a pod that got a node may end before the next one."""
        if resource is not resources.PODS:
            return
        self._is_told = True
        if new is None:
            self._seen.pop(old.metadata.uid, None)
        elif new.node_name:
            self._count(new)

    def _count(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if uid in self._seen:
            return
        self._seen[uid] = None
        seconds = _wait_of(pod) if self._has_begun else None
        if seconds is not None:
            bucket = sum(bound < seconds for bound in WAIT_BUCKETS)
            self._counts[bucket] += 1
            self._seconds += seconds

    def family(self) -> Metric:
        family = HistogramMetricFamily(
            "allot_pod_scheduling_wait_seconds",
            "How long pods that got a node since the exporter started had waited for it.",
            labels=(),
        )
        bounds = [*map(floatToGoString, WAIT_BUCKETS), "+Inf"]
        totals = accumulate(self._counts)
        family.add_metric([], list(zip(bounds, totals, strict=True)), self._seconds)
        return family


def _wait_of(pod: Pod) -> float | None:
    """From its creation until it had a node, by its condition; None if that does not say it."""
    created, then = pod.metadata.creation_timestamp, pod.true_since("PodScheduled")
    if then is None or created is None:
        return None
    return max(0.0, (then - created).total_seconds())


def compute_figures(
    cluster: ObservedCluster,
    detail: MetricsDetail = MetricsDetail(),  # noqa: B008 - a value
    is_over: Callable[[], bool] = lambda: False,
) -> Figures:
    """All metrics but the waits. After `is_over` pods whose cause is not known yet are undecided."""
    model = StaticScheduler(
        cluster.objects, cluster.configuration, cluster.gates, lambda: cluster.now
    )
    by_class = DevicesByClass(cluster)
    devices = by_class.list
    left_out: list[str] = []
    families = [
        _by_driver(devices),
        *_by_class(cluster, by_class, model),
        *_capacity(cluster, devices),
    ]
    for name, is_wanted, family in (
        ("node", detail.per_node, _by_node(devices)),
        ("pool", detail.per_pool, _by_pool(devices)),
    ):
        if is_wanted and len(family.samples) > detail.max_series:
            left_out.append(name)
        elif is_wanted:
            families.append(family)
    pending, oldest = _pending(cluster, model, is_over)
    families.append(pending)
    omitted = GaugeMetricFamily(
        "allot_metrics_left_out",
        "1 if series by node or pool are left out because there are too many.",
        labels=("by",),
    )
    for name in ("node", "pool"):
        omitted.add_metric([name], float(name in left_out))
    return Figures((*families, omitted), tuple(left_out), oldest)


# --- devices ---


def _by_driver(devices: DeviceList) -> Metric:
    family = GaugeMetricFamily(
        "allot_devices", "Devices by driver and state.", labels=("driver", "state")
    )
    counts = Counter((row.driver, row.state) for row in devices.devices)
    for driver in sorted({row.driver for row in devices.devices}):
        for state in DeviceUse:
            family.add_metric([driver, state], counts[driver, state])
    return family


def _by_node(devices: DeviceList) -> Metric:
    family = GaugeMetricFamily(
        "allot_node_devices",
        "Devices by node, driver and state; devices that are not on one node have none.",
        labels=("node", "driver", "state"),
    )
    _add_states(
        family, (((row.node, row.driver), row.state) for row in devices.devices if row.node)
    )
    return family


def _by_pool(devices: DeviceList) -> Metric:
    family = GaugeMetricFamily(
        "allot_pool_devices", "Devices by pool and state.", labels=("driver", "pool", "state")
    )
    _add_states(family, (((row.driver, row.pool), row.state) for row in devices.devices))
    return family


def _add_states(
    family: GaugeMetricFamily, found: Iterable[tuple[tuple[str, ...], DeviceUse]]
) -> None:
    """Count states that occur, and those that are always shown."""
    counts = Counter(found)
    for labels in sorted({labels for labels, _ in counts}):
        for state in DeviceUse:
            number = counts[labels, state]
            if number or state in _ALWAYS:
                family.add_metric([*labels, state], number)


def _by_class(
    cluster: ObservedCluster, devices: DevicesByClass, model: StaticScheduler
) -> tuple[Metric, Metric]:
    states = GaugeMetricFamily(
        "allot_class_devices",
        "Devices that a DeviceClass selects, by state.",
        labels=("class", "state"),
    )
    largest = GaugeMetricFamily(
        "allot_class_largest_request",
        "The largest number of devices of the class that one more request gets on one node now.",
        labels=("class",),
    )
    names = sorted(each.metadata.name for each in cluster.objects.of(resources.DEVICE_CLASSES))
    for name in names[:MAX_CLASSES]:
        rows = devices.of_class(name)
        counts = Counter(row.state for row in rows)
        for state in DeviceUse:
            if counts[state] or state in _ALWAYS:
                states.add_metric([name, state], counts[state])
        largest.add_metric([name], largest_request(model, name, rows))
    return states, largest


def _capacity(cluster: ObservedCluster, devices: DeviceList) -> tuple[Metric, ...]:
    """Of devices that can be shared (KEP-5075)."""
    total: Counter[tuple[str, str]] = Counter()
    for pool, slices in newest_slices(
        cluster.objects.of(resources.RESOURCE_SLICES), None, None
    ).items():
        for slice_ in slices:
            for device in slice_.spec.devices or ():
                if device.allow_multiple_allocations:
                    for name, capacity in device.capacity.items():
                        total[pool.driver, name] += capacity.value.nanos
    left: Counter[tuple[str, str]] = Counter()
    most: Counter[tuple[str, str]] = Counter()
    for row in devices.devices:
        for name, text in row.remaining.items():
            nanos = Quantity.parse(text).nanos
            left[row.driver, name] += nanos
            if row.is_free:
                most[row.driver, name] = max(most[row.driver, name], nanos)
    labels = ("driver", "capacity")
    totals = GaugeMetricFamily(
        "allot_capacity_total", "Capacity of devices that can be shared.", labels=labels
    )
    remaining = GaugeMetricFamily(
        "allot_capacity_remaining", "Of that, what no claim consumes.", labels=labels
    )
    largest = GaugeMetricFamily(
        "allot_capacity_largest_remaining",
        "The most that one device has left, which is the largest share that still fits.",
        labels=labels,
    )
    for key in sorted(total):
        largest.add_metric(key, most[key] / _NANOS)
        totals.add_metric(key, total[key] / _NANOS)
        remaining.add_metric(key, left[key] / _NANOS)
    return totals, remaining, largest


# --- pods ---


def _pending(
    cluster: ObservedCluster, model: StaticScheduler, is_over: Callable[[], bool]
) -> tuple[Metric, dict[str, datetime]]:
    """Pods by cause, and when the oldest of each was created."""
    pods = GaugeMetricFamily(
        "allot_pending_pods",
        "Pods without a node by cause: the scheduler plugin that rejects the nodes which come closest, or why none is asked.",
        labels=("cause",),
    )
    oldest: dict[str, datetime] = {}
    found = pods_by_cause(model, cluster.objects.of(resources.PODS), is_over)
    for cause, members in sorted(found.items()):
        created = [pod.pod.metadata.creation_timestamp for pod in members]
        oldest[cause] = min((time for time in created if time is not None), default=cluster.now)
        pods.add_metric([cause], len(members))
    return pods, oldest


def _ages(oldest: Mapping[str, datetime], now: datetime) -> Metric:
    family = GaugeMetricFamily(
        "allot_pending_pods_oldest_seconds",
        "How long the oldest of them waits.",
        labels=("cause",),
    )
    for cause, created in oldest.items():
        family.add_metric([cause], max(0.0, (now - created).total_seconds()))
    return family


# --- a registry ---


class ClusterMetrics(Collector):
    """The last figures, for a registry. `update` replaces them."""

    def __init__(self, registry: CollectorRegistry, waits: Waits | None = None) -> None:
        """`waits` may be told about pods between updates."""
        self._waits = waits or Waits()
        self._figures = Figures(())
        self._updated: datetime | None = None
        self._seconds = 0.0
        registry.register(self)

    def update(self, cluster: ObservedCluster, figures: Figures, seconds: float) -> None:
        """Show these figures of the cluster, which took so many seconds."""
        self._waits.update(cluster.objects.of(resources.PODS))
        self._figures, self._updated, self._seconds = figures, cluster.now, seconds

    def confirm(self, now: datetime) -> None:
        """The figures still hold: nothing has changed."""
        self._updated = now

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        yield from self._figures.families
        yield self._waits.family()
        if self._updated is not None:
            yield _ages(self._figures.oldest, self._updated)
            yield GaugeMetricFamily(
                "allot_exporter_last_update_timestamp_seconds",
                "When the metrics were last up to date.",
                value=self._updated.timestamp(),
            )
            yield GaugeMetricFamily(
                "allot_exporter_update_seconds",
                "How long computing the metrics took, with listing if the cluster is not followed.",
                value=self._seconds,
            )
