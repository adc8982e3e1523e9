"""How much an explanation may cost: nodes, proposals and time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from allot.deadline import Deadline, DeadlineExceededError

IsOver = Callable[[], bool]
"""Whether the time is over."""


def untimed() -> IsOver:
    """A stopwatch without a limit."""
    return lambda: False


def within(seconds: float, clock: Callable[[], float]) -> Callable[[], IsOver]:
    """A stopwatch with a time limit; each call starts it anew."""

    def start() -> IsOver:
        deadline = clock() + seconds
        return lambda: clock() > deadline

    return start


def deadline_of(is_over: IsOver) -> Deadline:
    """A deadline that raises `DeadlineExceededError` when the time is over."""

    def ask() -> None:
        if is_over():
            raise DeadlineExceededError

    return ask


class Effort(NamedTuple):
    """How much an explanation may cost."""

    nodes: int = 100
    """How many nodes are explained in detail."""
    proposal_nodes: int = 2
    """For how many groups of equal nodes, nearest first, proposals are searched."""
    stopwatch: Callable[[], IsOver] = untimed
    """Limits the time for details, and again the time for proposals."""
    decision_seconds: float = 0.0
    """Limits the time of the decision itself; 0: only the step budget limits it."""
