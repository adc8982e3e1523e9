"""The inventory: which pools a node can use, and when they are gathered anew."""

from __future__ import annotations

from typing import Any

from allot.allocation import Inventory, TargetNode
from allot.allocation.search.work_meter import WorkMeter
from allot.api.classes import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from allot.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from allot.api.resource import NO_SCHEDULE, DeviceTaint
from allot.api.slices import ResourcePool, ResourceSlice
from allot.features import GATES, FeatureGates
from allot.testing.builders import DRIVER, a_device, a_slice

EVERYTHING = FeatureGates(GATES)
NODE = TargetNode("node-1", {"zone": "a"})


def names(inventory: Inventory, node: TargetNode = NODE) -> list[str]:
    return [f"{device.id.pool}/{device.id.device}" for device in inventory.view(node).devices]


def in_pool(pool: str, *devices: str, slices: int = 1, **spec: Any) -> ResourceSlice:
    given: dict[str, Any] = {"pool": ResourcePool(pool, 1, slices), **spec}
    return a_slice(*(a_device(name) for name in devices), name=pool, **given)


def test_pools_are_sorted_and_those_that_wait_for_binding_come_last() -> None:
    waits = a_slice(
        a_device("x", binding_conditions=("ready",)), name="a", pool=ResourcePool("a", 1, 1)
    )

    inventory = Inventory(EVERYTHING, [in_pool("pool-9", "x"), waits, in_pool("pool-10", "x")])

    assert names(inventory) == ["pool-10/x", "pool-9/x", "a/x"]


def test_only_the_newest_generation_counts() -> None:
    old = a_slice(a_device("old"), name="old", pool=ResourcePool("p", 1, 1))
    new = a_slice(a_device("new"), name="new", pool=ResourcePool("p", 2, 1))

    assert names(Inventory(EVERYTHING, [old, new])) == ["p/new"]


def test_a_pool_with_missing_slices_is_there_without_devices() -> None:
    inventory = Inventory(EVERYTHING, [in_pool("p", "x", slices=2)])

    (pool,) = inventory.view(NODE).pools
    assert pool.is_incomplete
    assert names(inventory) == []


def test_a_pool_with_a_device_twice_is_invalid() -> None:
    view = Inventory(EVERYTHING, [in_pool("p", "x", "x")]).view(NODE)

    assert view.has_invalid_pools
    assert view.pools[0].invalid_because == "duplicate device x"


def test_node_selectors_decide_who_sees_a_slice() -> None:
    in_zone = NodeSelectorRequirement("zone", "In", ("a",))
    slice_ = in_pool(
        "p",
        "x",
        node_name=None,
        node_selector=NodeSelector((NodeSelectorTerm(match_expressions=(in_zone,)),)),
    )
    inventory = Inventory(EVERYTHING, [slice_])

    assert names(inventory) == ["p/x"]
    assert names(inventory, TargetNode("node-2", {"zone": "b"})) == []


def test_devices_of_a_slice_are_looked_through_once_while_others_arrive() -> None:
    class Counting(WorkMeter):
        units = 0

        def spend(self, units: int) -> None:
            self.units += units

    pool, per_slice, number = ResourcePool("p", 1, 41), 128, 40
    slices = [
        a_slice(*(a_device(f"d-{n}-{m}") for m in range(per_slice)), name=f"s-{n}", pool=pool)
        for n in range(number)
    ]
    inventory = Inventory(FeatureGates(()), slices[:-1])
    first, second = Counting(), Counting()
    assert inventory.view(NODE, first).pools[0].is_incomplete
    inventory.put(slices[-1])
    assert inventory.view(NODE, second).pools[0].is_incomplete
    assert first.units > number * per_slice / 2
    assert second.units < per_slice + number * 10


def test_pools_are_gathered_anew_only_after_a_change_that_matters() -> None:
    inventory = Inventory(EVERYTHING, [in_pool("p", "x")])
    before = inventory.view(NODE)

    inventory.put(in_pool("elsewhere", "y", node_name="node-2"))
    assert inventory.view(NODE) is before

    inventory.put(in_pool("network", "z", node_name=None, all_nodes=True))
    assert names(inventory) == ["network/z", "p/x"]
    inventory.remove("p")
    assert names(inventory) == ["network/z"]


