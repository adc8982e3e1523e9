"""How long pods wait after failed attempts."""

from __future__ import annotations

from typing import Final

from allot.backoff import Backoff

POD_BACKOFF: Final = Backoff(initial_seconds=1.0, max_seconds=10.0)
"""The default: `podInitialBackoffSeconds` and `podMaxBackoffSeconds`."""
TIMEOUT_BACKOFF: Final = Backoff(initial_seconds=5.0, max_seconds=60.0)
"""After a decision that timed out: the next one probably does, too."""
