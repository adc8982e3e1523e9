"""Node selectors of slices: which nodes can use their devices."""

from __future__ import annotations

import pytest

from allot.allocation import TargetNode
from allot.allocation.errors import AllocationError
from allot.allocation.node_selectors import selects_node
from allot.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

NODE = TargetNode("node-1", {"zone": "a", "cores": "8", "text": "x"})


def a_node_selector(*requirements: NodeSelectorRequirement) -> NodeSelector:
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
    selector = a_node_selector(NodeSelectorRequirement(key, operator, values))

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
        selects_node(NODE, None, None, a_node_selector(requirement))

    assert f"nodeSelectorTerms[0].matchExpressions[0]{problem}" in str(error.value)
