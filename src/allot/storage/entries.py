"""The current entries of a store, sorted by key; with later changes undone, those of a past revision."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Mapping
from heapq import merge
from itertools import islice
from types import MappingProxyType
from typing import Final, TypeAlias

from allot.storage.interface import Change, Entry, Page
from allot.storage.transactions import end_of_prefix

Past: TypeAlias = Mapping[str, Entry | None]
"""The entries at a past revision of keys that have changed since; None if they did not exist."""

UNCHANGED: Final[Past] = MappingProxyType({})
MAX_INSERTED: Final = 64
"""So many new keys are put in their places one by one."""


class Entries:
    """A sorted map of entries."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._by_key = {entry.key: entry for entry in entries}
        self._sorted_keys = sorted(self._by_key)
        self._new_keys: dict[str, None] = {}
        """Those that are not among the sorted ones yet: many are written between two reads of a range."""
        self.get: Callable[[str], Entry | None] = self._by_key.get
        """The entry of a key, if there is one."""

    def __len__(self) -> int:
        return len(self._by_key)

    def apply(self, changes: Iterable[Change]) -> None:
        by_key, new_keys = self._by_key, self._new_keys
        for change in changes:
            key, entry = change.key, change.entry
            if entry is not None:
                if key not in by_key:
                    new_keys[key] = None
                by_key[key] = entry
            else:
                del by_key[key]
                if key in new_keys:
                    del new_keys[key]
                else:
                    del self._sorted_keys[bisect_left(self._sorted_keys, key)]

    def _keys(self) -> list[str]:
        """All keys in order."""
        keys, new_keys = self._sorted_keys, self._new_keys
        if len(new_keys) <= MAX_INSERTED:
            for key in new_keys:
                insort(keys, key)
        else:
            keys += sorted(new_keys)
            keys.sort()  # a merge of two sorted parts
        new_keys.clear()
        return keys

    def page(
        self, prefix: str, after: str, limit: int, revision: int, past: Past = UNCHANGED
    ) -> Page:
        """Entries under `prefix` after the key `after`, as of `revision`: current, or overlaid by `past`."""
        keys = self._keys()
        end = end_of_prefix(prefix)
        low = bisect_right(keys, after) if after >= prefix else bisect_left(keys, prefix)
        high = len(keys) if end is None else bisect_left(keys, end, low)
        if not past:
            last = min(high, low + limit) if limit else high
            by_key = self._by_key
            entries = [by_key[key] for key in keys[low:last]]
            return Page(entries, revision, high - last)

        total, gone = high - low, []
        for key, entry in past.items():
            if key > after and key.startswith(prefix):
                if entry is None:
                    total -= key in self._by_key
                elif key not in self._by_key:
                    gone.append(key)
        total += len(gone)
        then = (
            past[key] if key in past else self._by_key[key]
            for key in merge(islice(keys, low, high), sorted(gone))
        )
        entries = list(islice((entry for entry in then if entry is not None), limit or None))
        return Page(entries, revision, total - len(entries))
