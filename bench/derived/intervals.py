"""What pairs of measurements say: the median of their ratios, and where it lies with 95 % certainty."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Ratio(NamedTuple):
    """The median of the ratios of pairs, and its 95 % interval."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        low, high = (self.low - 1) * 100, (self.high - 1) * 100
        return f"{(self.median - 1) * 100:+6.1f} % [{low:+.1f}, {high:+.1f}]"


def ratio_of(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """Second over first. The interval is that of the sign test: it assumes nothing about disturbances."""
    ratios = sorted(second / first for first, second in pairs)
    count = len(ratios)
    outside = 0
    chance = 0.5**count
    while chance <= 0.025 and outside < count // 2:
        outside += 1
        chance += math.comb(count, outside) * 0.5**count
    outside = max(outside, 1)
    return Ratio(statistics.median(ratios), ratios[outside - 1], ratios[count - outside])
