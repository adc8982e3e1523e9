"""The work meter: how much has been done since the deadline was asked last, and for which request.

Allocation reads no clock. It counts what it does in units of about a microsecond and asks its caller's deadline every
few hundred of them, so that no stretch between two questions is long, whatever the claims and the devices are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from allot.deadline import Deadline, no_deadline

if TYPE_CHECKING:
    from allot.allocation.requests import Alternative

UNITS_BETWEEN_ASKS: Final = 512
"""Half a millisecond or so: long beside what a question costs, short beside any deadline."""


class WorkMeter:
    """Asks a deadline every so many units of work; `DeadlineExceededError` once time is over."""

    __slots__ = ("_left", "alternative", "deadline")

    def __init__(self, deadline: Deadline = no_deadline) -> None:
        self.deadline = deadline
        self.alternative: Alternative | None = None
        """What is being worked on, for the report if time runs out."""
        self._left = UNITS_BETWEEN_ASKS

    def spend(self, units: int) -> None:
        """Count work that is done or about to be done."""
        self._left -= units
        if self._left < 0:
            self._left = UNITS_BETWEEN_ASKS
            self.deadline()
