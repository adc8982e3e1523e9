"""A cache of the entries used last, bounded in number and, if entries differ in size, in weight."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """Evicts the least recently used entries. Safe to share between threads.

    `weigh` gives the weight of a value, `max_weight` limits their sum. A value that is heavier than
    that alone is not kept.
    """

    def __init__(
        self,
        max_entries: int,
        max_weight: int = 0,
        weigh: Callable[[V], int] | None = None,
    ) -> None:
        self._max_entries = max_entries
        self._max_weight = max_weight
        self._weigh = weigh
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        """The value, which counts as used now; None if it is not in the cache."""
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._put(key, value)

    def pop(self, key: K) -> None:
        """Remove an entry, if it is in the cache."""
        with self._lock:
            self._remove(key)

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """The value in the cache, or the one that `make` returns.

        Threads that ask at the same time may all make it; all get the first one made.
        """
        value = self.get(key)
        if value is not None:
            return value
        made = make()
        with self._lock:
            value = self._entries.get(key)
            if value is None:
                self._put(key, made)
            return made if value is None else value

    def _put(self, key: K, value: V) -> None:
        if self._weigh is None:
            self._entries[key] = value
            self._entries.move_to_end(key)
            if len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
            return
        self._remove(key)
        self._entries[key] = value
        self._weight += self._weigh(value)
        while len(self._entries) > self._max_entries or self._weight > self._max_weight:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: K) -> None:
        value = self._entries.pop(key, None)
        if value is not None and self._weigh is not None:
            self._weight -= self._weigh(value)
