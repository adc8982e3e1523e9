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


def place_apart(other: int) -> None:
    """This process, with threads that it starts, on one core and another process on the other, if there are two."""
    if len(CORES) != PAIR:
        return
    first = (
        os.getpid() % PAIR
    )  # not all clusters of a machine have their API servers on the same core
    with suppress(OSError):  # it has ended already, or this may not be done here
        os.sched_setaffinity(other, {CORES[1 - first]})
        os.sched_setaffinity(0, {CORES[first]})


def use_all_cores() -> None:
    """As before `place_apart`: for this process, or one that it starts."""
    if len(CORES) == PAIR:
        with suppress(OSError):
            os.sched_setaffinity(0, CORES)
