"""Figures: utilisation, pending pods by cause, and waits, counted change by change."""

from __future__ import annotations

from datetime import UTC, datetime

from allot.allocation.pools import PoolId
from allot.api.core import Pod
from allot.client import resources
from allot.dashboard.figures import NOT_TRIED, WAIT_WINDOW_SECONDS, FigureCounter
from allot.testing.builders import DRIVER, a_claim, a_device, a_node, a_pod, a_slice, an_allocation

NOW = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


def pending(message: str = "") -> Pod:
    conditions = [{"type": "PodScheduled", "status": "False", "message": message}]
    return a_pod().with_value(conditions if message else [], "status", "conditions")


def test_devices() -> None:
    counter = FigureCounter(Clock())
    slice_ = a_slice(a_device("a"), a_device("b"))
    claim = a_claim(allocation=an_allocation("a"))
    counter.publish(PoolId(DRIVER, "node-1"), (slice_,))
    counter.changed(resources.NODES, None, a_node())

    before = counter.now()
    counter.changed(resources.RESOURCE_CLAIMS, None, claim)
    after = counter.now()
    counter.changed(resources.RESOURCE_CLAIMS, claim, None)

    assert (before.devices, before.held, before.nodes) == (2, 0, 1)
    assert (after.held, after.utilisation, after.fragmentation) == (1, 0.5, 1.0)
    assert counter.now().held == 0


def test_pending_pods_by_what_the_scheduler_said() -> None:
    counter = FigureCounter(Clock())
    said = "0/2 nodes are available: 2 cannot allocate all claims. preemption: 0/2 nodes"

    counter.changed(resources.PODS, None, pending())
    first = counter.now().pending
    counter.changed(resources.PODS, pending(), pending(said))
    second = counter.now().pending
    counter.changed(resources.PODS, pending(said), None)

    assert first == {NOT_TRIED: 1}
    assert second == {"2 cannot allocate all claims": 1}
    assert counter.now().pending == {}


def test_waits_of_the_last_minute() -> None:
    clock = Clock()
    counter = FigureCounter(clock)
    pod = a_pod().with_value("2026-01-01T00:00:00Z", "metadata", "creationTimestamp")
    clock.now = NOW + 7

    counter.changed(resources.PODS, pod, pod.with_value("node-1", "spec", "nodeName"))
    found = counter.now()
    clock.now += WAIT_WINDOW_SECONDS + 1

    assert (found.median_wait, found.longest_wait) == (7.0, 7.0)
    assert counter.now().median_wait is None
