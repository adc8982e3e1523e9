from __future__ import annotations

import pytest

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import (
    ASSIGNED_POD,
    NODE,
    Action,
    ClusterEvent,
    node_update_actions,
    pod_update_actions,
)
from allot.scheduler.framework.fit_errors import no_node_fits
from allot.scheduler.framework.scores import scale_to_max
from allot.scheduler.framework.status import SUCCESS, Code, failed, unschedulable
from allot.scheduler.state.nodes import NodeFacts
from allot.scheduler.state.pods import PodInfo
from tests.unit.scheduler.state.objects import a_node_facts, a_pod_info


def test_the_sentence_counts_reasons_and_sorts_them_as_texts() -> None:
    cpu, both = (
        unschedulable("Insufficient cpu"),
        unschedulable("Insufficient cpu", "Too many pods"),
    )

    assert (
        no_node_fits(12, [cpu] * 9 + [both] * 3, post_filter_message="preemption: no.")
        == "0/12 nodes are available: 12 Insufficient cpu, 3 Too many pods. preemption: no."
    )


def test_a_pre_filter_rejection_is_reported_once() -> None:
    message = no_node_fits(3, [unschedulable("x")] * 3, pre_filter_message="no such claim")

    assert message == "0/3 nodes are available: no such claim."


@pytest.mark.parametrize(
    ("scores", "reverse", "expected"),
    [
        pytest.param([1, 2, 4], False, [25, 50, 100], id="highest-is-100"),
        pytest.param([0, 0], False, [0, 0], id="zeros-stay"),
        pytest.param([0, 1, 3], True, [100, 67, 0], id="reverse"),
        pytest.param([0, 0], True, [100, 100], id="reverse-zeros-are-best"),
        pytest.param([], False, [], id="none"),
    ],
)
def test_scale_to_max(scores: list[int], reverse: bool, expected: list[int]) -> None:
    scale_to_max(scores, reverse=reverse)

    assert expected == scores


def test_status_knows_its_author_and_its_kind() -> None:
    refused = unschedulable("a", "b").by("Fit")

    assert (refused.plugin, refused.message, refused.is_rejection) == ("Fit", "a, b", True)
    assert SUCCESS.is_success
    assert not SUCCESS.is_rejection
    assert (failed(ValueError("broken")).code, failed(ValueError("broken")).message) == (
        Code.ERROR,
        "broken",
    )


class Cloneable(list[int]):
    def clone(self) -> Cloneable:
        return Cloneable(self)


def test_a_cloned_state_can_be_changed_alone() -> None:
    state = CycleState()
    state["A"] = Cloneable([1])
    state["B"] = shared = [1]
    state.skipped_filters.add("C")

    copy = state.clone()
    copy["A"].append(2)
    copy.skipped_filters.add("D")

    assert state["A"] == [1]
    assert copy["B"] is shared
    assert state.skipped_filters == {"C"}
    assert state.get("missing") is None


@pytest.mark.parametrize(
    ("new", "changed"),
    [
        pytest.param(a_node_facts(), Action(0), id="nothing"),
        pytest.param(
            a_node_facts(allocatable={"cpu": "5"}), Action.UPDATE_NODE_ALLOCATABLE, id="cpu"
        ),
        pytest.param(
            a_node_facts(allocatable={"pods": "5"}), Action.UPDATE_NODE_ALLOCATABLE, id="pods"
        ),
        pytest.param(a_node_facts(labels={"a": "b"}), Action.UPDATE_NODE_LABEL, id="label"),
        pytest.param(a_node_facts(taints=["a=b:NoSchedule"]), Action.UPDATE_NODE_TAINT, id="taint"),
        pytest.param(a_node_facts(unschedulable=True), Action.UPDATE_NODE_TAINT, id="cordoned"),
        pytest.param(
            a_node_facts(status={"conditions": [{"type": "Ready", "status": "True"}]}),
            Action.UPDATE_NODE_CONDITION,
            id="condition",
        ),
    ],
)
def test_node_update(new: NodeFacts, changed: Action) -> None:
    assert changed == node_update_actions(a_node_facts(), new)


OLD_POD = a_pod_info(requests={"cpu": "2"}, schedulingGates=[{"name": "g"}])


@pytest.mark.parametrize(
    ("new", "changed"),
    [
        pytest.param(OLD_POD, Action.UPDATE_OTHER, id="nothing-with-a-name"),
        pytest.param(
            a_pod_info(requests={"cpu": "1"}, schedulingGates=[{"name": "g"}]),
            Action.UPDATE_POD_SCALE_DOWN,
            id="smaller",
        ),
        pytest.param(
            a_pod_info(requests={"cpu": "3"}, labels={"a": "b"}),
            Action.UPDATE_POD_LABEL | Action.UPDATE_POD_GATES_ELIMINATED,
            id="several",
        ),
    ],
)
def test_pod_update(new: PodInfo, changed: Action) -> None:
    assert changed == pod_update_actions(OLD_POD, new)


def test_a_registration_covers_any_of_its_actions() -> None:
    wanted = ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL)

    assert wanted.covers(ClusterEvent(NODE, Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT))
    assert not wanted.covers(ClusterEvent(NODE, Action.UPDATE_NODE_TAINT))
    assert not wanted.covers(ClusterEvent(ASSIGNED_POD, Action.ADD))
