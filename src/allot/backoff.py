"""Exponential backoff: how long to wait after failures. The clock and the randomness are the caller's."""

from __future__ import annotations

from typing import NamedTuple

_MAX_EXPONENT = 64


class Backoff(NamedTuple):
    """A delay that grows with each failure up to a maximum. A maximum of 0 means no delay."""

    initial_seconds: float = 0.05
    max_seconds: float = 5.0
    factor: float = 2.0
    jitter: float = 0.5
    """The largest part of a delay that chance takes away."""

    def seconds(self, failures: int, chance: float = 0.0) -> float:
        """The delay after this number of failures, 0 before the first; `chance` is between 0 and 1."""
        if failures <= 0:
            return 0.0
        exponent = min(failures - 1, _MAX_EXPONENT)
        delay = min(self.initial_seconds * self.factor**exponent, self.max_seconds)
        return delay * (1 - self.jitter * chance)
