"""What is remembered about every node for pods that plugins cannot tell apart.

Nodes stand in the order they are tried in, each at its place. A node that changed loses its verdict, and gets
a new one when a search comes to it; all others cost nothing but a look at a byte. So the cost of a search
is that of the changes since the last one, and a little for every thousand nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, compress, islice
from typing import Final

from allot.scheduler.framework.node_statuses import Refusals
from allot.scheduler.framework.status import SUCCESS, Code, Status
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo

NOT_FITTING: Final = 0
MAY_FIT: Final = 1
"""It fits, or nobody has looked yet."""


class Verdict:
    """What plugins say about one node at one generation, as far as it can be remembered."""

    __slots__ = ("fixed", "generation", "raw", "status")

    def __init__(self, generation: int, status: Status) -> None:
        self.generation = generation
        self.status = status
        self.fixed = 0
        """The weighted sum of the scores that do not depend on other nodes."""
        self.raw: tuple[int, ...] | None = None
        """Scores that must be normalized among all nodes; None until somebody asks."""


Judge = Callable[[NodeInfo], Verdict]


class VerdictTable:
    """Verdicts by place."""

    def __init__(self) -> None:
        self.nodes: Sequence[NodeInfo] = ()
        self._membership = -1
        self._generation = 0
        self._verdicts: list[Verdict | None] = []
        self._fits = bytearray()
        self._unknown: set[int] = set()
        self._place_by_name: dict[str, int] = {}
        self._refusals: Refusals | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def catch_up(self, cluster: ClusterState) -> None:
        """Forget what has changed since it was last looked at."""
        if self._membership != cluster.membership:
            self._rebuild(cluster)
        else:
            for node in cluster.nodes_changed_since(self._generation):
                place = self._place_by_name[node.name]
                self._verdicts[place] = None
                self._fits[place] = MAY_FIT
                self._unknown.add(place)
                self._refusals = None
        self._generation = cluster.generation

    def _rebuild(self, cluster: ClusterState) -> None:
        known = {
            node.name: verdict for node, verdict in zip(self.nodes, self._verdicts, strict=True)
        }
        self._membership = cluster.membership
        self._refusals = None
        self.nodes = nodes = cluster.nodes
        self._place_by_name = {node.name: place for place, node in enumerate(nodes)}
        self._verdicts = []
        self._fits = bytearray()
        self._unknown.clear()
        for place, node in enumerate(nodes):
            verdict = known.get(node.name)
            if verdict is not None and verdict.generation != node.generation:
                verdict = None
            if verdict is None:
                self._unknown.add(place)
            self._verdicts.append(verdict)
            self._fits.append(_byte(verdict))

    def places_from(self, start: int) -> Iterable[int]:
        """All places, beginning at one of them."""
        return chain(range(start, len(self.nodes)), range(start))

    def place_of(self, name: str) -> int | None:
        return self._place_by_name.get(name)

    def at(self, place: int, judge: Judge) -> Verdict:
        """The verdict on a node: the one that is known, or a new one."""
        known = self._verdicts[place]
        if known is not None:
            return known
        verdict = judge(self.nodes[place])
        if verdict.status.code is not Code.ERROR:
            self._verdicts[place] = verdict
            self._fits[place] = _byte(verdict)
            self._unknown.discard(place)
            self._refusals = None
        return verdict

    def verdicts(self, places: Iterable[int]) -> list[Verdict]:
        """The verdicts on nodes that were judged."""
        return [verdict for place in places if (verdict := self._verdicts[place]) is not None]

    def find(self, start: int, wanted: int, judge: Judge) -> list[int] | Status:
        """The first places from `start` on whose nodes fit, as many as wanted; or the error that came up.

        Nodes behind them are not judged.
        """
        while True:
            fits = self._fits[start:] + self._fits[:start]
            found = list(islice(compress(self.places_from(start), fits), wanted))
            unknown = self._unknown.intersection(found)
            if not unknown:
                return found
            for place in (
                found if len(unknown) == len(found) else filter(unknown.__contains__, found)
            ):
                status = self.at(place, judge).status
                if status.code is Code.ERROR:
                    return status

    def refusals(self) -> Refusals:
        """What stands against each node that does not fit; the same object until that changes."""
        if self._refusals is None:
            self._refusals = Refusals(
                (node.name, verdict.status)
                for node, verdict in zip(self.nodes, self._verdicts, strict=True)
                if verdict is not None and verdict.status is not SUCCESS
            )
        return self._refusals


def _byte(verdict: Verdict | None) -> int:
    return MAY_FIT if verdict is None or verdict.status is SUCCESS else NOT_FITTING