def test_a_newer_generation_on_another_node_is_noticed() -> None:
    """Half a pool: whether it is outdated only the other nodes can tell."""
    half = in_pool("p", "x", slices=2)
    inventory = Inventory(EVERYTHING, [half])
    assert [pool.is_incomplete for pool in inventory.view(NODE).pools] == [True]

    newer = a_slice(a_device("y"), name="n", node="node-2", pool=ResourcePool("p", 2, 1))
    inventory.put(newer)

    assert inventory.view(NODE).pools == ()


def test_taint_rules_apply_to_the_devices_they_select() -> None:
    rule = DeviceTaintRule(
        ObjectMeta(name="rule"),
        DeviceTaintRuleSpec(
            DeviceTaintSelector(driver=DRIVER, device="x"), DeviceTaint("bad", "", NO_SCHEDULE)
        ),
    )
    inventory = Inventory(EVERYTHING, [in_pool("p", "x", "y")])

    assert inventory.put_taint_rule(rule)
    assert not inventory.put_taint_rule(rule)
    assert [len(device.taints) for device in inventory.view(NODE).devices] == [1, 0]
    assert inventory.remove_taint_rule("rule")
    assert not inventory.remove_taint_rule("rule")
    assert [len(device.taints) for device in inventory.view(NODE).devices] == [0, 0]


def taint_rule(name: str, **selector: str) -> DeviceTaintRule:
    spec = DeviceTaintRuleSpec(
        taint=DeviceTaint(name, "", NO_SCHEDULE), device_selector=DeviceTaintSelector(**selector)
    )
    return DeviceTaintRule(ObjectMeta(name=name), spec)


def test_taints_of_rules_for_all_devices_come_before_those_for_one() -> None:
    inventory = Inventory(EVERYTHING, [in_pool("p", "x", "y", "z")])

    for rule in (
        taint_rule("c", driver=DRIVER),
        taint_rule("a", device="y"),
        taint_rule("b", pool="p"),
    ):
        inventory.put_taint_rule(rule)

    first, second, third = inventory.view(NODE).devices
    assert [[taint.key for taint in each.taints] for each in (first, second, third)] == [
        ["b", "c"],
        ["b", "c", "a"],
        ["b", "c"],
    ]
    assert first.taints is third.taints


def test_a_changed_taint_rule_concerns_only_the_pools_that_it_selects() -> None:
    inventory = Inventory(EVERYTHING, [in_pool("p", "x"), in_pool("q", "x")])
    inventory.put_taint_rule(taint_rule("a", pool="p"))
    before = inventory.view(NODE).devices

    inventory.put_taint_rule(taint_rule("b", pool="q"))

    after = inventory.view(NODE).devices
    assert after[0] is before[0]
    assert [taint.key for taint in after[1].taints] == ["b"]
    inventory.put_taint_rule(taint_rule("a", pool="q"))
    assert [[taint.key for taint in each.taints] for each in inventory.view(NODE).devices] == [
        [],
        ["a", "b"],
    ]


def test_pools_whose_slices_are_unchanged_are_not_made_again() -> None:
    inventory = Inventory(EVERYTHING, [in_pool("p", "x"), in_pool("q", "x")])
    before = inventory.view(NODE).pools

    inventory.put(in_pool("q", "x", "y"))
    after = inventory.view(NODE).pools

    assert after[0] is before[0]
    assert [device.id.device for device in after[1].devices] == ["x", "y"]
    inventory.remove("p")
    assert names(inventory) == ["q/x", "q/y"]
    inventory.put(in_pool("p", "z"))
    assert names(inventory) == ["p/z", "q/x", "q/y"]


def test_a_node_that_is_gone_leaves_nothing_behind() -> None:
    inventory = Inventory(EVERYTHING, [in_pool("p", "x")])
    before = inventory.view(NODE)

    inventory.forget_node(NODE.name)

    assert inventory.view(NODE) is not before
    assert names(inventory) == ["p/x"]
