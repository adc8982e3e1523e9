"""How long a pod, or what took too long for it, is left alone after a failure."""

from __future__ import annotations

from typing import Final, NamedTuple


class Backoff(NamedTuple):
    """How long a pod waits after a failure: doubled each time, up to a limit. No limit, no waiting."""

    initial_seconds: float = 1.0
    max_seconds: float = 10.0

    def after(self, failures: int) -> float:
        if failures <= 0 or self.max_seconds <= 0:
            return 0.0
        return float(min(self.initial_seconds * 2 ** min(failures - 1, 30), self.max_seconds))


TIMEOUT_BACKOFF: Final = Backoff(initial_seconds=5.0, max_seconds=60.0)
"""After a decision that ran into its time limit: the next one will probably do so as well."""
