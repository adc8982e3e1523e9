from __future__ import annotations

from collections.abc import Callable

import pytest

from allot.allocation import Ledger, TargetNode
from allot.api.claims import AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.slices import ResourcePool
from allot.features import DEFAULTS
from allot.scheduler.state.device_state import DeviceState
from allot.scheduler.state.node_equivalence import NodeEquivalence
from allot.testing.builders import DRIVER, a_device, a_slice

A, B = TargetNode("a", {}, frozenset()), TargetNode("b", {"zone": "z"}, frozenset())


class Pair:
    """Two nodes, with the same devices to begin with."""

    def __init__(self) -> None:
        self.ledger = Ledger(DEFAULTS)
        self.node_equivalence = NodeEquivalence()
        for node in ("a", "b"):
            self.put(node)

    def put(self, node: str, *, name: str = "", pool: str = "", model: str = "x") -> None:
        device = a_device("gpu-0", {"model": model})
        other = a_device("gpu-1", {"model": model}, allow_multiple_allocations=True)
        self.node_equivalence.put(
            a_slice(
                device, other, name=name or node, node=node, pool=ResourcePool(pool or node, 1, 1)
            )
        )

    def take(self, node: str, device: str, amount: str = "") -> None:
        result = DeviceRequestAllocationResult("r", DRIVER, node, device)
        if amount:
            consumed = {"memory": Quantity.parse(amount)}
            result = DeviceRequestAllocationResult(
                "r", DRIVER, node, device, share_id="s", consumed_capacity=consumed
            )
        allocation = AllocationResult(DeviceAllocationResult((result,)))
        self.ledger.add(f"{node}-{device}", allocation)

    def are_alike(self, b: TargetNode = B) -> bool:
        one, other = (
            self.node_equivalence.class_of(A, self.ledger),
            self.node_equivalence.class_of(b, self.ledger),
        )
        return one is not None and one == other


@pytest.mark.parametrize(
    ("change", "alike"),
    [
        pytest.param(lambda _: None, True, id="the-same-devices"),
        pytest.param(lambda p: p.put("b", model="y"), False, id="another-model"),
        pytest.param(lambda p: p.put("b", name="b-2", pool="b-2"), False, id="one-pool-more"),
        pytest.param(lambda p: p.node_equivalence.remove("b"), False, id="no-devices"),
        pytest.param(lambda p: p.take("b", "gpu-0"), False, id="one-is-taken"),
        pytest.param(
            lambda p: (p.take("a", "gpu-0"), p.take("b", "gpu-0")), True, id="the-same-is-taken"
        ),
        pytest.param(
            lambda p: (p.take("a", "gpu-0"), p.take("b", "gpu-1")), False, id="another-is-taken"
        ),
        pytest.param(
            lambda p: (p.take("a", "gpu-1", "1Gi"), p.take("b", "gpu-1", "1Gi")),
            True,
            id="shares-of-the-same-size",
        ),
        pytest.param(
            lambda p: (p.take("a", "gpu-1", "1Gi"), p.take("b", "gpu-1", "2Gi")),
            False,
            id="shares-of-another-size",
        ),
        pytest.param(
            lambda p: (p.take("a", "gpu-1"), p.take("b", "gpu-1", "1Gi")),
            False,
            id="a-share-and-a-whole-device",
        ),
        pytest.param(
            lambda p: p.put("b", name="b-2", pool="a"), False, id="a-pool-of-both-says-nothing"
        ),
        pytest.param(
            lambda p: p.node_equivalence.put(a_slice(name="net", node_name=None, all_nodes=True)),
            False,
            id="devices-for-all-nodes-say-nothing",
        ),
    ],
)
def test_which_nodes_look_alike(change: Callable[[Pair], object], alike: bool) -> None:
    pair = Pair()
    change(pair)

    assert pair.are_alike() is alike


def test_what_a_node_declares_counts() -> None:
    assert not Pair().are_alike(TargetNode("b", {}, frozenset({"DRAOptionalNodeOperations"})))


def test_what_is_gone_says_nothing() -> None:
    pair = Pair()
    pair.node_equivalence.put(a_slice(name="net", node_name=None, all_nodes=True))
    pair.put("b", name="b-2", pool="a")
    for name in ("net", "b-2"):
        pair.node_equivalence.remove(name)

    assert pair.are_alike()


def test_names_of_slices_count_where_there_are_several() -> None:
    """They are tried in the order of their names."""
    pair = Pair()
    pair.put("a", name="a-1", pool="a", model="y")
    pair.put("b", name="0", pool="b", model="y")

    assert not pair.are_alike()


def test_a_class_that_changes_makes_old_answers_useless() -> None:
    state = DeviceState(DEFAULTS)
    state.put_slice(a_slice(name="a", node="a"))
    before = state.node_equivalence_class(A, Ledger(DEFAULTS))
    assert before == state.node_equivalence_class(A, Ledger(DEFAULTS))

    state.put_class(DeviceClass(ObjectMeta(name="gpu")))

    assert state.node_equivalence_class(A, Ledger(DEFAULTS)) != before


def test_taint_rules_may_be_about_single_devices() -> None:
    state = DeviceState(DEFAULTS)
    state.put_slice(a_slice(name="a", node="a"))
    rule = DeviceTaintRule(ObjectMeta(name="rule"))
    state.put_rule(rule)
    assert state.node_equivalence_class(A, Ledger(DEFAULTS)) is None

    state.remove_rule(rule)

    assert state.node_equivalence_class(A, Ledger(DEFAULTS)) is not None
