"""How the devices of a pool are counted."""

from __future__ import annotations

import pytest

from allot.api.base import replace
from allot.api.classes import DeviceTaintRule
from allot.api.messages import shortened
from allot.api.pool_status import PoolStatus
from allot.api.slices import DeviceCounterConsumption, ResourceSlice
from allot.rules import (
    AVAILABLE_IS_ALLOCATABLE,
    COUNT_LISTED_DEVICES_ONCE,
    CROSS_SLICE_VALIDATION,
)
from allot.testing.builders import DRIVER, a_device
from tests.unit.controllers.pool_status.pools import (
    a_rule,
    counter_set,
    counters,
    devices,
    holding,
    slice_of,
    tainted,
    taken,
    the_status,
    without,
)


def figures(status: PoolStatus) -> tuple[int | None, int | None, int | None, int | None]:
    return (
        status.total_devices,
        status.allocated_devices,
        status.available_devices,
        status.unavailable_devices,
    )


def test_a_plain_pool() -> None:
    status = the_status(slice_of(*devices("a", "b", "c", "d")), ledger=taken("b"))

    assert status == PoolStatus(
        driver=DRIVER,
        pool_name="node-1",
        node_name="node-1",
        generation=1,
        resource_slice_count=1,
        total_devices=4,
        allocated_devices=1,
        available_devices=3,
        unavailable_devices=0,
    )


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param([], (3, 0, 3, 0), id="no-holder"),
        pytest.param([{"device": "a"}, {"device": "b"}], (3, 2, 1, 0), id="two-claims"),
        pytest.param([{"device": "a", "admin_access": True}], (3, 0, 3, 0), id="admin-access"),
        pytest.param(
            [{"device": "a", "share_id": "1"}, {"device": "a", "share_id": "2"}],
            (3, 1, 2, 0),
            id="two-shares-of-one",
        ),
        pytest.param([{"device": "a", "pool": "other"}], (3, 0, 3, 0), id="another-pool"),
        pytest.param([{"device": "gone"}], (3, 0, 3, 0), id="no-longer-published"),
        pytest.param([{"device": n} for n in "abcxyz"], (3, 3, 0, 0), id="never-more-than-listed"),
    ],
)
def test_allocated_devices_of_a_pool(
    held: list[dict[str, object]], expected: tuple[int, int, int, int]
) -> None:
    assert figures(the_status(slice_of(*devices("a", "b", "c")), ledger=holding(*held))) == expected


@pytest.mark.parametrize(
    ("gone", "error"),
    [
        ((), None),
        (("x",), "1 allocated device is no longer published"),
        (("x", "y"), "2 allocated devices are no longer published"),
    ],
)
def test_an_allocated_device_missing_in_the_pool_is_a_validation_error(
    gone: tuple[str, ...], error: str | None
) -> None:
    status = the_status(slice_of(*devices("a", "b")), ledger=taken("a", *gone))

    assert figures(status) == (2, 1, 1, 0)
    assert status.validation_error == error


def test_v1_38_counts_what_is_gone_and_subtracts_tainted_and_held_twice() -> None:
    gates = without(COUNT_LISTED_DEVICES_ONCE)
    listed = slice_of(tainted("a"), *devices("b", "c", "d"))

    assert figures(the_status(listed, ledger=taken("a"), gates=gates)) == (4, 1, 2, 1)
    status = the_status(listed, ledger=taken("x", "y"), gates=gates)
    assert figures(status) == (4, 2, 1, 1)
    assert status.validation_error is None


@pytest.mark.parametrize(
    ("effect", "unavailable"), [("NoSchedule", 1), ("NoExecute", 1), ("None", 0), ("Other", 0)]
)
def test_taints_that_keep_claims_away_make_a_device_unavailable(
    effect: str, unavailable: int
) -> None:
    status = the_status(slice_of(tainted("a", effect), *devices("b", "c")))

    assert figures(status) == (3, 0, 3 - unavailable, unavailable)


def test_a_tainted_device_that_is_allocated_counts_once() -> None:
    status = the_status(slice_of(tainted("a"), tainted("b"), *devices("c")), ledger=taken("a"))

    assert figures(status) == (3, 1, 1, 1)


@pytest.mark.parametrize(
    ("rule", "unavailable"),
    [
        pytest.param(a_rule(), 3, id="empty-selector"),
        pytest.param(a_rule(driver=DRIVER, pool="node-1", device="b"), 1, id="one-device"),
        pytest.param(a_rule(pool="node-1"), 3, id="pool"),
        pytest.param(a_rule(pool="node-2"), 0, id="another-pool"),
        pytest.param(a_rule(driver="other.example.com"), 0, id="another-driver"),
        pytest.param(a_rule("None", pool="node-1"), 0, id="effect-none"),
        pytest.param(
            replace(a_rule(), spec=replace(a_rule().spec, device_selector=None)),
            0,
            id="no-selector",
        ),
    ],
)
def test_taint_rules(rule: DeviceTaintRule, unavailable: int) -> None:
    status = the_status(slice_of(*devices("a", "b", "c")), rules=(rule,))

    assert figures(status) == (3, 0, 3 - unavailable, unavailable)


