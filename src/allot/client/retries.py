"""When a request is repeated, and after how long.

A request that was refused before it was worked on (429, or nobody to send it to) can always be sent
again. One whose answer is unknown (the connection broke, or the server had a fault of its own) is sent
again only if doing it twice is as good as once.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from allot.client.errors import ApiStatusError, ClientError, TransportError

LONGEST_WAIT_SECONDS: Final = 60.0
"""No server is waited for longer, whatever it asks for."""


class Backoff(NamedTuple):
    """Waits that double up to a limit, and differ a little so that not all come back at once."""

    first_seconds: float = 0.05
    most_seconds: float = 5.0
    factor: float = 2.0
    jitter: float = 0.5

    def seconds(self, failures: int, chance: float) -> float:
        """The wait after so many failures; `chance` is between 0 and 1."""
        exponent = min(max(failures - 1, 0), 64)
        wait = min(self.first_seconds * self.factor**exponent, self.most_seconds)
        return wait * (1 - self.jitter * chance)


class RetryPolicy(NamedTuple):
    """How persistent a client is."""

    max_attempts: int = 10
    backoff: Backoff = Backoff()
    chance: Callable[[], float] = random.random

    def wait_seconds(self, error: ClientError, attempt: int, *, may_repeat: bool) -> float | None:
        """How long to wait before the next attempt; None if there is none to be made."""
        if attempt >= self.max_attempts or not is_worth_repeating(error, may_repeat=may_repeat):
            return None
        if isinstance(error, ApiStatusError) and error.retry_after_seconds is not None:
            return min(error.retry_after_seconds, LONGEST_WAIT_SECONDS)
        return self.backoff.seconds(attempt, self.chance())


PERSISTENT: Final = RetryPolicy()
NEVER: Final = RetryPolicy(max_attempts=1)


def is_worth_repeating(error: ClientError, *, may_repeat: bool) -> bool:
    match error:
        case TransportError():
            return may_repeat or not error.was_sent
        case ApiStatusError(code=429):
            return not error.is_disrupting
        case ApiStatusError():
            return may_repeat and error.is_server_error and not error.is_version_too_large
    return False
