"""The equivalence cache: results of filters and scores for pods of one equivalence class, by node.

Plugins cannot tell pods of a class apart. Nodes are kept in the order in which they are tried, by index. A node that
changes loses its result and is evaluated again when a search reaches it; every other node costs one byte comparison.
The cost of a search is proportional to the changes since the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, compress, islice
from typing import Final, TypeVar

from allot.scheduler.core.lazy_sequence import LazySequence
from allot.scheduler.core.score_groups import ScoreGroups, Scores
from allot.scheduler.core.sorted_indexes import SortedIndexes
from allot.scheduler.framework.node_statuses import NodeStatuses
from allot.scheduler.framework.status import SUCCESS, Code, Status
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo

T = TypeVar("T")

NOT_FITTING: Final = 0
MAY_FIT: Final = 1
"""It fits, or has not been evaluated yet."""


class NodeResult:
    """The cached results of one node at one generation."""

    __slots__ = ("generation", "scores", "status")

    def __init__(self, generation: int, status: Status) -> None:
        self.generation = generation
        self.status = status
        self.scores: Scores | None = None
        """None until the node is scored."""


EvaluateNode = Callable[[NodeInfo], NodeResult]


class EquivalenceClassCache:
    """Results by index of the node."""

    def __init__(self) -> None:
        self.nodes: Sequence[NodeInfo] = ()
        self._membership = -1
        self._generation = 0
        self._results: list[NodeResult | None] = []
        self._fits = bytearray()
        self._may_fit = 0
        """How many nodes fit or have not been evaluated yet."""
        self._unknown = SortedIndexes()
        """Nodes without a result."""
        self._unscored = SortedIndexes()
        """Nodes without scores that may fit; with those without a result."""
        self._fixed_scores: list[int] = []
        self._raw_scores: list[list[int]] = []
        """By scorer, then by index."""
        self.groups = ScoreGroups()
        """All nodes that have scores."""
        self.scored_by: frozenset[str] = frozenset()
        """The plugins whose raw scores are cached; the others count as 0."""
        self._index_by_name: dict[str, int] = {}
        self._node_statuses: NodeStatuses | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def sync(self, cluster: ClusterState) -> None:
        """Drop the results of nodes that changed since the last call."""
        if self._membership != cluster.membership:
            self._rebuild(cluster)
        else:
            for node in cluster.nodes_changed_since(self._generation):
                index = self._index_by_name[node.name]
                result = self._results[index]
                if result is not None and result.scores is not None:
                    self.groups.remove(index, result.scores)
                self._results[index] = None
                self._set_fits(index, MAY_FIT)
                self._unknown.add(index)
                self._unscored.add(index)
                self._node_statuses = None
        self._generation = cluster.generation

    def _rebuild(self, cluster: ClusterState) -> None:
        known = {node.name: result for node, result in zip(self.nodes, self._results, strict=True)}
        self._membership = cluster.membership
        self._node_statuses = None
        self.nodes = nodes = cluster.nodes
        self._index_by_name = {node.name: index for index, node in enumerate(nodes)}
        self._results = []
        self._fits = bytearray()
        self._fixed_scores = []
        self._raw_scores = []
        self.groups.clear()
        self._unknown.clear()
        self._unscored.clear()
        for index, node in enumerate(nodes):
            result = known.get(node.name)
            if result is not None and result.generation != node.generation:
                result = None
            if result is None:
                self._unknown.add(index)
            scores = None if result is None else result.scores
            if scores is None and _fits_byte(result):
                self._unscored.add(index)
            self._results.append(result)
            self._fixed_scores.append(0 if scores is None else scores.fixed)
            self._fits.append(_fits_byte(result))
            if scores is not None:
                self._put_raw_scores(index, scores.raw)
                self.groups.add(index, scores)
        self._may_fit = sum(self._fits)

    def indexes_from(self, start: int) -> Iterable[int]:
        """All indexes, beginning with `start` and wrapping around."""
        return chain(range(start, len(self.nodes)), range(start))

    def index_of(self, name: str) -> int | None:
        return self._index_by_name.get(name)

    def at(self, index: int, evaluate: EvaluateNode) -> NodeResult:
        """The result of a node: the cached one, or a new one."""
        known = self._results[index]
        if known is not None:
            return known
        result = evaluate(self.nodes[index])
        if result.status.code is not Code.ERROR:
            self._results[index] = result
            self._set_fits(index, _fits_byte(result))
            self._unknown.discard(index)
            if not self._fits[index]:
                self._unscored.discard(index)
            self._node_statuses = None
        return result

    def _set_fits(self, index: int, fits: int) -> None:
        self._may_fit += fits - self._fits[index]
        self._fits[index] = fits

    def unscored(self, indexes: Sequence[int], start: int) -> list[int]:
        """Those of these nodes that have no scores, in the same order: from `start` on, wrapping around."""
        if len(indexes) == self._may_fit:
            return self._unscored.all_from(start)
        some = self._unscored.between(indexes[0], indexes[-1])
        wanted = set(indexes) if len(some) > 1 and not isinstance(indexes, range) else indexes
        return [index for index in some if index in wanted]

    def keep_scores_of(self, plugins: frozenset[str]) -> None:
        """From now on cache the raw scores of these plugins, too. Nodes without them have to be scored again."""
        if plugins <= self.scored_by:
            return
        self.scored_by |= plugins
        self.groups.clear()
        for index, result in enumerate(self._results):
            if result is not None and result.scores is not None:
                result.scores = None
                if self._fits[index]:
                    self._unscored.add(index)

    def put_scores(self, index: int, fixed: int, raw: tuple[int, ...]) -> None:
        """The scores of a node that has a result."""
        result = self._results[index]
        assert result is not None, "the node has no result"
        if result.scores is not None:
            self.groups.remove(index, result.scores)
        result.scores = Scores(fixed, raw)
        self._fixed_scores[index] = fixed
        self._put_raw_scores(index, raw)
        self.groups.add(index, result.scores)
        self._unscored.discard(index)

    def _put_raw_scores(self, index: int, raw: Sequence[int]) -> None:
        while len(self._raw_scores) < len(raw):
            self._raw_scores.append([0] * len(self.nodes))
        for scores, score in zip(self._raw_scores, raw, strict=False):
            scores[index] = score

    def nodes_at(self, indexes: Sequence[int]) -> list[NodeInfo]:
        """The nodes that `find` has found."""
        return _selected(self.nodes, indexes)

    def fixed_scores(self, indexes: Sequence[int]) -> list[int]:
        """The sums of the fixed scores of these nodes, which all have scores."""
        return _selected(self._fixed_scores, indexes)

    def raw_scores(self, indexes: Sequence[int], scorer: int) -> list[int]:
        """The raw scores that one plugin gave these nodes, which all have scores."""
        return _selected(self._raw_scores[scorer], indexes)

    def find(self, start: int, wanted: int, evaluate: EvaluateNode) -> Sequence[int] | Status:
        """The first `wanted` indexes from `start` on whose nodes fit; or the first error.

        Nodes behind them are not evaluated.
        """
        if wanted >= len(self.nodes):
            return self._find_all(start, evaluate)
        while True:
            found = self._first_that_may_fit(start, wanted)
            # Every node without a result may fit, so all those in between are found.
            unknown = self._unknown.between(found[0], found[-1]) if found else ()
            all_fit = True
            for index in unknown:
                status = self.at(index, evaluate).status
                if status.code is Code.ERROR:
                    return status
                all_fit &= status is SUCCESS
            if all_fit:
                return found

    def _find_all(self, start: int, evaluate: EvaluateNode) -> Sequence[int] | Status:
        for index in self._unknown.all_from(start):
            status = self.at(index, evaluate).status
            if status.code is Code.ERROR:
                return status
        return LazySequence(self._may_fit, lambda: self._first_that_may_fit(start, len(self.nodes)))

    def _first_that_may_fit(self, start: int, wanted: int) -> Sequence[int]:
        end = start + wanted
        if end <= len(self.nodes) and self._fits.find(NOT_FITTING, start, end) < 0:
            return range(start, end)
        fits = self._fits[start:] + self._fits[:start]
        return list(islice(compress(self.indexes_from(start), fits), wanted))

    def node_statuses(self) -> NodeStatuses:
        """The statuses of nodes that do not fit; the same object until one of them changes."""
        if self._node_statuses is None:
            self._node_statuses = NodeStatuses(
                (node.name, result.status)
                for node, result in zip(self.nodes, self._results, strict=True)
                if result is not None and result.status is not SUCCESS
            )
        return self._node_statuses


def _selected(values: Sequence[T], indexes: Sequence[int]) -> list[T]:
    """The values at ascending indexes, which may wrap around."""
    first, last = indexes[0], indexes[-1]
    if (last - first) % len(values) != len(indexes) - 1:
        return list(map(values.__getitem__, indexes))
    if first <= last:  # none in between is left out
        return list(values[first : last + 1])
    return [*values[first:], *values[: last + 1]]


def _fits_byte(result: NodeResult | None) -> int:
    return MAY_FIT if result is None or result.status is SUCCESS else NOT_FITTING
