"""Token bucket rate limiters: a burst, and a rate per second."""

from __future__ import annotations

import math
from typing import Final


class TokenBucket:
    """A token bucket; callers pass the time. With a rate of 0 it is never refilled."""

    def __init__(self, per_second: float, burst: int, now: float) -> None:
        self._per_second = per_second
        self._burst = self._tokens = float(burst)
        self._counted_at = now

    def take(self, now: float, tokens: float = 1) -> bool:
        """Take tokens; whether they were available. A request for more than the burst needs a full bucket."""
        self._refill(now)
        if self._tokens < min(tokens, self._burst):
            return False
        self._tokens -= tokens
        return True

    def take_up_to(self, now: float, tokens: int) -> int:
        """Take up to `tokens`; how many were taken."""
        self._refill(now)
        taken = max(min(tokens, int(self._tokens)), 0)
        self._tokens -= taken
        return taken

    def seconds_to_next(self, now: float, tokens: float = 1) -> float:
        """Seconds until `take` succeeds; infinite if never."""
        self._refill(now)
        missing = min(tokens, self._burst) - self._tokens
        if missing <= 0:
            return 0.0
        return missing / self._per_second if self._per_second > 0 else math.inf

    def reserve(self, now: float) -> float:
        """Reserve a token; seconds to wait until it is available."""
        self._refill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._per_second)

    def _refill(self, now: float) -> None:
        gained = (now - self._counted_at) * self._per_second
        self._tokens = min(self._burst, self._tokens + gained)
        self._counted_at = now


class RequestLimit:
    """The rate limit of a client's requests. A rate of 0 is no limit."""

    def __init__(self, per_second: float = 0.0, burst: int = 0) -> None:
        self._per_second = per_second
        self._burst = max(burst, 1)
        self._bucket: TokenBucket | None = None
        self.is_off = per_second <= 0

    def reserve(self, now: float) -> float:
        """How many seconds to wait before the next request."""
        if self._bucket is None:
            self._bucket = TokenBucket(self._per_second, self._burst, now)
        return self._bucket.reserve(now)


UNLIMITED: Final = RequestLimit()
