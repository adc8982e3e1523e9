"""When a request is retried, and after which backoff.

A request that was not processed (429, or connection refused) can always be retried. A request with an unknown outcome
(connection lost, or a server error) is retried only if it is idempotent.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from allot.backoff import Backoff
from allot.client.errors import ApiStatusError, ClientError, TransportError

LONGEST_WAIT_SECONDS: Final = 60.0
"""The limit of a server's Retry-After."""


class RetryPolicy(NamedTuple):
    """The number of attempts and the backoff between them."""

    max_attempts: int = 10
    backoff: Backoff = Backoff()
    chance: Callable[[], float] = random.random

    def wait_seconds(self, error: ClientError, attempt: int, *, may_repeat: bool) -> float | None:
        """How long to wait before the next attempt; None if the request is not retried."""
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
