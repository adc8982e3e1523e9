"""Label selectors: requirements on labels that must all hold."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

FEW_VALUES: Final = 8
"""So many are sooner looked through than searched."""


class Operator(Enum):
    """How a requirement compares, by the word that selectors use for it."""

    EQUALS = "="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER = ">"
    LESS = "<"


class Requirement(NamedTuple):
    """One condition on one label. Values are sorted, and each occurs once."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet it. What must *not* be so is also met where the label is missing."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.EQUALS | Operator.IN:
                return value is not None and self._has(value)
            case Operator.NOT_EQUALS | Operator.NOT_IN:
                return value is None or not self._has(value)
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
        number, limit = whole_number(value), whole_number(self.values[0])
        if number is None or limit is None:
            return False
        return number > limit if self.operator is Operator.GREATER else number < limit

    def _has(self, value: str) -> bool:
        values = self.values
        if len(values) <= FEW_VALUES:
            return value in values
        place = bisect_left(values, value)
        return place < len(values) and values[place] == value

    def __str__(self) -> str:
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN:
                # Nothing in the parentheses would be no value; the empty value alone needs a comma.
                listed = ",".join(self.values) or ","
                return f"{self.key} {self.operator.value} ({listed})"
        return f"{self.key}{self.operator.value}{self.values[0]}"


class LabelSelector(NamedTuple):
    """Requirements in the order of their keys. Prints as a selector that reads as the same one."""

    requirements: tuple[Requirement, ...] = ()

    @property
    def is_everything(self) -> bool:
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING: Final = LabelSelector()


def whole_number(text: str | None) -> int | None:
    """The 64-bit number a label value stands for, if it stands for one."""
    if text is None or len(text) > 64:  # label values have at most 63 bytes
        return None
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
