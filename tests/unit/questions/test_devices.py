"""`allot devices`: the state of every device."""

from __future__ import annotations

import pytest

from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.resource import DeviceTaint
from allot.api.slices import (
    Counter,
    CounterSet,
    DeviceCounterConsumption,
    ResourcePool,
)
from allot.questions.class_names import UnknownClassError
from allot.questions.devices import (
    DeviceFilter,
    DeviceUse,
    list_devices,
)
from allot.testing.builders import (
    a_claim,
    a_class,
    a_consumer,
    a_device,
    a_slice,
    an_allocation,
)
from allot.testing.observed_clusters import observed


def held(*devices: str, name: str = "claim", **fields: object) -> ResourceClaim:
    allocation = an_allocation(*devices, **fields)  # type: ignore[arg-type]
    return a_claim(name=name, allocation=allocation, reserved_for=[a_consumer("trainer")])


def states(*objects: object, wanted: DeviceFilter = DeviceFilter()) -> dict[str, str]:  # noqa: B008 - a value
    found = list_devices(observed(*objects), wanted)  # type: ignore[arg-type]
    return {row.device: str(row.state) for row in found.devices}


def test_free_and_held() -> None:
    slice_ = a_slice(a_device("a", {"model": "H100"}), a_device("b"))

    found = list_devices(observed(slice_, held("a")))

    row = found.devices[0]
    assert (row.node, row.model, row.state) == ("node-1", "H100", DeviceUse.HELD)
    assert [(holder.claim, holder.pods) for holder in row.held_by] == [
        ("default/claim", ("default/trainer",))
    ]
    assert found.states == {"free": 1, "held": 1}


def test_a_taint_of_the_slice_or_of_a_rule() -> None:
    taint = DeviceTaint(key="broken", effect="NoSchedule")
    rule = DeviceTaintRule(
        ObjectMeta(name="rule"),
        DeviceTaintRuleSpec(device_selector=DeviceTaintSelector(device="b"), taint=taint),
    )
    slice_ = a_slice(a_device("a", taints=(taint,)), a_device("b"), a_device("c"))

    assert states(slice_, rule) == {"a": "tainted", "b": "tainted", "c": "free"}


def test_shares_and_what_is_left() -> None:
    slice_ = a_slice(
        a_device("nic", capacity={"bandwidth": "100G"}, allow_multiple_allocations=True)
    )
    consumed = {"bandwidth": Quantity.parse("40G")}
    claim = held("nic", share_id="1", consumed_capacity=consumed)

    (row,) = list_devices(observed(slice_, claim)).devices

    assert row.state is DeviceUse.SHARED
    assert row.remaining == {"bandwidth": "60G"}
    assert row.held_by[0].consumed == {"bandwidth": "40G"}
    assert row.is_free
    assert row.is_held


def test_waiting_for_conditions() -> None:
    claim = held("gpu-0", binding_conditions=("Attached",))

    (row,) = list_devices(observed(a_slice(), claim)).devices

    assert row.state is DeviceUse.WAITING
    assert row.held_by[0].waits_for == ("Attached",)


def test_held_but_no_longer_published() -> None:
    assert states(a_slice(), held("gpu-7")) == {"gpu-0": "free", "gpu-7": "unpublished"}


def test_a_partition_whose_counters_are_used_up() -> None:
    memory = {"memory": Counter(Quantity.parse("10"))}
    uses = (DeviceCounterConsumption("gpu", memory),)
    counters = a_slice(
        name="counters", devices=None, shared_counters=(CounterSet("gpu", memory),),
        pool=ResourcePool("node-1", 1, 2),
    )  # fmt: skip
    slice_ = a_slice(
        a_device("whole", consumes_counters=uses),
        a_device("other", consumes_counters=uses),
        pool=ResourcePool("node-1", 1, 2),
    )

    assert states(counters, slice_, held("whole")) == {"whole": "held", "other": "blocked"}


def test_an_incomplete_pool() -> None:
    slice_ = a_slice(pool=ResourcePool("node-1", 1, 2))

    (row,) = list_devices(observed(slice_)).devices

    assert row.state is DeviceUse.UNUSABLE
    assert row.reason


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        pytest.param(DeviceFilter(free=True), {"b", "c"}, id="free"),
        pytest.param(DeviceFilter(held=True), {"a"}, id="held"),
        pytest.param(DeviceFilter(free=True, held=True), {"a", "b", "c"}, id="free-or-held"),
        pytest.param(DeviceFilter(node="node-2"), {"c"}, id="node"),
        pytest.param(DeviceFilter(pool="node-2"), {"c"}, id="pool"),
        pytest.param(DeviceFilter(driver="other"), set(), id="driver"),
        pytest.param(DeviceFilter(class_name="big"), {"b"}, id="class"),
    ],
)
def test_filters(wanted: DeviceFilter, names: set[str]) -> None:
    objects = (
        a_slice(a_device("a"), a_device("b", {"size": "big"})),
        a_slice(a_device("c"), name="two", node="node-2"),
        a_class("big", 'device.attributes["gpu.example.com"].size == "big"'),
        held("a"),
    )

    assert set(states(*objects, wanted=wanted)) == names


def test_an_unknown_class() -> None:
    with pytest.raises(
        UnknownClassError, match=r"no DeviceClass nope; available: gpu\.example\.com"
    ):
        list_devices(observed(a_class()), DeviceFilter(class_name="nope"))
