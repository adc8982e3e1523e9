from __future__ import annotations

from collections.abc import Callable

import pytest

from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.meta import ObjectMeta
from allot.api.slices import ResourcePool, ResourceSlice
from allot.features import DEFAULTS, DEVICE_TAINTS, FeatureGates
from allot.scheduler.state.device_state import DeviceState
from allot.testing.builders import a_device, a_slice, an_allocation
from tests.unit.scheduler.state.objects import a_node_facts, on_node

ALL = ""


class Watched:
    """Devices, and which nodes were touched since they were last looked at."""

    def __init__(self, *slices: ResourceSlice, gates: FeatureGates = DEFAULTS) -> None:
        self.touched: list[str] = []
        self.state = DeviceState(gates, self.touched.append)
        for slice_ in slices:
            self.state.put_slice(slice_)
        self.touched.clear()


def of_node(name: str, pool: str = "", slices: int = 1) -> ResourceSlice:
    return a_slice(name=f"slice-{name}", node=name, pool=ResourcePool(pool or name, 1, slices))


def of_network(name: str = "net") -> ResourceSlice:
    return a_slice(name=name, node_name=None, all_nodes=True, pool=ResourcePool("net", 1, 1))


CLASS = DeviceClass(ObjectMeta(name="gpu"))
RULE = DeviceTaintRule(ObjectMeta(name="rule"))


@pytest.mark.parametrize(
    ("before", "change", "touched"),
    [
        pytest.param([], lambda s: s.put_slice(of_node("a")), ["a"], id="a-node's-own-slice"),
        pytest.param([of_node("a")], lambda s: s.put_slice(of_node("a")), ["a"], id="it-changes"),
        pytest.param([of_node("a")], lambda s: s.remove_slice(of_node("a")), ["a"], id="it-goes"),
        pytest.param([], lambda s: s.put_slice(of_network()), [ALL], id="a-slice-for-all-nodes"),
        pytest.param([of_network()], lambda s: s.remove_slice(of_network()), [ALL], id="that-goes"),
        pytest.param(
            [of_node("a", "shared", 2)],
            lambda s: s.put_slice(of_node("b", "shared", 2)),
            [ALL],
            id="a-pool-of-two-nodes",
        ),
        pytest.param(
            [of_node("a", "shared", 2), of_node("b", "shared", 2)],
            lambda s: s.remove_slice(of_node("b", "shared", 2)),
            [ALL],
            id="a-pool-of-two-nodes-becomes-incomplete",
        ),
        pytest.param(
            [of_node("a")], lambda s: s.put_slice(of_node("b", "a")), [ALL], id="a-pool-moves"
        ),
        pytest.param([], lambda s: s.put_class(CLASS), [ALL], id="a-class-comes"),
        pytest.param([], lambda s: s.remove_class(CLASS), [ALL], id="a-class-goes"),
        pytest.param([], lambda s: s.put_rule(RULE), [ALL], id="a-taint-rule-comes"),
        pytest.param(
            [],
            lambda s: (s.put_rule(RULE), s.put_rule(RULE)),
            [ALL],
            id="a-taint-rule-stays-as-it-is",
        ),
        pytest.param(
            [],
            lambda s: (s.put_rule(RULE), s.remove_rule(RULE)),
            [ALL, ALL],
            id="a-taint-rule-goes",
        ),
        pytest.param([], lambda s: s.remove_rule(RULE), [], id="an-unknown-taint-rule-goes"),
        pytest.param(
            [of_node("a")],
            lambda s: s.allocation_changed(an_allocation("gpu-0", pool="a")),
            ["a"],
            id="a-node's-device-is-taken",
        ),
        pytest.param(
            [of_node("a")],
            lambda s: s.allocation_changed(an_allocation("x", "y", pool="a")),
            ["a"],
            id="two-devices-of-one-node",
        ),
        pytest.param(
            [of_network()],
            lambda s: s.allocation_changed(an_allocation("gpu-0", pool="net")),
            [ALL],
            id="a-device-of-the-network-is-taken",
        ),
        pytest.param(
            [],
            lambda s: s.allocation_changed(an_allocation("gpu-0", pool="unknown")),
            [ALL],
            id="an-unpublished-device-is-taken",
        ),
    ],
)
def test_which_nodes_a_change_concerns(
    before: list[ResourceSlice], change: Callable[[DeviceState], object], touched: list[str]
) -> None:
    watched = Watched(*before)

    change(watched.state)

    assert watched.touched == touched


def test_without_taints_rules_mean_nothing() -> None:
    watched = Watched(gates=DEFAULTS.switched({DEVICE_TAINTS: False}))

    watched.state.put_rule(RULE)

    assert watched.touched == []


def test_classes_by_name() -> None:
    state = DeviceState(DEFAULTS)
    state.put_class(CLASS)
    assert state.classes == {"gpu": CLASS}
    state.remove_class(CLASS)
    assert state.classes == {}
    state.remove_class(CLASS)


def test_a_node_is_the_same_target_until_it_changes() -> None:
    state = DeviceState(DEFAULTS)
    facts = a_node_facts("a", labels={"zone": "z"}, status={"declaredFeatures": ["F"]})
    node = on_node(facts)

    target = state.target(node)

    assert target.name == "a"
    assert target.labels["zone"] == "z"
    assert target.declared_features == {"F"}
    assert state.target(node) is target
    node.set_facts(a_node_facts("a", labels={"zone": "y"}))
    assert state.target(node).labels["zone"] == "y"


def test_a_node_that_comes_back_is_looked_at_again() -> None:
    state = DeviceState(DEFAULTS)
    state.target(on_node(a_node_facts("a", labels={"zone": "z"})))
    state.forget_node("a")

    assert state.target(on_node(a_node_facts("a"))).labels.get("zone") is None


def test_which_kinds_of_devices_there_are() -> None:
    state = DeviceState(DEFAULTS)

    def kinds(*slices: ResourceSlice) -> tuple[bool, bool]:
        for slice_ in slices:
            state.put_slice(slice_)
        return state.has_binding_conditions, state.has_node_bound_devices

    plain, bound = a_device("gpu-0"), a_device("gpu-1", binds_to_node=True)
    conditioned = a_device("gpu-2", binding_conditions=("Attached",))

    assert kinds(a_slice(plain, name="a"), a_slice(plain, bound, name="b")) == (False, True)
    assert kinds(a_slice(plain, name="b"), a_slice(conditioned, name="a")) == (True, False)
    assert kinds(a_slice(bound, conditioned, name="c")) == (True, True)
    state.remove_slice(a_slice(name="c"))
    assert kinds() == (True, False)
