"""Sets of completion indexes, written as `0,2-4,7`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allot.api.core import Pod
from allot.controllers.workloads.reading import annotations_of

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

Indexes = frozenset[int]


def read_indexes(text: str | None, below: int | None = None) -> Indexes:
    """The indexes in a text, those below a limit. What is no range is left out."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            continue
        end = int(last or first) + 1
        found.update(range(int(first), end if below is None else min(end, below)))
    return frozenset(index for index in found if below is None or index < below)


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
    """The index that a pod works on, if it says one."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None
