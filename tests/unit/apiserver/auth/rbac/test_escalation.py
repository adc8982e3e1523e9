"""Which rights a role grants beyond those of its author, within a bounded number of comparisons."""

from __future__ import annotations

import pytest

from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.rbac.escalation import (
    MAX_SHOWN,
    TOO_MANY,
    RuleIndex,
    TooManyChecksError,
    escalation_problem,
    uncovered,
)
from allot.apiserver.auth.rbac.rules import PolicyRule

GET_PODS = PolicyRule(("get",), ("",), ("pods",))
ANYTHING = PolicyRule(("*",), ("*",), ("*",))
NAMES = tuple(f"n{number}" for number in range(300))


@pytest.mark.parametrize(
    ("owned", "wanted", "lacking"),
    [
        pytest.param([GET_PODS], [GET_PODS], 0, id="equal"),
        pytest.param([ANYTHING], [PolicyRule(NAMES, NAMES, NAMES, NAMES)], 0, id="all-at-once"),
        pytest.param([GET_PODS], [PolicyRule(("get", "list"), ("",), ("pods",))], 1, id="a-verb"),
        pytest.param(
            [GET_PODS, PolicyRule(("list",), ("",), ("pods",))],
            [PolicyRule(("get", "list"), ("",), ("pods",))],
            0,
            id="by-two-rules",
        ),
        pytest.param(
            [PolicyRule(("get",), ("",), ("*/status",))],
            [PolicyRule(("get",), ("",), ("pods/status", "nodes/status"))],
            0,
            id="subresources",
        ),
        pytest.param(
            [PolicyRule(("get",), ("",), ("pods",), ("a",))], [GET_PODS], 1, id="only-a-name"
        ),
        pytest.param(
            [PolicyRule(("get",), non_resource_urls=("/apis/*",))],
            [PolicyRule(("get",), non_resource_urls=("/apis/x", "/version"))],
            1,
            id="paths",
        ),
    ],
)
def test_uncovered(owned: list[PolicyRule], wanted: list[PolicyRule], lacking: int) -> None:
    assert len(uncovered(owned, wanted)) == lacking


def test_a_rule_with_billions_of_parts_is_refused() -> None:
    bomb = PolicyRule(NAMES, NAMES, NAMES, NAMES)

    with pytest.raises(TooManyChecksError):
        uncovered([GET_PODS], [bomb])
    assert escalation_problem(User("u"), [GET_PODS], [], [bomb]) == TOO_MANY


def test_many_rules_are_refused_after_a_bounded_number_of_comparisons() -> None:
    owned = [PolicyRule(("get",), ("",), ("pods",), (f"a{n}",)) for n in range(300)]
    wanted = [PolicyRule(("get",), ("",), ("pods",), (f"b{n}",)) for n in range(300)]

    assert len(uncovered(owned, wanted, limit=300 * 300 * 4)) == 300
    with pytest.raises(TooManyChecksError):
        uncovered(owned, wanted, limit=1_000)


def test_a_long_list_of_missing_rights_is_cut() -> None:
    wanted = [PolicyRule(("get",), ("",), (f"r{n}",)) for n in range(MAX_SHOWN + 7)]

    problem = escalation_problem(User("u"), [], [], wanted)

    assert problem is not None
    assert problem.endswith("\nand 7 more")


def test_rules_are_found_by_resource_in_their_order() -> None:
    rules = (
        PolicyRule(("get",), ("",), ("pods", "pods/status")),
        PolicyRule(("list",), ("",), ("nodes",)),
        PolicyRule(("*",), ("",), ("*",)),
        PolicyRule(("get",), ("",), ("*/status",)),
        PolicyRule(("get",), ("",), ("pods", "pods/status")),
    )
    found = RuleIndex(rules)

    assert found.about("pods") == [rules[0], rules[2]]
    assert found.about("pods/status") == [rules[0], rules[2], rules[3]]
    assert found.about("nodes") == [rules[1], rules[2]]
