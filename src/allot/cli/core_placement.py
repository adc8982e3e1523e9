"""The two processes of `allot up` on a core each, where there are two.

A process that gets a message is often woken on the core of the one that sent it, in its place, although the other core is
idle: then the API server goes on when the scheduler is done. With more cores the operating system finds an idle one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

PAIR: Final = 2


def _available() -> list[int]:
    if not hasattr(os, "sched_getaffinity"):  # not on all operating systems
        return []
    return sorted(os.sched_getaffinity(0))


CORES: Final = _available()
"""The cores that this process may use, as it was started."""


def use_one_core(number: int) -> None:
    """Of two cores, run this process and its threads on one: an even or an odd number names it.

    Processes that it forks may use both: hard decisions are made there, at low priority.
    """
    if len(CORES) != PAIR:
        return
    os.register_at_fork(after_in_child=use_all_cores)
    with suppress(OSError):  # this may not be done here
        os.sched_setaffinity(0, {CORES[number % PAIR]})


def use_all_cores() -> None:
    """As before `use_one_core`: for this process, or one that it starts."""
    if len(CORES) == PAIR:
        with suppress(OSError):
            os.sched_setaffinity(0, CORES)
