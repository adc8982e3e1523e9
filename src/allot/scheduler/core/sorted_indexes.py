"""A set of indexes of nodes, which can be asked for those of a stretch of nodes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class SortedIndexes:
    """Indexes in ascending order. Searches begin anywhere and wrap around, so stretches do, too.

    Asking costs what is found. A set would have to be iterated, with the table that it had when it was largest.
    """

    __slots__ = ("_indexes",)

    def __init__(self) -> None:
        self._indexes: list[int] = []

    def __len__(self) -> int:
        return len(self._indexes)

    def __contains__(self, index: int) -> bool:
        place = bisect_left(self._indexes, index)
        return place < len(self._indexes) and self._indexes[place] == index

    def add(self, index: int) -> None:
        place = bisect_left(self._indexes, index)
        if place == len(self._indexes) or self._indexes[place] != index:
            self._indexes.insert(place, index)

    def discard(self, index: int) -> None:
        place = bisect_left(self._indexes, index)
        if place < len(self._indexes) and self._indexes[place] == index:
            del self._indexes[place]

    def clear(self) -> None:
        self._indexes.clear()

    def first_from(self, start: int) -> int:
        """The first index from `start` on, or else the lowest one. Not for an empty set."""
        place = bisect_left(self._indexes, start)
        return self._indexes[place] if place < len(self._indexes) else self._indexes[0]

    def all_from(self, start: int) -> list[int]:
        """All indexes, beginning with the first one from `start` on."""
        place = bisect_left(self._indexes, start)
        return self._indexes[place:] + self._indexes[:place]

    def between(self, first: int, last: int) -> list[int]:
        """Those from `first` to `last`, both included, in the order of a search that begins with `first`."""
        begin, end = bisect_left(self._indexes, first), bisect_right(self._indexes, last)
        if first <= last:
            return self._indexes[begin:end]
        return self._indexes[begin:] + self._indexes[:end]
