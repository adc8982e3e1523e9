"""The progress of commands that take long, on the terminal's error output."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_QUIET_SECONDS: Final = 1.0
"""Commands that end sooner show no progress."""
_INTERVAL_SECONDS: Final = 0.2


@contextmanager
def progress_line(noun: str) -> Iterator[Callable[[int], None]]:
    """A function that shows a number in one line, which disappears at the end. Nothing without a terminal."""
    began = shown = time.monotonic()
    width = 0

    def show(number: int) -> None:
        nonlocal shown, width
        now = time.monotonic()
        if now - began < _QUIET_SECONDS or now - shown < _INTERVAL_SECONDS:
            return
        shown = now
        text = f"{number} {noun}, {now - began:.0f} s"
        width = max(width, len(text))
        sys.stderr.write(f"\r{text.ljust(width)}")
        sys.stderr.flush()

    if not sys.stderr.isatty():
        yield lambda _number: None
        return
    try:
        yield show
    finally:
        if width:
            sys.stderr.write("\r" + " " * width + "\r")
            sys.stderr.flush()
