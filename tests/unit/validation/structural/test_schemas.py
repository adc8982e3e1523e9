"""Structural schemas: pruning, defaulting, values, formats, correlation and rules, one aspect at a time."""

from __future__ import annotations

from typing import Any

import pytest

from allot.deadline import DeadlineExceededError
from allot.validation.fields import FieldPath
from allot.validation.structural.cel_types import escaped
from allot.validation.structural.correlation import NO_OLD, Correlation, same
from allot.validation.structural.defaulting import (
    DefaultsTooLargeError,
    with_defaults,
    without_nulls,
)
from allot.validation.structural.field_paths import PathError, path_parts
from allot.validation.structural.formats import has_format, parsed_duration
from allot.validation.structural.list_types import validate_list_types
from allot.validation.structural.pruning import prune
from allot.validation.structural.rule_evaluation import OUT_OF_BUDGET, run_rules
from allot.validation.structural.rules import RuleSet, RuleValidation
from allot.validation.structural.schemas import Schema
from allot.validation.structural.values import TOO_COMPLEX, validate_value

STRING = {"type": "string"}


def messages(value: Any, source: dict[str, Any], **more: Any) -> list[str]:
    return [str(error) for error in validate_value(value, Schema(source), **more)]


@pytest.mark.parametrize(
    ("value", "schema", "pruned", "unknown"),
    [
        ({"a": 1}, {"properties": {"a": STRING}}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"properties": {"a": STRING}}, {"a": 1}, ["b"]),
        ({"b": 2}, {"x-kubernetes-preserve-unknown-fields": True}, {"b": 2}, []),
        (
            {"a": {"b": 1, "c": 1}},
            {
                "properties": {"a": {"properties": {"b": STRING}}},
                "x-kubernetes-preserve-unknown-fields": True,
            },
            {"a": {"b": 1}},
            ["a.c"],
        ),
        ({"k": {"x": 1}}, {"additionalProperties": {"type": "object"}}, {"k": {}}, ["k.x"]),
        ([{"x": 1}], {"items": {"type": "object"}}, [{}], ["[0].x"]),
        ({"kind": "x", "z": 1}, {"x-kubernetes-embedded-resource": True}, {"kind": "x"}, ["z"]),
    ],
)
def test_pruning(value: Any, schema: dict[str, Any], pruned: Any, unknown: list[str]) -> None:
    found: list[str] = []

    assert prune(value, Schema(schema), unknown=found) == pruned
    assert found == unknown


def test_pruning_and_defaulting_keep_what_they_do_not_change() -> None:
    schema = Schema({"properties": {"a": {"type": "string", "default": "d"}}})
    value = {"a": "x"}

    assert prune(value, schema) is value
    assert with_defaults(value, schema) is value


