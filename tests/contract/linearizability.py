"""Whether what concurrent clients saw of one register can be put into one order.

A history is linearizable if every operation can be given a moment between its call and its return, so that
one register doing them one after the other at these moments would answer the same. Registers are checked each
on its own: a store is linearizable if each of its keys is. The search is Wing and Gong's, and remembers which
sets of operations have led to which value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class Outcome(Enum):
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Read(NamedTuple):
    """Showed `value`; None if there was none."""

    value: str | None


class Swap(NamedTuple):
    """Replaces `expected` by `value`. None stands for no value, on both sides."""

    expected: str | None
    value: str | None
    outcome: Outcome = Outcome.DONE


class Event(NamedTuple):
    """An operation of one client, between two moments. What was never answered has no end."""

    action: Read | Swap
    called: float
    returned: float = math.inf


def is_linearizable(history: Sequence[Event], start: str | None = None) -> bool:
    events = sorted(history, key=lambda event: event.called)
    everything = (1 << len(events)) - 1
    # Operations that may have happened, or never: they need not be placed.
    optional = sum(
        1 << index
        for index, event in enumerate(events)
        if isinstance(event.action, Swap) and event.action.outcome is Outcome.UNKNOWN
    )
    seen = {(0, start)}
    stack = [(0, start)]
    while stack:
        placed, value = stack.pop()
        if placed | optional == everything:
            return True
        for index in _possible_next(events, placed):
            action = events[index].action
            if _fits(action, value):
                after = _value_after(action, value)
                state = placed | 1 << index, after
                if state not in seen:
                    seen.add(state)
                    stack.append(state)
    return False


def _possible_next(events: Sequence[Event], placed: int) -> list[int]:
    """Those not placed that were called before any of them had returned."""
    found: list[int] = []
    first_return = math.inf
    for index, event in enumerate(events):
        if not placed >> index & 1:
            if event.called > first_return:
                break
            found.append(index)
            first_return = min(first_return, event.returned)
    return found


def _fits(action: Read | Swap, value: str | None) -> bool:
    match action:
        case Read(shown):
            return shown == value
        case Swap(expected, _, Outcome.REFUSED):
            return expected != value
        case Swap(expected):
            return expected == value


def _value_after(action: Read | Swap, value: str | None) -> str | None:
    if isinstance(action, Swap) and action.outcome is not Outcome.REFUSED:
        return action.value
    return value
