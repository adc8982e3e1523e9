"""What views show of the objects of a cluster: the rows of tables, and how many pods are pending.

For a large cluster this takes up to a second: the application then reads in a thread, and reacts to keys meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from allot.client import resources
from allot.client.resources import Resource
from allot.questions.observed_cluster import ObservedCluster
from allot.terminal.listings import claim_rows, event_rows, pod_rows
from allot.terminal.search_query import SearchQuery

MANY_OBJECTS: Final = 5_000
_KINDS: Final[tuple[Resource[Any], ...]] = (
    resources.PODS,
    resources.RESOURCE_CLAIMS,
    resources.CORE_EVENTS,
)
_ROWS: Final[Mapping[str, Callable[[ObservedCluster, SearchQuery], Sequence[Any]]]] = {
    "pods": pod_rows,
    "claims": claim_rows,
    "events": event_rows,
}


OBJECT_VIEWS: Final = frozenset(_ROWS)
"""Views that are tables of objects."""


class ClusterReading(NamedTuple):
    """A cluster as one view shows it."""

    view: str = ""
    query: SearchQuery = SearchQuery()
    rows: Sequence[Any] | None = None
    """The rows of a table of objects; None if the view has none, or they are not read yet."""
    pending_pods: int = 0
    notes: tuple[str, ...] = ()
    unread_events: str = ""
    """Why events may not be read."""

    def is_of(self, view: str, query: SearchQuery) -> bool:
        return (self.view, self.query) == (view, query)


def is_large(cluster: ObservedCluster) -> bool:
    """Whether it is read in a thread."""
    return sum(len(cluster.objects.of(kind)) for kind in _KINDS) > MANY_OBJECTS


def read_cluster(cluster: ObservedCluster, view: str, query: SearchQuery) -> ClusterReading:
    pods = cluster.objects.of(resources.PODS)
    rows = _ROWS.get(view)
    return ClusterReading(
        view,
        query,
        rows(cluster, query) if rows is not None else None,
        sum(not pod.node_name and not pod.is_finished for pod in pods),
        cluster.notes,
        cluster.objects.unread.get(resources.CORE_EVENTS, ""),
    )
