"""The affinity terms of assigned pods: each distinct term once, with the domains where it applies.

Thousands of pods of one workload have the same term; matching it with a new pod is then one
comparison, not thousands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from allot.scheduler.state.affinity import PodTerm, WeightedTerm
from allot.scheduler.state.pods import PodInfo

Term = TypeVar("Term", PodTerm, WeightedTerm)


class TermCounts(Generic[Term]):
    """How many pods have a term, by term and by domain of its topology key."""

    def __init__(self) -> None:
        self._counts_by_term: dict[Term, dict[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._counts_by_term)

    def items(self) -> Iterator[tuple[Term, Mapping[str, int]]]:
        yield from self._counts_by_term.items()

    def count(self, term: Term, topology_value: str | None, change: int) -> None:
        if topology_value is None:
            return  # the node has no such domain
        counts = self._counts_by_term.setdefault(term, {})
        total = counts.get(topology_value, 0) + change
        if total:
            counts[topology_value] = total
            return
        del counts[topology_value]
        if not counts:
            del self._counts_by_term[term]


class TermIndex:
    """All terms of all assigned pods."""

    def __init__(self) -> None:
        self.affinity: TermCounts[PodTerm] = TermCounts()
        self.anti_affinity: TermCounts[PodTerm] = TermCounts()
        self.preferred: TermCounts[WeightedTerm] = TermCounts()

    def add(self, pod: PodInfo, labels: Mapping[str, str]) -> None:
        """Count the terms of a pod on a node with these labels."""
        self._count(pod, labels, 1)

    def remove(self, pod: PodInfo, labels: Mapping[str, str]) -> None:
        self._count(pod, labels, -1)

    def _count(self, pod: PodInfo, labels: Mapping[str, str], change: int) -> None:
        for term in pod.affinity:
            self.affinity.count(term, labels.get(term.topology_key), change)
        for term in pod.anti_affinity:
            self.anti_affinity.count(term, labels.get(term.topology_key), change)
        for weighted in pod.preferred_affinity:
            self.preferred.count(weighted, labels.get(weighted.term.topology_key), change)
