"""PrioritySort: pods of higher priority first, then those that wait longest."""

from __future__ import annotations

from allot.scheduler.framework.plugins import QueueSortPlugin
from allot.scheduler.state.pods import PodInfo


class PrioritySort(QueueSortPlugin):
    """The order of the active queue."""

    name = "PrioritySort"

    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[float, ...]:
        return (-pod.priority, queued_at)
