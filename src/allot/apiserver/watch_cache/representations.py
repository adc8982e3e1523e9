"""What was made from stored objects and may be asked for again: decoded objects, bodies, lines of watches.

All of it can be made anew, so it is kept up to a number of bytes in all, the oldest going first. An owner that is
gone from everywhere else stays here until its forms have gone, which is why its own size counts, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from threading import Lock
from typing import Final, Protocol

MAX_BYTES: Final = 64 << 20
DECODED_FACTOR: Final = 8
"""How much larger than its JSON a decoded object is, about."""
OVERHEAD: Final = 512
"""What a form costs beside its bytes, about."""


class Owner(Protocol):
    def forget(self, form: Hashable) -> None:
        """Drop a form, if it is still there."""


class Forms:
    """The forms that are kept, in the order they were made. May be used from any thread."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._kept: deque[tuple[Owner, Hashable, int]] = deque()
        self._lock = Lock()

    def keep(self, owner: Owner, form: Hashable, size: int) -> None:
        """Count a form that its owner keeps; drops the oldest ones if there are too many."""
        cost = size + OVERHEAD
        with self._lock:
            self._kept.append((owner, form, cost))
            self.bytes += cost
            while self.bytes > self.max_bytes:
                oldest, dropped, freed = self._kept.popleft()
                oldest.forget(dropped)
                self.bytes -= freed


FORMS: Final = Forms()
"""Those of all servers in this process."""
