"""The memory budget of representations of stored objects: decoded objects, encoded bodies, lines of watches.

They can be made again, so they are kept up to a total size; the oldest are evicted first. The budget keeps an owner
alive until its representations are evicted, so the size of the owner counts, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final, Protocol

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
        self._kept: deque[tuple[Owner, Hashable, int]] = deque()
        self._lock = Lock()

    def keep(self, owner: Owner, form: Hashable, size: int) -> None:
        """Count a representation that its owner keeps; evicts the oldest ones above the budget."""
        cost = size + OVERHEAD
        with self._lock:
            self._kept.append((owner, form, cost))
            self.bytes += cost
            while self.bytes > self.max_bytes:
                oldest, dropped, freed = self._kept.popleft()
                oldest.forget(dropped)
                self.bytes -= freed

    def discard(self, is_unwanted: Callable[[Owner], bool]) -> None:
        """Forget the representations of some owners, and the owners with them."""
        with self._lock:
            kept = deque[tuple[Owner, Hashable, int]]()
            for owner, form, cost in self._kept:
                if is_unwanted(owner):
                    owner.forget(form)
                    self.bytes -= cost
                else:
                    kept.append((owner, form, cost))
            self._kept = kept


REPRESENTATIONS: Final = RepresentationBudget()
"""The budget of all servers in this process."""
