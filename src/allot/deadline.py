"""Deadlines for code that reads no clock: the caller knows the time, the core asks.

A deadline is asked every bounded number of steps: in searches, in loops of CEL expressions, between devices that are
prepared or explained. In virtual time and offline there is none, and step budgets alone limit what an answer may cost.
"""

from __future__ import annotations

from collections.abc import Callable

Deadline = Callable[[], None]
"""Returns while there is time left; raises `DeadlineExceededError` afterwards."""


class DeadlineExceededError(Exception):
    """The caller's time is over and there is no answer. What was remembered on the way stays valid."""


def no_deadline() -> None:
    """There is always time left."""
