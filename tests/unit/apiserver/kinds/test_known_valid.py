"""Specs are validated once, by content and by what else their validation depends on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from allot.apiserver.kinds.known_valid import KnownValid
from allot.validation.fields import FieldError, FieldPath, required


class Rules:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def errors(self, value: dict[str, Any]) -> Iterator[FieldError]:
        self.asked += 1
        if not value.get("name"):
            yield required(FieldPath("name"))


def test_a_valid_value_is_validated_once() -> None:
    known, rules = KnownValid(), Rules()

    for _ in range(3):
        value = {"name": "a"}
        assert list(known.errors(value, partial(rules.errors, value))) == []

    assert rules.asked == 1


def test_an_invalid_value_is_validated_every_time() -> None:
    known, rules = KnownValid(), Rules()
    value = {"name": ""}

    found = [list(known.errors(value, lambda: rules.errors(value))) for _ in range(3)]

    assert [len(errors) for errors in found] == [1, 1, 1]
    assert rules.asked == 3


def test_errors_that_are_not_all_read() -> None:
    known, rules = KnownValid(), Rules()
    value = {"name": ""}

    next(known.errors(value, lambda: rules.errors(value)))

    assert len(list(known.errors(value, lambda: rules.errors(value)))) == 1


def test_other_gates_validate_again() -> None:
    known, rules = KnownValid(), Rules()
    value = {"name": "a"}

    for gates in ("on", "off", "on"):
        list(known.errors(value, lambda: rules.errors(value), gates))

    assert rules.asked == 2


def test_what_is_remembered_is_bounded() -> None:
    known, rules = KnownValid(max_known=2), Rules()

    for name in ("a", "b", "c", "a", "x" * 5000, "x" * 5000):
        value = {"name": name}
        list(known.errors(value, partial(rules.errors, value)))

    assert rules.asked == 6


def test_the_same_value_is_known_by_what_else_it_depends_on() -> None:
    known, rules = KnownValid(), Rules()
    value = {"name": "a"}

    for gates in ("on", "on", "on", "off", "off", "on"):
        list(known.errors(value, lambda: rules.errors(value), gates))

    assert rules.asked == 2
