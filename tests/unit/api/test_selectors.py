"""Label selectors and node selectors: what they match, how they print."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.selectors import (
    LabelMatcher,
    LabelSelector,
    Requirement,
    label_selector,
    node_selection,
    read_integer,
    selector_string,
    selects_labels,
)


def an_expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


LABELS = {"tier": "web", "gen": "12", "odd": "x1"}


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        pytest.param(an_expression("tier", "In", "web", "db"), True, id="in"),
        pytest.param(an_expression("tier", "In", "db"), False, id="not-among"),
        pytest.param(an_expression("none", "In", "db"), False, id="in-needs-the-label"),
        pytest.param(an_expression("tier", "NotIn", "db"), True, id="not-in"),
        pytest.param(an_expression("none", "NotIn", "db"), True, id="not-in-without-label"),
        pytest.param(an_expression("tier", "NotIn", "web"), False, id="not-in-but-is"),
        pytest.param(an_expression("tier", "Exists"), True, id="exists"),
        pytest.param(an_expression("none", "Exists"), False, id="exists-not"),
        pytest.param(an_expression("none", "DoesNotExist"), True, id="does-not-exist"),
        pytest.param(an_expression("gen", "Gt", "9"), True, id="gt-is-numeric"),
        pytest.param(an_expression("gen", "Gt", "12"), False, id="gt-is-strict"),
        pytest.param(an_expression("gen", "Lt", "13"), True, id="lt"),
        pytest.param(an_expression("odd", "Gt", "0"), False, id="gt-needs-a-number"),
        pytest.param(an_expression("none", "Lt", "1"), False, id="lt-needs-the-label"),
        pytest.param(an_expression("tier", "In"), False, id="in-without-values-selects-nothing"),
        pytest.param(an_expression("tier", "Like", "w"), False, id="unknown-operator"),
    ],
)
def test_node_expression(expression: dict[str, Any], matches: bool) -> None:
    selection = node_selection({"nodeSelectorTerms": [{"matchExpressions": [expression]}]})

    assert selection is not None
    assert matches is selection.matches("node", LABELS)


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        pytest.param([], False, id="no-terms-select-nothing"),
        pytest.param([{}], False, id="empty-term-selects-nothing"),
        pytest.param(
            [
                {"matchExpressions": [an_expression("tier", "In", "db")]},
                {"matchFields": [an_expression("metadata.name", "In", "node")]},
            ],
            True,
            id="one-term-is-enough",
        ),
        pytest.param(
            [
                {
                    "matchExpressions": [an_expression("tier", "In", "web")],
                    "matchFields": [an_expression("metadata.name", "In", "other")],
                }
            ],
            False,
            id="all-of-a-term-must-hold",
        ),
        pytest.param(
            [{"matchFields": [an_expression("spec.other", "In", "node")]}],
            False,
            id="unknown-field",
        ),
    ],
)
def test_node_terms(terms: list[Any], matches: bool) -> None:
    selection = node_selection({"nodeSelectorTerms": terms})

    assert selection is not None
    assert matches is selection.matches("node", LABELS)


@pytest.mark.parametrize(
    ("raw", "matches"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param({}, True, id="empty-selects-everything"),
        pytest.param({"matchLabels": {"tier": "web"}}, True, id="labels"),
        pytest.param({"matchLabels": {"tier": "web", "gen": "1"}}, False, id="all-labels"),
        pytest.param(
            {"matchExpressions": [an_expression("gen", "Gt", "1")]}, None, id="no-numbers-here"
        ),
    ],
)
def test_label_selector(raw: dict[str, Any] | None, matches: bool | None) -> None:
    selector = label_selector(raw)

    assert matches is (None if selector is None else selector.matches(LABELS))


@pytest.mark.parametrize(
    ("raw", "printed"),
    [
        pytest.param({}, "", id="everything"),
        pytest.param({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2", id="sorted-by-key"),
        pytest.param(
            {
                "matchLabels": {"app": "web"},
                "matchExpressions": [
                    an_expression("tier", "NotIn", "b", "a"),
                    an_expression("old", "DoesNotExist"),
                    an_expression("env", "In", "p"),
                    an_expression("gpu", "Exists"),
                ],
            },
            "app=web,env in (p),gpu,!old,tier notin (a,b)",
            id="every-operator",
        ),
    ],
)
def test_selector_string(raw: dict[str, Any], printed: str) -> None:
    assert printed == selector_string(raw)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("12", 12),
        ("-3", -3),
        ("+5", 5),
        ("0" * 40 + "7", 7),
        ("9223372036854775808", None),
        ("1.0", None),
        ("١", None),
        ("1_0", None),
        ("", None),
        ("-", None),
    ],
)
def test_read_integer(value: str, number: int | None) -> None:
    assert number == read_integer(value)


SELECTOR = {
    "matchLabels": {"b": "2"},
    "matchExpressions": [
        {"key": "a", "operator": "In", "values": ["y", "x"]},
        {"key": "c", "operator": "DoesNotExist"},
    ],
}


@pytest.mark.parametrize(
    ("labels", "selected"),
    [
        ({"a": "x", "b": "2"}, True),
        ({"a": "z", "b": "2"}, False),
        ({"b": "2"}, False),
        ({"a": "x"}, False),
        ({"a": "x", "b": "2", "c": ""}, False),
    ],
)
def test_selects_labels(labels: dict[str, str], selected: bool) -> None:
    assert selects_labels(SELECTOR, labels) == selected


class CountedLabels(dict[str, str]):
    """Labels that count how often they are read."""

    reads = 0

    def __getitem__(self, key: str) -> str:
        self.reads += 1
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.reads += 1
        return super().__contains__(key)


@pytest.mark.parametrize(
    ("requirements", "is_match"),
    [
        pytest.param([("a", "NotIn", f"v{n}") for n in range(1_000)], True, id="one-label"),
        pytest.param([(f"k{n}", "NotIn", "v") for n in range(1_000)], True, id="many-labels"),
        pytest.param([(f"k{n}", "In", "v") for n in range(1_000)], False, id="labels-missing"),
        pytest.param([("a", "In", f"v{n}") for n in range(1_000)], False, id="contradiction"),
    ],
)
def test_long_selectors_cost_what_an_object_has_labels(
    requirements: list[tuple[str, str, str]], is_match: bool
) -> None:
    expressions = [
        {"key": key, "operator": operator, "values": [value]}
        for key, operator, value in requirements
    ]
    selector = label_selector({"matchExpressions": expressions})
    assert selector is not None
    labels = CountedLabels(a="b", c="d")

    assert LabelMatcher(selector).matches(labels) is is_match
    assert labels.reads <= 3 * len(labels)
    assert selector.matches(dict(labels)) is is_match


@pytest.mark.parametrize(
    ("value", "is_match"), [("3", False), ("4", True), ("7", True), ("8", False)]
)
def test_the_tightest_bounds_count(value: str, is_match: bool) -> None:
    bounds = [("Gt", 1), ("Gt", 3), ("Gt", 2), ("Lt", 9), ("Lt", 8), ("Lt", 10)]
    selector = LabelSelector(
        tuple(Requirement("a", operator, number=number) for operator, number in bounds)
    )

    assert LabelMatcher(selector).matches({"a": value}) is is_match
    assert selector.matches({"a": value}) is is_match
