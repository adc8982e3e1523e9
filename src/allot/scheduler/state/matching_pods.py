"""Numbers of matching pods by node: counted once per query, then updated by events.

Pods of one workload have the same query, so that the counts for the next pod are usually cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from allot.api.selectors import LabelSelector
from allot.scheduler.state.pods import PodInfo

MAX_QUERIES: Final = 128
"""Queries whose counts are kept up to date; the least recently used one is dropped."""


class PodSelector(NamedTuple):
    """Pods in these namespaces with these labels."""

    namespaces: frozenset[str]
    selector: LabelSelector | None

    def matches(self, pod: PodInfo) -> bool:
        return (
            self.selector is not None
            and pod.key.namespace in self.namespaces
            and self.selector.matches(pod.labels)
        )


class PodQuery(NamedTuple):
    """Pods that all of these select, with or without terminating ones."""

    meant: tuple[PodSelector, ...]
    with_terminating: bool = True

    def matches(self, pod: PodInfo) -> bool:
        if pod.is_terminating and not self.with_terminating:
            return False
        return all(one.matches(pod) for one in self.meant)


class MatchingPods:
    """Numbers of matching pods by node, for recent queries."""

    def __init__(self, max_queries: int = MAX_QUERIES) -> None:
        self._max_queries = max_queries
        self._counts_by_query: dict[PodQuery, dict[str, int]] = {}
        self.scans = 0
        """How often a query iterated over all pods; tests count it."""

    def counts(self, query: PodQuery, pods: Iterable[PodInfo]) -> Mapping[str, int]:
        """Matching pods by node name, without zeros. `pods` gives all pods, for a query without counts."""
        counts = self._counts_by_query.pop(query, None)
        if counts is None:
            counts = self._count(query, pods)
            if len(self._counts_by_query) >= self._max_queries:
                del self._counts_by_query[next(iter(self._counts_by_query))]
        self._counts_by_query[query] = counts
        return counts

    def _count(self, query: PodQuery, pods: Iterable[PodInfo]) -> dict[str, int]:
        self.scans += 1
        counts: dict[str, int] = {}
        for pod in pods:
            if query.matches(pod):
                counts[pod.node_name] = counts.get(pod.node_name, 0) + 1
        return counts

    def add(self, pod: PodInfo) -> None:
        for query, counts in self._counts_by_query.items():
            if query.matches(pod):
                counts[pod.node_name] = counts.get(pod.node_name, 0) + 1

    def remove(self, pod: PodInfo) -> None:
        for query, counts in self._counts_by_query.items():
            if query.matches(pod):
                left = counts[pod.node_name] - 1
                if left:
                    counts[pod.node_name] = left
                else:
                    del counts[pod.node_name]
