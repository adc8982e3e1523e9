"""The floor plan: what is drawn of each device, and only what has changed is computed again."""

from __future__ import annotations

from typing import Any

from allot.api.claims import AllocationResult, DeviceAllocationResult, ResourceClaim
from allot.api.identities import DeviceId
from allot.api.quantity import Quantity
from allot.api.slices import Counter, CounterSet, DeviceCounterConsumption, ResourcePool
from allot.client import resources
from allot.dashboard.floor_plan import STATES, FloorChange, FloorPlan
from allot.features import DEFAULTS
from allot.questions.devices import list_devices
from allot.testing.builders import DRIVER, a_claim, a_consumer, a_device, a_slice, an_allocation
from allot.testing.observed_clusters import observed, resource_of, snapshot_of


def held(*devices: str, name: str = "claim", **fields: Any) -> ResourceClaim:
    allocation = an_allocation(*devices, **fields)
    return a_claim(name=name, allocation=allocation, reserved_for=[a_consumer("trainer")])


def a_floor(*objects: Any) -> FloorPlan:
    floor = FloorPlan(DEFAULTS)
    for obj in objects:
        floor.changed(resource_of(obj), None, obj)
    floor.refresh()
    return floor


def name_of(floor: FloorPlan, number: int) -> str:
    places = (place for plan in floor.plans() for place in plan.places)
    return next(place.name for place in places if place.number == number)


def shown(floor: FloorPlan) -> dict[str, str]:
    return {
        place.name: STATES[cell.state]
        for plan in floor.plans()
        for place, cell in zip(plan.places, plan.cells, strict=True)
    }


TWO_NODES = (
    a_slice(a_device("a"), a_device("b")),
    a_slice(a_device("c"), name="two", node="node-2"),
)


def test_it_is_what_the_command_lists() -> None:
    objects = (*TWO_NODES, held("a"), held("gone", name="late", pool="node-2"))

    rows = list_devices(observed(*objects)).devices

    assert shown(a_floor(*objects)) == {row.device: str(row.state) for row in rows}


def test_a_claim_changes_its_devices_and_no_others() -> None:
    floor = a_floor(*TWO_NODES)
    claim = held("a")

    floor.changed(resources.RESOURCE_CLAIMS, None, claim)
    change = floor.refresh()

    ((number, cell),) = change.cells
    assert number == floor.number_of(DeviceId(DRIVER, "node-1", "a"))
    assert (STATES[cell.state], cell.used) == ("held", 100)
    assert cell.holders == (("default/claim", "default/trainer"),)
    assert not change.pools
    assert not floor.refresh()


def test_a_released_device_is_free_again() -> None:
    claim = held("a")
    floor = a_floor(*TWO_NODES, claim)

    floor.changed(resources.RESOURCE_CLAIMS, claim, None)

    ((_, cell),) = floor.refresh().cells
    assert STATES[cell.state] == "free"


def test_a_pool_that_is_gone_and_comes_back_keeps_its_numbers() -> None:
    floor = a_floor(*TWO_NODES)
    before = {plan.pool: plan for plan in floor.plans()}
    second = TWO_NODES[1]

    floor.changed(resources.RESOURCE_SLICES, second, None)
    gone = floor.refresh()
    floor.changed(resources.RESOURCE_SLICES, None, second)
    back = floor.refresh()

    assert gone == FloorChange(gone=(before["node-2"].number,))
    assert back.pools == (before["node-2"],)


def test_the_share_of_a_device_that_is_used() -> None:
    nic = a_device(
        "nic", capacity={"bandwidth": "100G", "slots": "10"}, allow_multiple_allocations=True
    )
    consumed = {"bandwidth": Quantity.parse("40G"), "slots": Quantity.parse("1")}

    floor = a_floor(a_slice(nic), held("nic", share_id="1", consumed_capacity=consumed))

    (plan,) = floor.plans()
    assert (STATES[plan.cells[0].state], plan.cells[0].used) == ("shared", 40)


