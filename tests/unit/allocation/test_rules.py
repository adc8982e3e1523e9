"""Rules about single devices and about devices together: taints, node selectors, constraints."""

from __future__ import annotations

import pytest

from allot.allocation import TargetNode
from allot.allocation.attributes import attribute_set
from allot.allocation.constraints import Constraint, Distinct, Match
from allot.allocation.errors import AllocationError
from allot.allocation.node_selectors import selects_node
from allot.api.claims import DeviceConstraint
from allot.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from allot.api.resource import NO_EXECUTE, NO_SCHEDULE, DeviceTaint, DeviceToleration
from allot.api.slices import DeviceAttribute
from allot.api.taints import tolerates

TAINT = DeviceTaint("health", "bad", NO_SCHEDULE)
NODE = TargetNode("node-1", {"zone": "a", "cores": "8", "text": "x"})


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        pytest.param(DeviceToleration("health", "Equal", "bad"), True, id="equal"),
        pytest.param(DeviceToleration("health", "", "bad"), True, id="equal-is-the-default"),
        pytest.param(DeviceToleration("health", "Equal", "good"), False, id="other-value"),
        pytest.param(DeviceToleration("health", "Exists"), True, id="exists"),
        pytest.param(DeviceToleration("", "Exists"), True, id="any-key"),
        pytest.param(DeviceToleration("other", "Exists"), False, id="other-key"),
        pytest.param(DeviceToleration("", "Exists", "", NO_EXECUTE), False, id="other-effect"),
        pytest.param(DeviceToleration("health", "Is", "bad"), False, id="unknown-operator"),
    ],
)
def test_tolerations(toleration: DeviceToleration, covers: bool) -> None:
    assert tolerates(toleration, TAINT, comparison_operators=False) == covers


def a_selector(*requirements: NodeSelectorRequirement) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(match_expressions=requirements),))


@pytest.mark.parametrize(
    ("key", "operator", "values", "selected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "NotIn", ("a",), False),
        ("none", "NotIn", ("a",), True),
        ("zone", "Exists", (), True),
        ("none", "DoesNotExist", (), True),
        ("cores", "Gt", ("4",), True),
        ("cores", "Lt", ("4",), False),
        ("text", "Gt", ("4",), False),
        ("none", "Lt", ("4",), False),
    ],
)
def test_node_selectors(key: str, operator: str, values: tuple[str, ...], selected: bool) -> None:
    selector = a_selector(NodeSelectorRequirement(key, operator, values))

    assert selects_node(NODE, None, None, selector) == selected


def test_nothing_selects_nothing() -> None:
    assert not selects_node(NODE, None, None, None)
    assert not selects_node(NODE, None, None, NodeSelector(()))
    assert not selects_node(NODE, None, None, NodeSelector((NodeSelectorTerm(),)))


@pytest.mark.parametrize(
    ("requirement", "problem"),
    [
        (NodeSelectorRequirement("k", "In"), ".values: Invalid value: "),
        (NodeSelectorRequirement("k", "Exists", ("a",)), ".values: Invalid value: "),
        (NodeSelectorRequirement("k", "Gt", ("1", "2")), ".values: Invalid value: "),
        (NodeSelectorRequirement("k", "Lt", ("x",)), '.values[0]: Invalid value: "x": '),
        (NodeSelectorRequirement("k", "Like", ("x",)), '.operator: Unsupported value: "Like": '),
    ],
)
def test_a_selector_that_cannot_be_read_is_an_error(
    requirement: NodeSelectorRequirement, problem: str
) -> None:
    with pytest.raises(AllocationError) as error:
        selects_node(NODE, None, None, a_selector(requirement))

    assert f"nodeSelectorTerms[0].matchExpressions[0]{problem}" in str(error.value)


ONE = DeviceAttribute(int_=1)
TWO = DeviceAttribute(int_=2)
TEXT = DeviceAttribute(string="1")
ONE_TWO = DeviceAttribute(ints=(1, 2))
TWO_THREE = DeviceAttribute(ints=(2, 3))
EMPTY = DeviceAttribute(ints=())


def joins(constraint: Constraint, *attributes: DeviceAttribute) -> list[bool]:
    """Which devices are admitted, one after the other; those that are stay."""
    admitted = []
    for attribute in attributes:
        value = attribute_set(attribute)
        admitted.append(constraint.admits(value))
        if admitted[-1]:
            constraint.add(value)
    return admitted


@pytest.mark.parametrize(
    ("lists", "attributes", "admitted"),
    [
        pytest.param(True, (ONE, ONE, TWO), [True, True, False], id="same-value"),
        pytest.param(True, (ONE, TEXT), [True, False], id="same-type"),
        pytest.param(True, (ONE_TWO, TWO_THREE, ONE), [True, True, False], id="common-element"),
        pytest.param(True, (EMPTY,), [False], id="an-empty-list-matches-nothing"),
        pytest.param(False, (ONE_TWO, ONE_TWO), [True, False], id="off-one-list-alone"),
        pytest.param(False, (ONE, ONE, ONE_TWO), [True, True, False], id="off-no-list-joins"),
    ],
)
def test_match(lists: bool, attributes: tuple[DeviceAttribute, ...], admitted: list[bool]) -> None:
    assert joins(Match(DeviceConstraint(), "d/a", lists=lists), *attributes) == admitted


@pytest.mark.parametrize(
    ("lists", "attributes", "admitted"),
    [
        pytest.param(True, (ONE, ONE, TWO), [True, False, True], id="no-value-twice"),
        pytest.param(True, (ONE, TEXT), [True, True], id="other-types-differ"),
        pytest.param(True, (ONE_TWO, TWO_THREE), [True, False], id="disjoint-lists"),
        pytest.param(False, (ONE_TWO, TWO_THREE), [True, False], id="off-no-second-list"),
        pytest.param(False, (ONE_TWO, ONE), [True, True], id="off-a-value-after-a-list"),
    ],
)
def test_distinct(
    lists: bool, attributes: tuple[DeviceAttribute, ...], admitted: list[bool]
) -> None:
    assert joins(Distinct(DeviceConstraint(), "d/a", lists=lists), *attributes) == admitted


def test_what_was_added_last_can_be_taken_back() -> None:
    constraint = Match(DeviceConstraint(), "d/a", lists=True)
    before = constraint.state()

    constraint.add(attribute_set(ONE_TWO))
    between = constraint.state()
    constraint.add(attribute_set(TWO_THREE))
    constraint.remove_last()

    assert constraint.state() == between
    constraint.remove_last()
    assert constraint.state() == before


@pytest.mark.parametrize(
    ("requests", "applies"),
    [((), True), (("r",), True), (("r/s",), True), (("r/t",), False), (("s",), False)],
)
def test_constraints_name_requests_and_alternatives(
    requests: tuple[str, ...], applies: bool
) -> None:
    constraint = Match(DeviceConstraint(requests), "d/a", lists=True)

    assert constraint.applies_to("r", "s") == applies