def test_only_the_newest_generation_counts() -> None:
    old = slice_of(*devices("a", "b", "c"), name="old", generation=3)
    new = slice_of(*devices("a"), name="new", generation=4)

    status = the_status(old, new)

    assert (status.generation, status.resource_slice_count, status.total_devices) == (4, 1, 1)
    assert status.validation_error is None


@pytest.mark.parametrize(
    ("slices", "node"),
    [
        pytest.param([slice_of(name="a"), slice_of(name="b")], "node-1", id="one-node"),
        pytest.param(
            [slice_of(name="a"), slice_of(name="b", node_name="node-2")], None, id="two-nodes"
        ),
        pytest.param(
            [slice_of(name="a", node_name=None), slice_of(name="b")], None, id="one-without"
        ),
        pytest.param([slice_of(node_name=None, all_nodes=True)], None, id="all-nodes"),
    ],
)
def test_the_node_of_a_pool(slices: list[ResourceSlice], node: str | None) -> None:
    assert the_status(*slices).node_name == node


def test_an_incomplete_pool_has_no_figures() -> None:
    status = the_status(slice_of(*devices("a"), generation=7, announced=3))

    assert status == PoolStatus(
        driver=DRIVER,
        pool_name="node-1",
        node_name="node-1",
        generation=7,
        validation_error=(
            f"PoolIncomplete: pool {DRIVER}/node-1 is incomplete:"
            " observed 1/3 slices at generation 7"
        ),
    )


_USES = (DeviceCounterConsumption("gpu", counters(memory="1")),)


@pytest.mark.parametrize(
    ("slices", "error"),
    [
        pytest.param(
            [
                slice_of(*devices("a", "b"), name="s1", announced=2),
                slice_of(*devices("b"), name="s2", announced=2),
            ],
            "device b appears in multiple slices",
            id="repeated-device",
        ),
        pytest.param(
            [slice_of(name="s1"), slice_of(name="s2")],
            "2 slices are there, 1 announced",
            id="more-than-announced",
        ),
        pytest.param(
            [slice_of(name="s1", announced=1), slice_of(name="s2", announced=2)],
            "slices disagree about how many of them there are: 1, 2",
            id="different-announcements",
        ),
        pytest.param(
            [slice_of(a_device("a", consumes_counters=_USES))],
            "device a uses unknown counter set gpu",
            id="unknown-counter-set",
        ),
        pytest.param(
            [
                slice_of(
                    devices=None, name="c", announced=2, shared_counters=(counter_set(x="1"),)
                ),
                slice_of(a_device("a", consumes_counters=_USES), name="d", announced=2),
            ],
            "device a uses unknown counter gpu/memory",
            id="unknown-counter",
        ),
    ],
)
def test_contradictions_between_slices_are_told_and_nothing_is_available(
    slices: list[ResourceSlice], error: str
) -> None:
    status = the_status(*slices)

    total = sum(len(each.spec.devices or ()) for each in slices)
    assert status.validation_error == error
    assert figures(status) == (total, 0, 0, total)
    available = the_status(*slices, gates=without(AVAILABLE_IS_ALLOCATABLE))
    assert figures(available) == (total, 0, total, 0)
    assert available.validation_error == error
    unchecked = the_status(*slices, gates=without(CROSS_SLICE_VALIDATION))
    assert figures(unchecked) == (total, 0, total, 0)
    assert unchecked.validation_error is None


def test_a_pool_that_allocation_takes_in_spite_of_a_contradiction_is_available() -> None:
    """Allocation looks at one node at a time, and believes the first slice about their number."""
    twice = (
        slice_of(*devices("a"), name="s1", announced=2, node_name="n1"),
        slice_of(*devices("a"), name="s2", announced=2, node_name="n2"),
    )
    disagree = (
        slice_of(*devices("a"), name="s1", announced=2),
        slice_of(*devices("b"), name="s2", announced=3),
    )

    for slices in (twice, disagree):
        status = the_status(*slices)
        assert status.validation_error is not None
        assert figures(status) == (2, 0, 2, 0)


def test_a_long_validation_error_is_cut_between_problems() -> None:
    names = [f"device-with-a-long-name-{number}" for number in range(20)]
    first = slice_of(*devices(*names), name="s1", announced=2)
    second = slice_of(*devices(*names), name="s2", announced=2)

    error = the_status(first, second).validation_error

    assert error is not None
    assert len(error.encode()) <= 256
    *told, rest = error.split("; ")
    assert told == [f"device {name} appears in multiple slices" for name in names[: len(told)]]
    assert rest == f"and {20 - len(told)} more"


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("short", 256, "short"),
        ("ä" * 200, 256, "ä" * 126 + "..."),
        ("one two three", 12, "one two..."),
        ("one two three", 10, "one two..."),
        ("one two three", 9, "one..."),
        ("one; two three", 9, "one..."),
    ],
)
def test_texts_are_cut_between_words(text: str, limit: int, expected: str) -> None:
    assert shortened(text, limit) == expected
    assert len(expected.encode()) <= limit
