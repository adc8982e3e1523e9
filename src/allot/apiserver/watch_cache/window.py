"""How many recent changes caches keep for watchers: so many of each resource, and so many bytes of all together.

The largest window gives up its oldest changes first, so that a resource with many or large changes does not
shorten the windows of the others. A watcher that needs what is gone reads it from the store.
"""

from __future__ import annotations

from typing import Final, Protocol

WINDOW: Final = 10_000
"""How many changes of a resource are kept, or a few more ..."""
WINDOW_BYTES: Final = 64 << 20
"""... unless the objects in the changes of all resources have more bytes than this ..."""
ALL_CHANGES: Final = 50_000
"""... or there are more changes in all."""
SHRINK_BY: Final = 16
"""The part of the budget that is freed at a time, so that it is not exceeded again at once."""


class Window(Protocol):
    """The recent changes of one resource."""

    window_bytes: int

    @property
    def window_length(self) -> int: ...

    def shrink_window(self, max_bytes: int, max_changes: int) -> None: ...


class WindowBudget:
    """What the windows of one server may hold together."""

    def __init__(self, max_bytes: int = WINDOW_BYTES, max_changes: int = ALL_CHANGES) -> None:
        self._max_bytes = max_bytes
        self._max_changes = max_changes
        self._windows: list[Window] = []
        self._bytes_at_most = 0
        self._changes_at_most = 0
        """What all windows hold, or less: they shrink by themselves, too. Counted when it matters."""

    def add(self, window: Window) -> None:
        self._windows.append(window)

    def remove(self, window: Window) -> None:
        if window in self._windows:
            self._windows.remove(window)

    def grow(self, size: int, changes: int) -> None:
        """One window got so many changes and bytes more; shrink the largest until all of them fit."""
        self._bytes_at_most += size
        self._changes_at_most += changes
        if self._bytes_at_most > self._max_bytes or self._changes_at_most > self._max_changes:
            self._settle()
            self._bytes_at_most = sum(map(_bytes, self._windows))
            self._changes_at_most = sum(map(_length, self._windows))

    def _settle(self) -> None:
        while (excess := sum(map(_bytes, self._windows)) - self._max_bytes) > 0:
            largest = max(self._windows, key=_bytes)
            less = max(excess, self._max_bytes // SHRINK_BY)
            largest.shrink_window(max(_bytes(largest) - less, 0), _length(largest))
        while (excess := sum(map(_length, self._windows)) - self._max_changes) > 0:
            longest = max(self._windows, key=_length)
            less = max(excess, self._max_changes // SHRINK_BY)
            longest.shrink_window(_bytes(longest), max(_length(longest) - less, 0))


def _bytes(window: Window) -> int:
    return window.window_bytes


def _length(window: Window) -> int:
    return window.window_length
