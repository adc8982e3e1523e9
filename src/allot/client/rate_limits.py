"""A bucket of tokens: so many at once, so many per second in the long run."""

from __future__ import annotations

import math


class TokenBucket:
    """Counts by the time it is told. With a rate of 0 nothing ever flows back."""

    def __init__(self, per_second: float, burst: int, now: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = float(burst)
        self._counted_at = now

    def take(self, now: float, tokens: float = 1) -> bool:
        """Whether there were as many left. More than the burst are there when the bucket is full."""
        self._refill(now)
        if self._tokens < min(tokens, self._burst):
            return False
        self._tokens -= tokens
        return True

    def take_up_to(self, now: float, tokens: int) -> int:
        """Take so many, or as many as there are; how many that is."""
        self._refill(now)
        taken = max(min(tokens, int(self._tokens)), 0)
        self._tokens -= taken
        return taken

    def seconds_to_next(self, now: float, tokens: float = 1) -> float:
        """How long until `take` gets as many; infinite if never."""
        self._refill(now)
        missing = min(tokens, self._burst) - self._tokens
        if missing <= 0:
            return 0.0
        return missing / self._per_second if self._per_second > 0 else math.inf

    def reserve(self, now: float) -> float:
        """Take a token in any case, and tell how many seconds to wait for it to be there."""
        self._refill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._per_second)

    def _refill(self, now: float) -> None:
        gained = (now - self._counted_at) * self._per_second
        self._tokens = min(float(self._burst), self._tokens + gained)
        self._counted_at = now


class RequestLimit:
    """What a client may ask per second. A rate of 0 is no limit."""

    def __init__(self, per_second: float = 0.0, burst: int = 0) -> None:
        self._per_second = per_second
        self._burst = max(burst, 1)
        self._bucket: TokenBucket | None = None

    @property
    def is_off(self) -> bool:
        return self._per_second <= 0

    def reserve(self, now: float) -> float:
        """How many seconds to wait before the next request."""
        if self._bucket is None:
            self._bucket = TokenBucket(self._per_second, self._burst, now)
        return self._bucket.reserve(now)
