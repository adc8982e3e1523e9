"""Partitions by type, and what is left of shared devices."""

from __future__ import annotations

from typing import Any

import pytest

from allot.allocation.allocated_devices import Ledger
from allot.api.base import replace
from allot.api.quantity import Quantity
from allot.api.resource import DeviceTaint
from allot.api.slices import Device, ResourceSlice
from allot.rules import (
    ALL_SUMMARY_ERRORS,
    AVAILABLE_IS_ALLOCATABLE,
    COUNT_LISTED_DEVICES_ONCE,
    EQUAL_COSTS_IN_ANY_COUNTER_SET,
)
from allot.testing.builders import DRIVER, a_device
from tests.unit.controllers.pool_status.pools import (
    counter_set,
    holding,
    partition,
    slice_of,
    tainted,
    taken,
    the_status,
    without,
)

PROFILE = f"{DRIVER}/profile"
CARD = (
    partition("full", "Full", "80Gi"),
    partition("h0", "Half", "40Gi"),
    partition("h1", "Half", "40Gi"),
)


def a_card(
    *partitions: Device, attribute: str | None = PROFILE, memory: str = "80Gi"
) -> tuple[ResourceSlice, ResourceSlice]:
    """A slice with counters and one with what draws on them."""
    sets = (counter_set("gpu", memory=memory), counter_set("gpu-2", memory=memory))
    return (
        slice_of(devices=None, name="c", announced=2, shared_counters=sets),
        slice_of(*(partitions or CARD), name="d", announced=2, partition_type_attribute=attribute),
    )


def shown(*slices: ResourceSlice, **rest: Any) -> dict[str, tuple[int | None, int | None]]:
    status = the_status(*slices, **rest)
    assert status.validation_error is None
    assert all(entry.attribute == PROFILE for entry in status.partition_summary)
    return {entry.type: (entry.total, entry.allocatable) for entry in status.partition_summary}


@pytest.mark.parametrize(
    ("ledger", "expected"),
    [
        pytest.param(taken(), {"Full": (1, 1), "Half": (2, 2)}, id="unused"),
        pytest.param(taken("h0"), {"Full": (1, 0), "Half": (2, 1)}, id="one-half"),
        pytest.param(taken("full"), {"Full": (1, 0), "Half": (2, 0)}, id="the-whole"),
        pytest.param(
            holding({"device": "h0", "share_id": "1"}, {"device": "h0", "share_id": "2"}),
            {"Full": (1, 0), "Half": (2, 1)},
            id="shares-use-counters-once",
        ),
        pytest.param(
            holding({"device": "full", "admin_access": True}),
            {"Full": (1, 1), "Half": (2, 2)},
            id="admin-access",
        ),
    ],
)
def test_each_type_is_measured_alone(ledger: Ledger, expected: dict[str, tuple[int, int]]) -> None:
    assert shown(*a_card(), ledger=ledger) == expected


def test_tainted_partitions_are_not_allocatable() -> None:
    full, half, other = CARD
    taints = (DeviceTaint(key="k", effect="NoSchedule"),)
    slices = a_card(full, replace(half, taints=taints), other)

    assert shown(*slices) == {"Full": (1, 1), "Half": (2, 1)}
    gates = without(AVAILABLE_IS_ALLOCATABLE)
    assert shown(*slices, gates=gates) == {"Full": (1, 1), "Half": (2, 2)}


def test_nothing_is_allocatable_in_a_pool_that_allocation_refuses() -> None:
    (counters, partitions) = a_card()
    twice = slice_of(*CARD[:1], name="e", announced=2, partition_type_attribute=PROFILE)

    status = the_status(counters, partitions, twice)

    assert status.validation_error is not None
    assert {entry.allocatable for entry in status.partition_summary} == {0}


def test_there_are_no_more_than_there_are_devices() -> None:
    assert shown(*a_card(memory="800Gi")) == {"Full": (1, 1), "Half": (2, 2)}


def test_the_same_type_on_two_cards() -> None:
    both = (
        *CARD,
        partition("full-2", "Full", "80Gi", "gpu-2"),
        partition("h2", "Half", "40Gi", "gpu-2"),
    )

    assert shown(*a_card(*both), ledger=taken("h0")) == {"Full": (2, 1), "Half": (3, 2)}