def test_partitions_name_their_counter_set_and_their_part_of_it() -> None:
    def uses(amount: str) -> tuple[DeviceCounterConsumption, ...]:
        return (DeviceCounterConsumption("gpu-0", {"memory": Counter(Quantity.parse(amount))}),)

    pool = ResourcePool("node-1", 1, 2)
    total = CounterSet("gpu-0", {"memory": Counter(Quantity.parse("80"))})
    floor = a_floor(
        a_slice(name="counters", devices=None, shared_counters=(total,), pool=pool),
        a_slice(
            a_device("whole", consumes_counters=uses("80")),
            a_device("half", consumes_counters=uses("40")),
            pool=pool,
        ),
    )

    (plan,) = floor.plans()
    assert [(place.name, place.group, place.weight) for place in plan.places] == [
        ("whole", "gpu-0", 100),
        ("half", "gpu-0", 50),
    ]


def test_a_pool_of_several_nodes_says_where_each_device_is() -> None:
    slices = (
        a_slice(a_device("a"), pool=ResourcePool("rack", 1, 2)),
        a_slice(a_device("b"), name="two", node="node-2", pool=ResourcePool("rack", 1, 2)),
    )

    (plan,) = a_floor(*slices).plans()

    assert (plan.node, [place.node for place in plan.places]) == ("", ["node-1", "node-2"])


def test_only_the_newest_generation_is_shown() -> None:
    old = a_slice(a_device("old"), pool=ResourcePool("node-1", 1, 1))
    new = a_slice(a_device("new"), name="newer", pool=ResourcePool("node-1", 2, 1))

    assert shown(a_floor(old, new)) == {"new": "free"}


def test_what_other_objects_would_change() -> None:
    before = snapshot_of(*TWO_NODES)
    after = before.copy()
    after.put(resources.RESOURCE_CLAIMS, held("c", pool="node-2"))
    after.put(resources.RESOURCE_SLICES, a_slice(a_device("d"), name="three", node="node-3"))
    floor = FloorPlan(DEFAULTS)
    for slice_ in before.of(resources.RESOURCE_SLICES):
        floor.changed(resources.RESOURCE_SLICES, None, slice_)
    floor.refresh()

    change = floor.changed_to(before, after)

    assert [plan.node for plan in change.pools] == ["node-3"]
    assert [name_of(floor, number) for number, _ in change.cells] == ["c"]


def test_many_devices_are_computed_in_parts() -> None:
    floor = FloorPlan(DEFAULTS)
    for number in range(5):
        slice_ = a_slice(a_device("a"), a_device("b"), name=f"s{number}", node=f"n{number}")
        floor.changed(resources.RESOURCE_SLICES, None, slice_)

    parts = []
    while floor.is_outdated:
        parts.append([plan.node for plan in floor.refresh(4).pools])

    assert parts == [["n0", "n1"], ["n2", "n3"], ["n4"]]


def test_a_pool_that_changes_while_others_wait_is_computed_again() -> None:
    floor = FloorPlan(DEFAULTS)
    for slice_ in TWO_NODES:
        floor.changed(resources.RESOURCE_SLICES, None, slice_)
    floor.refresh(1)

    floor.changed(resources.RESOURCE_CLAIMS, None, held("a"))
    changes = [floor.refresh(1) for _ in range(2)]

    assert [plan.node for plan in changes[0].pools] == ["node-2"]
    assert [name_of(floor, number) for number, _ in changes[1].cells] == ["a"]
    assert not floor.is_outdated


def test_slices_are_told_once_per_change() -> None:
    told: list[tuple[str, int]] = []
    floor = FloorPlan(DEFAULTS, lambda pool, slices: told.append((pool.pool, len(slices))))
    (first, _), claim = TWO_NODES, held("a")
    steps = (
        (resources.RESOURCE_SLICES, None, first),
        (resources.RESOURCE_CLAIMS, None, claim),
        (resources.RESOURCE_CLAIMS, claim, None),
        (resources.RESOURCE_SLICES, first, None),
    )

    for step in steps:
        floor.changed(*step)
        floor.refresh()

    assert told == [("node-1", 1), ("node-1", 0)]


def test_devices_of_one_claim_can_differ() -> None:
    """A claim that waits for a condition on one of its devices holds the other."""
    waiting = an_allocation("a", binding_conditions=("Ready",)).devices.results
    results = waiting + an_allocation("b").devices.results
    claim = a_claim(allocation=AllocationResult(DeviceAllocationResult(results)))

    floor = a_floor(*TWO_NODES, claim)

    assert shown(floor) == {"a": "waiting", "b": "held", "c": "free"}
