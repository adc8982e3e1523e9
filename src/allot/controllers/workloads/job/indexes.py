"""Sets of completion indexes, written as `0,2-4,7`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from allot.api.core import Pod
from allot.controllers.workloads.accessors import annotations_of

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

MAX_INDEXES: Final = 1_000_000
"""Beyond the limit of indexed jobs; a status with more was not written by this controller."""

Indexes = frozenset[int]


class IndexRanges:
    """The indexes in a string, below a limit. Stored as ranges: a string may name billions of indexes."""

    def __init__(self, text: str | None, below: int | None = None) -> None:
        """Invalid ranges are ignored."""
        found: list[tuple[int, int]] = []
        for part in (text or "").split(","):
            first, _, last = part.strip().partition("-")
            if not first.isdecimal() or (last and not last.isdecimal()):
                continue
            end = int(last or first) + 1
            end = end if below is None else min(end, below)
            if int(first) < end:
                found.append((int(first), end))
        self._starts: list[int] = []
        self._ends: list[int] = []
        for first_, end in sorted(found):
            if self._ends and first_ <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(first_)
                self._ends.append(end)

    @property
    def count(self) -> int:
        return sum(self._ends) - sum(self._starts)

    def __contains__(self, index: int) -> bool:
        at = bisect_right(self._starts, index) - 1
        return at >= 0 and index < self._ends[at]

    def __iter__(self) -> Iterator[int]:
        for start, end in zip(self._starts, self._ends, strict=True):
            yield from range(start, end)


def read_indexes(text: str | None, below: int | None = None) -> Indexes:
    """The indexes in a string, below a limit, at most a million. Invalid ranges are ignored."""
    return frozenset(islice(IndexRanges(text, below), MAX_INDEXES))


def written_indexes(indexes: Iterable[int]) -> str:
    return ",".join(
        str(first)
        if first == last
        else f"{first},{last}"
        if last == first + 1
        else f"{first}-{last}"
        for first, last in _ranges(sorted(indexes))
    )


def _ranges(ordered: list[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for index in ordered:
        if first is None or last is None:
            first = last = index
        elif index == last + 1:
            last = index
        else:
            yield first, last
            first = last = index
    if first is not None and last is not None:
        yield first, last


def index_of(pod: Pod) -> int | None:
    """The completion index of a pod, if it has one."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None
