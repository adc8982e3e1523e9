"""Exponential backoff."""

from __future__ import annotations

from typing import Final, NamedTuple


class ExponentialBackoff(NamedTuple):
    """A delay that doubles with each failure up to a maximum. A maximum of 0 means no delay."""

    initial_seconds: float = 1.0
    max_seconds: float = 10.0

    def after(self, failures: int) -> float:
        if failures <= 0 or self.max_seconds <= 0:
            return 0.0
        return float(min(self.initial_seconds * 2 ** min(failures - 1, 30), self.max_seconds))


TIMEOUT_BACKOFF: Final = ExponentialBackoff(initial_seconds=5.0, max_seconds=60.0)
"""After a decision that timed out: the next one probably does, too."""
