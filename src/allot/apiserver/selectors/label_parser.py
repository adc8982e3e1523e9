"""Label selectors as text: `app=web,tier in (a,b),!canary`.

    selector    = [ requirement { "," requirement } ]
    requirement = [ "!" ] KEY | KEY ( "=" | "==" | "!=" | ">" | "<" ) [ VALUE ] | KEY ( "in" | "notin" ) "(" values ")"
    values      = [ VALUE ] { "," [ VALUE ] }

Words end at white space and at any of `=!(),><`. The words `in` and `notin` are operators only where
one is expected, so that they can be keys and values too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from allot.api.selectors import (
    DOES_NOT_EXIST,
    EQUALS,
    EVERYTHING,
    EXISTS,
    GREATER,
    IN,
    LESS,
    NOT_EQUALS,
    NOT_IN,
    LabelSelector,
    Requirement,
    read_integer,
)
from allot.apiserver.selectors.errors import SelectorError
from allot.validation.fields import FieldError, FieldPath, invalid
from allot.validation.formats import label_key_problems, label_value_problems

MAX_LENGTH: Final = 256 * 1024
"""Longer selectors are refused; no URL that a server reads has one."""
MAX_REMEMBERED: Final = 512
"""Longer selectors are parsed each time."""

_tokens: Final = re.compile(r"==|!=|[=!(),><]|[^ \t\r\n=!(),><]+").findall
_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", "(", ")", ",", ">", "<"})
_END: Final = ""
_OPERATORS: Final = {
    "=": EQUALS,
    "==": EQUALS,
    "!=": NOT_EQUALS,
    ">": GREATER,
    "<": LESS,
    "in": IN,
    "notin": NOT_IN,
}
_OPERATOR_NAMES: Final = "in, notin, =, ==, !=, gt, lt"
_SETS: Final = frozenset({IN, NOT_IN})
_NUMBERS: Final = frozenset({GREATER, LESS})


def parse_label_selector(text: str) -> LabelSelector:
    """The selector in a string; `SelectorError` if it is not valid."""
    if len(text) > MAX_LENGTH:
        raise SelectorError(f"a label selector may have at most {MAX_LENGTH} characters")
    return _remembered(text) if len(text) <= MAX_REMEMBERED else _parse(text)


def _parse(text: str) -> LabelSelector:
    requirements = _Parser(text).requirements()
    return label_selector(requirements) if requirements else EVERYTHING


_remembered: Final = lru_cache(maxsize=1024)(_parse)


def label_selector(requirements: list[Requirement]) -> LabelSelector:
    return LabelSelector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


def requirement(key: str, operator: str, values: list[str]) -> Requirement:
    """A requirement that can be; `SelectorError` says why it cannot."""
    for error in _requirement_errors(key, operator, values):
        raise SelectorError(str(error))
    number = read_integer(values[0]) if operator in _NUMBERS else None
    return Requirement(key, operator, frozenset(values), number or 0)


def _requirement_errors(key: str, operator: str, values: list[str]) -> list[FieldError]:
    path = FieldPath("values")
    errors = [invalid(FieldPath("key"), key, problem) for problem in label_key_problems(key)]
    if operator in _SETS and not values:
        errors.append(invalid(path, [], "for 'in', 'notin' operators, values set can't be empty"))
    if operator in _NUMBERS and read_integer(values[0]) is None:
        rule = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors.append(invalid(path @ 0, values[0], rule))
    for index, value in enumerate(values):
        errors += [
            invalid(path @ index @ key, value, problem) for problem in label_value_problems(value)
        ]
    return errors


class _Parser:
    """Reads tokens from left to right, one ahead."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_tokens(text), _END]
        self._next = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._peek() == _END:
            return found
        if self._peek() != "!" and not self._at_word():
            raise self._unexpected(", expected: !, identifier, or 'end of string'")
        while True:
            found.append(self._requirement())
            separator = self._take()
            if separator == _END:
                return found
            if separator != ",":
                raise SelectorError(f"found '{separator}', expected: ',' or 'end of string'")
            if self._peek() != "!" and not self._at_word():
                raise self._unexpected(", expected: identifier after ','")

    def _requirement(self) -> Requirement:
        try:
            return self._one_requirement()
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None

    def _one_requirement(self) -> Requirement:
        is_absence = self._peek() == "!"
        if is_absence:
            self._take()
        if not self._at_word():
            raise self._unexpected(", expected: identifier")
        key = self._take()
        for problem in label_key_problems(key):
            # Kubernetes knows no path here, and says so.
            raise SelectorError(str(invalid(FieldPath("<nil>"), key, problem)))
        if is_absence:
            return Requirement(key, DOES_NOT_EXIST)
        if self._peek() in (_END, ","):
            return Requirement(key, EXISTS)
        operator = _OPERATORS.get(self._peek())
        if operator is None:
            raise self._unexpected(f", expected: {_OPERATOR_NAMES}")
        self._take()
        values = self._values() if operator in _SETS else [self._value()]
        return requirement(key, operator, values)

    def _value(self) -> str:
        if self._peek() in (_END, ","):
            return ""
        if not self._at_word():
            raise self._unexpected(", expected: identifier")
        return self._take()

    def _values(self) -> list[str]:
        """The values in parentheses. Where there is nothing between commas, the value is empty."""
        if self._peek() != "(":
            raise self._unexpected(" expected: '('")
        self._take()
        if self._peek() == ")":
            self._take()
            return [""]
        values = []
        while True:
            values.append(self._take() if self._at_word() else "")
            separator = self._peek()
            if separator not in (",", ")"):
                raise self._unexpected(", expected: ',' or ')'")
            self._take()
            if separator == ")":
                return values

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self) -> str:
        token = self._tokens[self._next]
        if token != _END:
            self._next += 1
        return token

    def _at_word(self) -> bool:
        return self._peek() != _END and self._peek() not in _SYMBOLS

    def _unexpected(self, expected: str) -> SelectorError:
        return SelectorError(f"found '{self._peek()}'{expected}")
