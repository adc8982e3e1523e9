"""Python's recursion limit while deep expressions are compiled and evaluated.

Parser, checker and evaluators are recursive. Expressions may nest deeper than
Python's recursion limit allows, but not without bound: the parser's limits keep the tree below a few
thousand levels. Python has one limit for all threads, so it is raised only while a deep expression is processed, and
restored when the last thread is done.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

CALLS_PER_LEVEL: Final = 12
"""The maximum of Python calls that a stage needs per level of nesting."""

SHALLOW_LEVELS: Final = 40
"""Levels that fit into Python's recursion limit together with the caller's own stack."""

CALLER_CALLS: Final = 1_000
"""Calls that are left to the caller: Python's default limit."""

_SHALLOW: Final = nullcontext()


def recursion_room(levels: int) -> AbstractContextManager[None]:
    """A context in which `levels` of an expression can be processed recursively."""
    return _limit.raised_for(levels) if levels > SHALLOW_LEVELS else _SHALLOW


class _RecursionLimit:
    """Shared by all threads: the first user saves the limit, the last one restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._saved = 0
        self._raised = 0

    @contextmanager
    def raised_for(self, levels: int) -> Iterator[None]:
        self._enter(CALLER_CALLS + levels * CALLS_PER_LEVEL)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, wanted: int) -> None:
        with self._lock:
            current = sys.getrecursionlimit()
            if not self._users:
                self._saved = self._raised = current
            self._users += 1
            if wanted > current:
                sys.setrecursionlimit(wanted)
                self._raised = wanted

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            # A limit that the program has set meanwhile is left alone.
            if not self._users and sys.getrecursionlimit() == self._raised:
                sys.setrecursionlimit(self._saved)


_limit: Final = _RecursionLimit()
