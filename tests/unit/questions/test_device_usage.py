"""Utilisation and fragmentation, kept up to date allocation by allocation and pool by pool."""

from __future__ import annotations

from allot.allocation.pools import PoolId
from allot.api.quantity import Quantity
from allot.questions.device_usage import DeviceUsage, UsageFigures
from allot.testing.builders import DRIVER, a_device, a_slice, an_allocation

FIRST, SECOND = PoolId(DRIVER, "node-1"), PoolId(DRIVER, "node-2")
TWO = a_slice(a_device("a"), a_device("b"))
OTHER = a_slice(a_device("c"), name="two", node="node-2")


def test_pools_that_appear_and_disappear() -> None:
    usage = DeviceUsage()
    usage.publish(FIRST, (TWO,))
    usage.publish(SECOND, (OTHER,))
    usage.take(an_allocation("a"))

    both = usage.figures()
    usage.publish(FIRST, ())

    assert both == UsageFigures(3, 1, 0.3333, 0.5)
    assert usage.figures() == UsageFigures(1, 0, 0.0, 0.0)


def test_a_device_that_is_held_before_it_is_published() -> None:
    usage = DeviceUsage()
    usage.take(an_allocation("a"))

    before = usage.figures()
    usage.publish(FIRST, (TWO,))
    during = usage.figures()
    usage.release(an_allocation("a"))

    assert before == UsageFigures()
    assert during == UsageFigures(2, 1, 0.5, 1.0)
    assert usage.figures() == UsageFigures(2, 0, 0.0, 0.0)


def test_publishing_the_same_again_changes_nothing() -> None:
    nic = a_device("nic", capacity={"bandwidth": "100G"}, allow_multiple_allocations=True)
    consumed = {"bandwidth": Quantity.parse("40G")}
    usage = DeviceUsage([a_slice(nic)])
    usage.take(an_allocation("nic", share_id="1", consumed_capacity=consumed))

    before = usage.figures()
    usage.publish(FIRST, (a_slice(nic),))

    assert before == usage.figures() == UsageFigures(1, 1, 0.4, 0.0)


def test_a_name_that_two_slices_have_counts_once() -> None:
    usage = DeviceUsage()
    usage.publish(FIRST, (TWO, a_slice(a_device("a"), name="again")))

    assert usage.figures().devices == 2