@pytest.mark.parametrize(
    ("value", "schema", "filled"),
    [
        ({}, {"properties": {"a": {"default": 1}}}, {"a": 1}),
        ({"a": None}, {"properties": {"a": {"default": 1}}}, {"a": 1}),
        ({"a": None}, {"properties": {"a": {"default": 1, "nullable": True}}}, {"a": None}),
        ({}, {"properties": {"a": {"properties": {"b": {"default": 1}}}}}, {}),
        (
            {},
            {"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}}},
            {"a": {"b": 1}},
        ),
        ({"k": None}, {"additionalProperties": {"default": 1}}, {"k": 1}),
        ([None, 2], {"items": {"default": 1}}, [1, 2]),
    ],
)
def test_defaulting(value: Any, schema: dict[str, Any], filled: Any) -> None:
    assert with_defaults(value, Schema(schema)) == filled


def test_null_is_the_same_as_missing_unless_it_is_a_value() -> None:
    schema = Schema({"properties": {"a": STRING, "b": {"nullable": True}}})

    assert without_nulls({"a": None, "b": None, "c": None}, schema) == {"b": None, "c": None}


@pytest.mark.parametrize(
    ("text", "format_", "valid"),
    [
        ("2020-01-01T00:00:00.5+01:00", "date-time", True),
        ("2020-02-30T00:00:00Z", "date-time", False),
        ("2020-02-29", "date", True),
        ("1h30m", "duration", True),
        ("2 days", "duration", True),
        ("1.2.3.4", "ipv4", True),
        ("fe80::1", "ipv6", True),
        ("fe80::/10", "cidr", True),
        ("10.0.0.0/33", "cidr", False),
        ("00-11-22-33-44-55", "mac", True),
        ("a@b.example", "email", True),
        ("@b.example", "email", False),
        ("/path", "uri", True),
        ("nothing", "uri", False),
        ("978-3-16-148410-0", "isbn13", True),
        ("0-306-40615-2", "isbn10", True),
        ("4111 1111 1111 1111", "creditcard", True),
        ("#fff", "hexcolor", True),
        ("rgb(1, 2, 300)", "rgbcolor", False),
        ("anything", "unheard-of", True),
    ],
)
def test_formats(text: str, format_: str, valid: bool) -> None:
    assert has_format(text, format_) is valid


def test_durations_in_words_are_read() -> None:
    assert parsed_duration("1 week") == 7 * 24 * 3600 * 10**9
    assert parsed_duration("") is None


def test_unchanged_values_are_not_validated_again() -> None:
    schema = {"properties": {"a": {"type": "string", "maxLength": 1}, "b": STRING}}
    old = {"a": "long", "b": "x"}

    assert messages({"a": "long", "b": "y"}, schema, old=old) == []
    assert messages({"a": "longer"}, schema, old=old) == [
        "a: Too long: may not be more than 1 byte"
    ]


def test_items_of_lists_with_keys_belong_together() -> None:
    source = {
        "items": {"type": "object"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    schema = Schema(source)
    assert schema.items is not None
    values = Correlation([{"k": 2}, {"k": 1, "v": 1}, {"k": 3}], [{"k": 1}, {"k": 2}], schema)

    olds = [values.item(index, schema.items).old for index in range(3)]

    assert olds == [{"k": 2}, {"k": 1}, NO_OLD]


def test_true_is_not_one() -> None:
    assert not same({"a": True}, {"a": 1})
    assert same({"a": [1, None]}, {"a": [1.0, None]})


def test_duplicates_are_told_once() -> None:
    schema = Schema({"properties": {"s": {"x-kubernetes-list-type": "set", "items": STRING}}})

    found = list(validate_list_types({"s": ["a", "a", "a"]}, schema, None))

    assert [str(error) for error in found] == ['s[1]: Duplicate value: "a"']


def test_alternatives_that_nest_deep_are_each_tried_once() -> None:
    source: dict[str, Any] = {"pattern": "b"}
    for _ in range(60):
        source = {"anyOf": [source, {"minLength": 5}]}

    assert messages("a", source)[0].endswith("must validate at least one schema (anyOf)")


def test_a_validation_has_a_step_budget() -> None:
    source: dict[str, Any] = {"pattern": "a"}
    for _ in range(8):
        source = {"anyOf": [source], "oneOf": [source], "allOf": [source]}

    found = messages(["a"] * 100, {"items": source})

    assert found == [f"<nil>: Forbidden: {TOO_COMPLEX}"]


def test_large_patterns_limit_the_length_of_strings() -> None:
    source = {"type": "string", "pattern": "[ab]*a[ab]{1000}[ab]{1000}[ab]{1000}c"}

    found = messages("ab" * 50_000, source)

    assert "too long to be matched" in found[0]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("plain", "plain"),
        ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
        ("a__b", "a__underscores__b"),
        ("in", "__in__"),
        ("9a", None),
        ("ä", None),
    ],
)
def test_names_of_fields_in_rules(name: str, found: str | None) -> None:
    assert escaped(name) == found


def test_paths_of_fields() -> None:
    assert path_parts(".a['b.c'].d") == ["a", "b.c", "d"]
    with pytest.raises(PathError, match="expected \\[ or \\. but got: a"):
        path_parts("a.b")


def ruled(rule: str, **more: Any) -> RuleSet:
    rules = [{"rule": rule, **more}]
    return RuleSet(
        Schema(
            {"type": "object", "properties": {"a": {**STRING, "x-kubernetes-validations": rules}}}
        )
    )


def test_a_rule_that_costs_too_much_ends_the_run() -> None:
    rules = RuleSet(
        Schema(
            {
                "type": "object",
                "properties": {
                    "a": {
                        "type": "array",
                        "items": {"type": "integer"},
                        "x-kubernetes-validations": [
                            {"rule": "self.all(x, self.all(y, self.all(z, x >= 0)))"}
                        ],
                    }
                },
            }
        )
    )

    found = run_rules(rules, {"a": list(range(200))})

    assert [str(error) for error in found.errors] == [f"<nil>: Invalid value: {OUT_OF_BUDGET}"]


def test_a_deadline_ends_the_run() -> None:
    def passed() -> None:
        raise DeadlineExceededError

    rules = ruled("self.matches('a+') && ['a', 'b'].all(x, ['c'].all(y, x != y))")
    found = run_rules(rules, {"a": "a" * 100}, deadline=passed)

    assert [error.detail for error in found.errors] in ([OUT_OF_BUDGET], [])


def test_ratcheted_rules_are_warnings() -> None:
    rules = ruled("self == 'fine'")

    found = run_rules(rules, {"a": "bad"}, {"a": "bad"})

    assert found.errors == []
    assert [str(error) for error in found.ratcheted] == [
        "a: Invalid value: \"bad\": failed rule: self == 'fine'"
    ]


def test_rules_that_do_not_compile_are_refused() -> None:
    found = list(RuleValidation(ruled("self + 1 == 2")).errors(FieldPath("schema")))

    assert len(found) == 1
    assert "found no matching overload for '_+_'" in found[0].detail


def test_defaults_may_add_so_much_and_no_more() -> None:
    """A hundred empty items with a kilobyte of defaults each."""
    item = {"properties": {f"d{n}": {"default": "x" * 100} for n in range(10)}}
    schema = Schema({"items": item})

    assert len(with_defaults([{}] * 10, schema, limit=11_000)) == 10
    with pytest.raises(DefaultsTooLargeError, match="would add more than 11000 bytes"):
        with_defaults([{}] * 100, schema, limit=11_000)


def test_a_default_within_defaults_counts_each_time() -> None:
    inner = {"type": "object", "default": {}, "properties": {"a": {"default": "x" * 100}}}
    schema = Schema({"items": {"properties": {"inner": inner}}})

    with pytest.raises(DefaultsTooLargeError):
        with_defaults([{}] * 20, schema, limit=2_000)