def test_the_default_is_for_pools_that_name_no_attribute() -> None:
    assert shown(*a_card(attribute=None)) == {}
    assert shown(*a_card(attribute=None), attribute=PROFILE) == {"Full": (1, 1), "Half": (2, 2)}
    other = slice_of(partition("x", "Odd", "1Gi"), name="e", announced=3)
    three = [
        slice_of(
            name=s.metadata.name,
            announced=3,
            devices=s.spec.devices,
            shared_counters=s.spec.shared_counters,
            partition_type_attribute=s.spec.partition_type_attribute,
        )
        for s in a_card()
    ]
    assert shown(*three, other, attribute=PROFILE) == {"Full": (1, 1), "Half": (2, 2)}


def test_the_default_does_not_concern_pools_without_partitions() -> None:
    assert shown(slice_of(a_device("a"), tainted("b")), attribute=PROFILE) == {}


@pytest.mark.parametrize(
    ("slices", "error"),
    [
        pytest.param(
            a_card(*CARD, partition("odd", 7, "1Gi")),
            f'PartitionTypeMissing: device "odd" in pool {DRIVER}/node-1'
            f' does not carry partition type attribute "{PROFILE}"',
            id="no-string",
        ),
        pytest.param(
            a_card(*CARD, partition("h2", "Half", "39Gi")),
            f'PartitionCostMismatch: devices of partition type "Half" in pool {DRIVER}/node-1'
            " consume different counters",
            id="different-cost",
        ),
        pytest.param(
            a_card(*(partition(f"p{n}", f"type-{n}", "1Gi") for n in range(33))),
            f"PartitionSummaryOverCap: pool {DRIVER}/node-1 has 33 partition types,"
            " exceeding the maximum of 32",
            id="too-many",
        ),
    ],
)
def test_types_that_cannot_be_summed_up(slices: tuple[ResourceSlice, ...], error: str) -> None:
    status = the_status(*slices)

    assert status.validation_error == error
    assert status.partition_summary == ()
    assert status.total_devices == len(slices[1].spec.devices or ())


def test_the_first_device_with_an_error_is_named() -> None:
    """As v1.38 does: pools without counters first, then devices in order; errors about partitions before shares."""
    place = f"in pool {DRIVER}/node-1"
    other, odd = partition("h2", "Half", "39Gi"), partition("odd", 7, "1Gi")
    capacities = {f"c{n}": "1" for n in range(33)}
    cost = f'PartitionCostMismatch: devices of partition type "Half" {place} consume'
    missing = f'PartitionTypeMissing: device "odd" {place} does not carry'

    def error(*slices: ResourceSlice) -> str:
        return the_status(*slices).validation_error or ""

    assert error(*a_card(*CARD, other, odd)).startswith(cost)
    assert error(*a_card(*CARD, odd, other)).startswith(missing)
    assert error(*a_card(shareable("s", **capacities), *CARD, other)).startswith(cost)
    without_counters = error(slice_of(odd, partition_type_attribute=PROFILE))
    assert without_counters.startswith(f"PartitionTypeMissing: pool {DRIVER}/node-1 declares")


def test_the_same_cost_in_another_counter_set() -> None:
    """v1.38 compares counter sets, too: two cards in one pool have no summary."""
    two_cards = a_card(*CARD, partition("h2", "Half", "40Gi", "gpu-2"))

    assert shown(*two_cards) == {"Full": (1, 1), "Half": (3, 3)}
    status = the_status(*two_cards, gates=without(EQUAL_COSTS_IN_ANY_COUNTER_SET))
    assert status.partition_summary == ()
    assert status.validation_error == (
        f'PartitionCostMismatch: devices of partition type "Half" in pool {DRIVER}/node-1'
        " consume different counters"
    )


def test_errors_about_partitions_and_about_shares() -> None:
    capacities = {f"c{n}": "1" for n in range(33)}
    slices = a_card(shareable("s", **capacities), *CARD, partition("h2", "Half", "39Gi"))
    first = the_status(*slices, gates=without(ALL_SUMMARY_ERRORS)).validation_error or ""

    assert first.endswith(" consume different counters")
    assert (the_status(*slices).validation_error or "").startswith(f"{first}; ShareableSummary")
    only_shares = a_card(shareable("s", **capacities), *CARD)
    assert the_status(*only_shares).partition_summary
    assert not the_status(*only_shares, gates=without(ALL_SUMMARY_ERRORS)).partition_summary


