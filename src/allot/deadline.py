"""Deadlines for code that reads no clock: the core calls a function of its caller.

A deadline is checked after a bounded number of steps: in searches, in loops of CEL expressions, between devices that
are prepared or explained. In virtual time and offline no deadline is set: step budgets alone limit the work.
"""

from __future__ import annotations

from collections.abc import Callable

Deadline = Callable[[], None]
"""Returns while there is time left; raises `DeadlineExceededError` afterwards."""


class DeadlineExceededError(Exception):
    """The deadline has passed without a result. Caches filled on the way stay valid."""


def no_deadline() -> None:
    """No deadline."""
