"""The work meter: counts work and checks the caller's deadline.

Allocation reads no clock. It counts work in units of about a microsecond and checks the deadline every few hundred
units, so that the time between two checks is short, whatever the claims and devices are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from allot.deadline import Deadline, no_deadline

if TYPE_CHECKING:
    from allot.allocation.requests import Alternative

_UNITS_BETWEEN_CHECKS: Final = 512
"""About half a millisecond: long compared with a check, short compared with any deadline."""


class WorkMeter:
    """Checks a deadline every so many units of work; `DeadlineExceededError` once it has passed."""

    __slots__ = ("_left", "alternative", "deadline", "kept")

    def __init__(self, deadline: Deadline = no_deadline) -> None:
        self.deadline = deadline
        self.alternative: Alternative | None = None
        """The alternative in progress, to report when the deadline passes."""
        self.kept = 0
        """Devices prepared and expressions evaluated, whose results are kept for later runs."""
        self._left = _UNITS_BETWEEN_CHECKS

    def spend(self, units: int) -> None:
        """Count work that is done or about to be done."""
        self._left -= units
        if self._left < 0:
            self._left = _UNITS_BETWEEN_CHECKS
            self.deadline()
