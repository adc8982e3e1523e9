"""The backoff queue: pods that wait after a failed attempt, by the time when their backoff is over.

The backoff of rejected pods ends at whole seconds, as in Kubernetes. Those for which it ends at once come in the order
of the active queue: an event that frees devices for pods of several priorities is for the highest one, not for the one
that failed first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from allot.backoff import Backoff
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo
from allot.scheduler.framework.plugins import QueueSortPlugin

_Heap = list[tuple[float, tuple[float, ...], int, QueuedPodInfo]]


class BackoffQueue:
    """Two heaps: pods that plugins rejected, and those whose last attempt ended in an error.

    An entry is outdated when the pod has another ticket, because it has moved since.
    """

    def __init__(self, backoff: Backoff, sort: QueueSortPlugin) -> None:
        self._backoff = backoff
        self._sort = sort
        self._rejected: _Heap = []
        self._failed: _Heap = []

    def due(self, queued: QueuedPodInfo) -> float:
        """When the backoff of a pod is over."""
        if queued.last_failed:
            return queued.queued_at + self._backoff.seconds(queued.errors)
        seconds = self._backoff.seconds(queued.rejections)
        return math.ceil(queued.queued_at + seconds) if seconds else queued.queued_at

    def push(self, queued: QueuedPodInfo) -> None:
        heap = self._failed if queued.last_failed else self._rejected
        key = self._sort.sort_key(queued.pod, queued.queued_at)
        heapq.heappush(heap, (self.due(queued), key, queued.ticket, queued))

    def pop_rejected(self) -> QueuedPodInfo | None:
        """The rejected pod whose backoff ends first, although it is not over."""
        heap = _current(self._rejected)
        return heapq.heappop(heap)[-1] if heap else None

    def pop_completed(self, now: float) -> Iterator[QueuedPodInfo]:
        """Pods whose backoff is over."""
        for heap in (self._rejected, self._failed):
            while heap and _current(heap) and heap[0][0] <= now:
                yield heapq.heappop(heap)[-1]

    def has_rejected(self) -> bool:
        return bool(self._rejected and _current(self._rejected))

    def first_failed_due(self) -> float | None:
        """When the first backoff after an error is over; None if no pod has one."""
        heap = _current(self._failed)
        return heap[0][0] if heap else None


def _current(heap: _Heap) -> _Heap:
    """The heap without outdated entries at its front."""
    while heap and heap[0][3].ticket != heap[0][2]:
        heapq.heappop(heap)
    return heap
