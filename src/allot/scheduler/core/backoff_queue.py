"""The backoff queue: pods that wait after a failed attempt, by the time when their backoff is over."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from allot.backoff import Backoff
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo

_Heap = list[tuple[float, int, QueuedPodInfo]]


class BackoffQueue:
    """Two heaps: pods that plugins rejected, and those whose last attempt ended in an error.

    An entry is outdated when the pod has another ticket, because it has moved since.
    """

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._rejected: _Heap = []
        self._failed: _Heap = []

    def due(self, queued: QueuedPodInfo) -> float:
        """When the backoff of a pod is over."""
        failures = queued.errors if queued.last_failed else queued.rejections
        return queued.queued_at + self._backoff.seconds(failures)

    def push(self, queued: QueuedPodInfo) -> None:
        heap = self._failed if queued.last_failed else self._rejected
        heapq.heappush(heap, (self.due(queued), queued.ticket, queued))

    def pop_rejected(self) -> QueuedPodInfo | None:
        """The rejected pod whose backoff ends first, although it is not over."""
        heap = _current(self._rejected)
        return heapq.heappop(heap)[2] if heap else None

    def pop_completed(self, now: float) -> Iterator[QueuedPodInfo]:
        """Pods whose backoff is over."""
        for heap in (self._rejected, self._failed):
            while heap and _current(heap) and heap[0][0] <= now:
                yield heapq.heappop(heap)[2]

    def has_rejected(self) -> bool:
        return bool(self._rejected and _current(self._rejected))

    def first_failed_due(self) -> float | None:
        """When the first backoff after an error is over; None if no pod has one."""
        heap = _current(self._failed)
        return heap[0][0] if heap else None


def _current(heap: _Heap) -> _Heap:
    """The heap without outdated entries at its front."""
    while heap and heap[0][2].ticket != heap[0][1]:
        heapq.heappop(heap)
    return heap
