"""Scores of PodTopologySpread: nodes in domains with fewer matching pods are better."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from allot.scheduler.framework.scores import MAX_SCORE
from allot.scheduler.state.affinity import HOSTNAME_LABEL, SpreadConstraint
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.matching_pods import PodQuery
from allot.scheduler.state.nodes import NodeInfo


@dataclass
class SpreadScores:
    """Matching pods per domain of the nodes to score, and the weight of each constraint.

    Domains of `kubernetes.io/hostname` are the nodes themselves.
    """

    constraints: tuple[SpreadConstraint, ...]
    weights: tuple[float, ...]
    counts: tuple[dict[str, int], ...]
    strict: bool
    ignored: set[str] = field(default_factory=set)
    """Names of nodes that lack a topology key, where all of them are required."""

    def score(self, node: NodeInfo) -> int:
        """The raw score: fewer is better."""
        if node.name in self.ignored:
            return 0
        total = 0.0
        for constraint, weight, counts in zip(
            self.constraints, self.weights, self.counts, strict=True
        ):
            value = _domain(node, constraint)
            if value is not None:
                # A larger maxSkew adds a little, so that lenient constraints weigh less.
                total += counts.get(value, 0) * weight + (constraint.max_skew - 1)
        return math.floor(total + 0.5)

    def count_pods(
        self,
        cluster: ClusterState,
        queries: Sequence[PodQuery],
        counts_node: Callable[[SpreadConstraint, NodeInfo], bool],
    ) -> None:
        """Count the pods of all nodes that share a domain with a node to be scored."""
        for constraint, counts, query in zip(self.constraints, self.counts, queries, strict=True):
            for node_name, number in cluster.matching_pods(query).items():
                node = cluster.node(node_name)
                if node is None or (self.strict and not _has_all_keys(node, self.constraints)):
                    continue
                value = _domain(node, constraint)
                if value in counts and counts_node(constraint, node):
                    counts[value] += number


def spread_scores(
    constraints: tuple[SpreadConstraint, ...], nodes: Sequence[NodeInfo], *, strict: bool
) -> SpreadScores:
    """Empty domains of the nodes to be scored. `strict`: nodes that lack a topology key are ignored."""
    counts: tuple[dict[str, int], ...] = tuple({} for _ in constraints)
    ignored = set()
    for node in nodes:
        if strict and not _has_all_keys(node, constraints):
            ignored.add(node.name)
            continue
        for constraint, count in zip(constraints, counts, strict=True):
            value = _domain(node, constraint)
            if value is not None:
                count[value] = 0
    # With few domains the numbers in each are larger; the weight compensates for that.
    weights = tuple(math.log(len(count) + 2) for count in counts)
    return SpreadScores(constraints, weights, counts, strict, ignored)


def normalize_spread_scores(scores: list[int], ignored: Sequence[bool]) -> None:
    """In place: the fewest become 100, ignored nodes zero."""
    counted = [score for score, out in zip(scores, ignored, strict=True) if not out]
    lowest, highest = min(counted, default=0), max(counted, default=0)
    for index, out in enumerate(ignored):
        if out:
            scores[index] = 0
        elif highest == 0:
            scores[index] = MAX_SCORE
        else:
            scores[index] = MAX_SCORE * (highest + lowest - scores[index]) // highest


def _domain(node: NodeInfo, constraint: SpreadConstraint) -> str | None:
    if constraint.topology_key == HOSTNAME_LABEL and HOSTNAME_LABEL in node.labels:
        return node.name
    return node.labels.get(constraint.topology_key)


def _has_all_keys(node: NodeInfo, constraints: Sequence[SpreadConstraint]) -> bool:
    return all(constraint.topology_key in node.labels for constraint in constraints)
