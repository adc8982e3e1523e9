"""Python's recursion limit while deep expressions are compiled and evaluated.

Parser, checker, planner and evaluators are recursive, as the grammar is. Kubernetes accepts expressions of 250 levels
(`token_reader.MAX_DEPTH`); each level takes several Python calls, so the deepest ones exceed Python's recursion limit.
How deep an expression is is known before it is processed, so the limit is raised by what this expression needs, and by
no more. Python has one limit for all threads: it is raised only while deep expressions are processed, and restored by
the last thread. The decision is in docs/decisions/0002-own-cel.md.
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
        self._enter(levels * CALLS_PER_LEVEL)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, calls: int) -> None:
        with self._lock:
            current = sys.getrecursionlimit()
            if not self._users:
                self._saved = self._raised = current
            self._users += 1
            # The limit as found is left to the callers.
            if self._saved + calls > current:
                self._raised = self._saved + calls
                sys.setrecursionlimit(self._raised)

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            # A limit that the program has set meanwhile is left alone.
            if not self._users and sys.getrecursionlimit() == self._raised:
                sys.setrecursionlimit(self._saved)


_limit: Final = _RecursionLimit()
