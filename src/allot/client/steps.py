"""Computations in steps, which can be interrupted between them (`cooperative`) or finished at once."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""A computation that yields wherever it can be interrupted, and returns its result."""


def finish(steps: Steps[T]) -> T:
    """The result, computed without yielding."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
