"""Nodes by their scores: nodes with equal scores are ranked together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from allot.scheduler.core.sorted_indexes import SortedIndexes


class Scores(NamedTuple):
    """The scores of a node for pods of one equivalence class."""

    fixed: int
    """The weighted sum of the scores that do not depend on other nodes."""
    raw: tuple[int, ...]
    """Scores that are normalized over all nodes, by scorer."""


class ScoreGroups:
    """The indexes of nodes, by scores. Few nodes change from one pod to the next, and many have equal scores."""

    def __init__(self) -> None:
        self._indexes: dict[Scores, SortedIndexes] = {}
        """None is empty."""
        self.nodes = 0
        """The number of nodes in all groups."""

    def add(self, index: int, scores: Scores) -> None:
        """Add a node that is in no group."""
        indexes = self._indexes.get(scores)
        if indexes is None:
            indexes = self._indexes[scores] = SortedIndexes()
        indexes.add(index)
        self.nodes += 1

    def remove(self, index: int, scores: Scores) -> None:
        """Remove a node from its group."""
        indexes = self._indexes[scores]
        indexes.discard(index)
        if not indexes:
            del self._indexes[scores]
        self.nodes -= 1

    def clear(self) -> None:
        self._indexes.clear()
        self.nodes = 0

    def scores(self) -> list[Scores]:
        """The scores that nodes have, each once."""
        return list(self._indexes)

    def first(self, scores: Iterable[Scores], start: int) -> int:
        """The first node with one of these scores from `start` on; indexes wrap around."""
        firsts = [self._indexes[each].first_from(start) for each in scores]
        return min(firsts, key=lambda index: (index < start, index))
