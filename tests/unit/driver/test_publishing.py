"""Cutting pools into slices, and what must be written when something has changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from allot.api.base import replace
from allot.api.meta import ObjectMeta, OwnerReference
from allot.api.resource import DeviceTaint
from allot.api.slices import (
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from allot.driver.publishing import SliceMarks, SliceWrites, dropped_fields, plan_pool
from allot.driver.slices import cut_into_slices, slice_name

MARKS = SliceMarks(
    {"allot.dev/hardware": "h"}, OwnerReference("v1", "Node", "n", "u", controller=True)
)
TAINT = DeviceTaint("example.com/t", "", "NoSchedule")


def a_pool(
    devices: int, *, tainted: int | None = None, counters: int = 0, node: str = "n"
) -> ResourceSliceSpec:
    return ResourceSliceSpec(
        driver="d.example.com",
        pool=ResourcePool("p"),
        node_name=node,
        devices=tuple(
            Device(f"g{number}", taints=(TAINT,) if number == tainted else ())
            for number in range(devices)
        ),
        shared_counters=tuple(CounterSet(f"c{number}") for number in range(counters)),
    )


# --- cutting ---


@pytest.mark.parametrize(
    ("pool", "sizes"),
    [
        pytest.param(a_pool(0), [(0, 0)], id="empty"),
        pytest.param(a_pool(128), [(0, 128)], id="just-one"),
        pytest.param(a_pool(129), [(0, 128), (0, 1)], id="one-more"),
        pytest.param(a_pool(300), [(0, 128), (0, 128), (0, 44)], id="many"),
        pytest.param(a_pool(129, tainted=128), [(0, 64), (0, 64), (0, 1)], id="tainted"),
        pytest.param(a_pool(2, counters=9), [(8, 0), (1, 0), (0, 2)], id="counters"),
    ],
)
def test_sizes_of_slices(pool: ResourceSliceSpec, sizes: list[tuple[int, int]]) -> None:
    slices = cut_into_slices(pool)

    assert sizes == [(len(s.shared_counters or ()), len(s.devices or ())) for s in slices]
    assert {s.pool.resource_slice_count for s in slices} == {len(sizes)}
    devices = [device for s in slices for device in s.devices or ()]
    assert devices == list(pool.devices or ())


@pytest.mark.parametrize(
    "device",
    [
        Device("x", consumes_counters=(DeviceCounterConsumption("c"),)),
        Device("x", attributes={"a": DeviceAttribute(strings=("b",))}),
    ],
)
def test_devices_that_need_more_room(device: Device) -> None:
    pool = a_pool(64)
    assert pool.devices is not None

    assert len(cut_into_slices(replace(pool, devices=(*pool.devices, device)))) == 2


def test_names_sort_as_the_slices_do_and_are_allowed() -> None:
    names = [slice_name("d.example.com", "a/b", index) for index in (0, 9, 10, 4096)]

    assert names == sorted(names)
    assert all("/" not in name for name in names)
    assert names[0].startswith("00000-d.example.com-a-b-")
    assert slice_name("d.example.com", "a-b", 0) != slice_name("d.example.com", "a/b", 0)
    assert len(slice_name("d" * 63, "p" * 253, 0)) == 253


# --- planning ---


class Server:
    """Keeps slices as an API server does."""

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self.writes = 0

    def carry_out(self, plan: SliceWrites, most_writes: int = 1000) -> None:
        steps = [("delete", s) for s in plan.delete] + [("put", s) for s in plan.update]
        steps += [("put", s) for s in plan.create]
        for verb, slice_ in steps[:most_writes]:
            self.writes += 1
            if verb == "delete":
                del self.slices[slice_.metadata.name]
            else:
                self.slices[slice_.metadata.name] = stored(slice_)

    def publish(
        self, pool: ResourceSliceSpec | None, marks: SliceMarks = MARKS, **rest: int
    ) -> int:
        """How many writes it took."""
        wanted = cut_into_slices(pool) if pool is not None else ()
        before = self.writes
        self.carry_out(plan_pool(self.slices.values(), wanted, marks), **rest)
        return self.writes - before

    @property
    def generations(self) -> set[int]:
        return {slice_.spec.pool.generation for slice_ in self.slices.values()}

    @property
    def devices(self) -> list[str]:
        by_name = sorted(self.slices.items())
        return [device.name for _, slice_ in by_name for device in slice_.spec.devices or ()]

    def is_complete(self) -> bool:
        newest = [
            slice_.spec.pool
            for slice_ in self.slices.values()
            if slice_.spec.pool.generation == max(self.generations)
        ]
        return all(pool.resource_slice_count == len(newest) for pool in newest)


def stored(slice_: ResourceSlice) -> ResourceSlice:
    """Taints get a time, as on a server."""
    time = datetime(2026, 1, 1, tzinfo=UTC)
    devices = tuple(
        replace(
            device,
            taints=tuple(
                replace(taint, time_added=taint.time_added or time) for taint in device.taints
            ),
        )
        for device in slice_.spec.devices or ()
    )
    return replace(slice_, spec=replace(slice_.spec, devices=devices or None))


def test_first_publication() -> None:
    server = Server()

    assert server.publish(a_pool(130)) == 2
    assert server.generations == {1}
    assert server.is_complete()
    for slice_ in server.slices.values():
        assert slice_.metadata.labels == MARKS.labels
        assert slice_.metadata.owner_references == (MARKS.owner,)
    assert server.publish(a_pool(130)) == 0


def test_one_slice_changes_without_a_new_generation() -> None:
    server = Server()
    server.publish(a_pool(100, tainted=70))

    assert server.publish(a_pool(100, tainted=80)) == 1
    assert server.generations == {1}
    assert server.publish(a_pool(100, tainted=80)) == 0


def test_several_slices_change_in_a_new_generation() -> None:
    server = Server()
    server.publish(a_pool(100, tainted=0))

    assert server.publish(a_pool(100, tainted=70)) == 2
    assert server.generations == {2}
    assert server.is_complete()


@pytest.mark.parametrize(("before", "after"), [(100, 300), (300, 100), (300, 200), (10, 0), (0, 1)])
def test_growing_and_shrinking(before: int, after: int) -> None:
    server = Server()
    server.publish(a_pool(before))

    server.publish(a_pool(after))

    assert server.devices == [f"g{number}" for number in range(after)]
    assert len(server.generations) == 1
    assert server.is_complete()
    assert server.publish(a_pool(after)) == 0


def test_a_publisher_goes_on_after_one_that_was_killed() -> None:
    total = 5
    for killed_after in range(total + 1):
        server = Server()
        server.publish(a_pool(300))
        server.publish(a_pool(600), most_writes=killed_after)
        for _ in range(3):
            server.publish(a_pool(500, tainted=7))
        assert server.devices == [f"g{number}" for number in range(500)]
        assert len(server.generations) == 1
        assert server.is_complete()


def test_a_pool_that_is_gone_is_removed() -> None:
    server = Server()
    server.publish(a_pool(300))

    assert server.publish(None) == 3
    assert not server.slices


def test_a_pool_that_moves_to_another_node_is_made_anew() -> None:
    server = Server()
    server.publish(a_pool(1))

    assert server.publish(a_pool(1, node="m")) == 2
    (slice_,) = server.slices.values()
    assert slice_.spec.node_name == "m"
    assert server.generations == {2}


def test_a_node_that_was_made_anew_owns_its_slices() -> None:
    server = Server()
    server.publish(a_pool(1))
    anew = MARKS._replace(owner=OwnerReference("v1", "Node", "n", "u2", controller=True))

    assert server.publish(a_pool(1), anew) == 1
    (slice_,) = server.slices.values()
    assert slice_.metadata.owner_references == (anew.owner,)


def test_order_matters() -> None:
    server = Server()
    pool = a_pool(2)
    server.publish(pool)
    assert pool.devices is not None

    assert server.publish(replace(pool, devices=pool.devices[::-1])) == 1
    assert server.devices == ["g1", "g0"]


# --- what servers leave out ---


def test_dropped_fields() -> None:
    device = Device("g", allow_multiple_allocations=True, binding_conditions=("a",))
    spec = ResourceSliceSpec("d", ResourcePool("p", 1, 1), devices=(device, Device("h")))
    sent = ResourceSlice(ObjectMeta(name="s"), spec)
    kept = replace(device, allow_multiple_allocations=None)

    assert not dropped_fields(sent, sent)
    assert dropped_fields(sent, replace(sent, spec=replace(spec, devices=(kept, Device("h"))))) == {
        "devices[].allowMultipleAllocations"
    }
    tainted = replace(spec, devices=(Device("g", taints=(TAINT,)),))
    sent = ResourceSlice(ObjectMeta(name="s"), tainted)
    assert not dropped_fields(sent, stored(sent))


def names(slices: Sequence[ResourceSlice]) -> list[str]:
    return [slice_.metadata.name for slice_ in slices]


def test_what_is_too_many_goes_first() -> None:
    server = Server()
    server.publish(a_pool(300))

    plan = plan_pool(server.slices.values(), cut_into_slices(a_pool(10)), MARKS)

    assert names(plan.delete) == [slice_name("d.example.com", "p", index) for index in (1, 2)]
    assert names(plan.update) == [slice_name("d.example.com", "p", 0)]
    assert not plan.create
