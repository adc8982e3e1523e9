"""The active queue: pods that are ready for a scheduling attempt, by the order of the queue-sort plugin."""

from __future__ import annotations

import heapq

from allot.scheduler.core.unschedulable_pods import QueuedPodInfo
from allot.scheduler.framework.plugins import QueueSortPlugin

_Heap = list[tuple[tuple[float, ...], int, QueuedPodInfo]]


class ActiveQueue:
    """Two heaps: pods that were never rejected, and those that were.

    An entry is outdated when the pod has another ticket, because it has moved since.
    """

    def __init__(self, sort: QueueSortPlugin) -> None:
        self._sort = sort
        self._new: _Heap = []
        self._rejected: _Heap = []
        self._rejected_next = False

    def push(self, queued: QueuedPodInfo) -> None:
        key = self._sort.sort_key(queued.pod, queued.queued_at)
        heap = self._rejected if queued.rejections else self._new
        heapq.heappush(heap, (key, queued.ticket, queued))

    def has_pods(self) -> bool:
        if not self._new and not self._rejected:
            return False
        return bool(self._current(self._new) or self._current(self._rejected))

    def pop(self) -> QueuedPodInfo | None:
        """The first pod by priority. New and rejected pods of the same priority alternate, so that thousands of pods
        that an event requeued do not delay new ones."""
        if not self._new and not self._rejected:
            return None
        new, rejected = self._current(self._new), self._current(self._rejected)
        if not new or not rejected:
            heap = new or rejected
        elif new[0][0][0] != rejected[0][0][0]:
            heap = min(new, rejected, key=lambda heap: heap[0][0])
        else:
            heap = rejected if self._rejected_next else new
            self._rejected_next = not self._rejected_next
        return heapq.heappop(heap)[2] if heap else None

    def _current(self, heap: _Heap) -> _Heap:
        """The heap without outdated entries at its front."""
        while heap and heap[0][2].ticket != heap[0][1]:
            heapq.heappop(heap)
        return heap
