"""The memory budget of representations of stored objects: decoded objects, encoded bodies, lines of watches.

They can be made again, so they are kept up to a total size; the oldest are evicted first. The budget keeps an owner
alive until its representations are evicted, so the size of the owner counts, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final, Protocol

MAX_BYTES: Final = 64 << 20
DECODED_FACTOR: Final = 8
"""Estimated size of a decoded object, as a multiple of its JSON."""
OVERHEAD: Final = 512
"""Estimated bytes of a representation beside its content."""


class Owner(Protocol):
    @property
    def codec(self) -> object:
        """How it is read and written."""

    def forget(self, form: Hashable) -> None:
        """Drop a representation, if it is kept."""


class RepresentationBudget:
    """The representations that are kept, in the order they were made. Thread-safe."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._kept: deque[Any] = deque()
        """Owner, form and cost of each, one after the other: tuples would be looked at by every garbage collection."""
        self._lock = Lock()

    def keep(self, owner: Owner, form: Hashable, size: int) -> None:
        """Count a representation that its owner keeps; evicts the oldest ones above the budget."""
        cost = size + OVERHEAD
        with self._lock:
            self._kept += (owner, form, cost)
            self.bytes += cost
            if self.bytes > self.max_bytes:
                self._evict()

    def _evict(self) -> None:
        take = self._kept.popleft
        while self.bytes > self.max_bytes:
            oldest, form, freed = take(), take(), take()
            oldest.forget(form)
            self.bytes -= freed

    def discard(self, is_unwanted: Callable[[Owner], bool]) -> None:
        """Forget the representations of some owners, and the owners with them."""
        with self._lock:
            kept, left = iter(self._kept), deque[Any]()
            for owner, form, cost in zip(kept, kept, kept, strict=True):
                if is_unwanted(owner):
                    owner.forget(form)
                    self.bytes -= cost
                else:
                    left += (owner, form, cost)
            self._kept = left


REPRESENTATIONS: Final = RepresentationBudget()
"""The budget of all servers in this process."""
