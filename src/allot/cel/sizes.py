"""Ranges of sizes and costs, in the arithmetic of cel-go: saturating uint64."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MAX: Final = 2**64 - 1


def plus(left: int, right: int) -> int:
    return min(left + right, MAX)


def times(left: int, right: int) -> int:
    return min(left * right, MAX)


def times_factor(size: int, factor: float) -> int:
    """Rounded up. The computation is in doubles, and so are its inaccuracies."""
    product = float(size) * factor
    if product >= 2.0**64:
        return MAX
    return math.ceil(product)


class Range(NamedTuple):
    """From `low` to `high`, both included: a size or a cost that is not known exactly."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        return Range(plus(self.low, other.low), plus(self.high, other.high))

    def times(self, other: Range) -> Range:
        return Range(times(self.low, other.low), times(self.high, other.high))

    def times_factor(self, factor: float) -> Range:
        return Range(times_factor(self.low, factor), times_factor(self.high, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


def exactly(value: int) -> Range:
    return Range(value, value)


ZERO: Final = exactly(0)
ONE: Final = exactly(1)
UNKNOWN: Final = Range(0, MAX)
NOTHING: Final = Range(MAX, 0)
"""The start of a union."""