def test_types_without_counters() -> None:
    status = the_status(slice_of(*CARD, partition_type_attribute=PROFILE))

    assert (status.validation_error or "").startswith(
        f"PartitionTypeMissing: pool {DRIVER}/node-1 declares partitionTypeAttribute"
        " but publishes no sharedCounters; "
    )


def shareable(name: str, **capacity: str) -> Device:
    return a_device(name, capacity=capacity, allow_multiple_allocations=True)


def share(device: str, number: int, **consumed: str) -> dict[str, Any]:
    amounts = {name: Quantity.parse(text) for name, text in consumed.items()}
    return {"device": device, "share_id": str(number), "consumed_capacity": amounts}


def test_what_is_left_of_shared_devices() -> None:
    pool = slice_of(
        shareable("a", memory="10Gi"), shareable("b", memory="30Gi", cores="8"), a_device("c")
    )
    ledger = holding(
        share("b", 1, memory="15Gi", cores="500m"),
        share("b", 2, memory="5Gi", cores="0"),
        {"device": "c"},
    )

    status = the_status(pool, ledger=ledger)

    summary = status.shareable_summary
    assert summary is not None
    assert (summary.fully_available_devices, summary.partially_available_devices) == (1, 1)
    assert [
        (each.name, str(each.total), str(each.consumed), str(each.available))
        for each in summary.capacity
    ] == [("cores", "8", "500m", "7500m"), ("memory", "40Gi", "20Gi", "20Gi")]
    assert (status.total_devices, status.allocated_devices, status.available_devices) == (3, 2, 1)


def test_less_than_nothing_is_nothing() -> None:
    status = the_status(
        slice_of(shareable("a", memory="1Gi")), ledger=holding(share("a", 1, memory="2Gi"))
    )

    assert status.shareable_summary is not None
    (memory,) = status.shareable_summary.capacity
    assert (str(memory.consumed), str(memory.available)) == ("2Gi", "0")


def test_pools_without_shareable_devices_have_no_summary() -> None:
    assert the_status(slice_of(a_device("a"))).shareable_summary is None


def test_too_many_capacities() -> None:
    status = the_status(slice_of(shareable("a", **{f"c{n}": "1" for n in range(33)})))

    assert status.shareable_summary is None
    assert status.validation_error == (
        f"ShareableSummaryOverCap: pool {DRIVER}/node-1 has 33 shareable capacity keys,"
        " exceeding the maximum of 32"
    )
    assert status.available_devices == 1


def test_a_shareable_device_that_is_held_as_a_whole_has_nothing_left() -> None:
    pool = slice_of(shareable("a", memory="10Gi"), shareable("b", memory="10Gi"))
    held = holding({"device": "a"}, share("b", 1, memory="4Gi"), share("gone", 2, memory="5Gi"))

    summary = the_status(pool, ledger=held).shareable_summary

    assert summary is not None
    (memory,) = summary.capacity
    assert [str(each) for each in (memory.total, memory.consumed, memory.available)] == [
        "20Gi",
        "14Gi",
        "6Gi",
    ]
    other = the_status(pool, ledger=held, gates=without(COUNT_LISTED_DEVICES_ONCE))
    assert other.shareable_summary is not None
    (memory,) = other.shareable_summary.capacity
    assert [str(memory.consumed), str(memory.available)] == ["9Gi", "11Gi"]


def test_nothing_of_a_tainted_device_is_available() -> None:
    taints = (DeviceTaint(key="k", effect="NoSchedule"),)
    pool = slice_of(
        replace(shareable("a", memory="10Gi"), taints=taints), shareable("b", memory="10Gi")
    )

    summary = the_status(pool).shareable_summary
    other = the_status(pool, gates=without(AVAILABLE_IS_ALLOCATABLE)).shareable_summary

    assert summary is not None
    assert other is not None
    assert (summary.fully_available_devices, other.fully_available_devices) == (1, 2)
    assert str(summary.capacity[0].available) == "10Gi"
    assert str(other.capacity[0].available) == "20Gi"
