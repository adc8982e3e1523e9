"""Constraints over the devices of a claim: `matchAttribute` and `distinctAttribute`."""

from __future__ import annotations

import pytest

from allot.allocation.attributes import attribute_set
from allot.allocation.constraints import Constraint, Distinct, Match
from allot.api.claims import DeviceConstraint
from allot.api.slices import DeviceAttribute

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
