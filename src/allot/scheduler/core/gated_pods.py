"""Conditions and events of gated pods: those that wait for something that no component provides.

Most gated pods wait for a moment only, such as until their claims are created. A pod is reported if it is still gated
for the same reason after a delay.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from allot.scheduler.core.pod_status import UNSCHEDULABLE, PodStatusReporter
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo, SubQueue
from allot.scheduler.framework.status import Status

GATED_REPORT_DELAY_SECONDS: Final = 5.0


class _GatedReport(NamedTuple):
    due: float
    queued: QueuedPodInfo
    gate: Status


class GatedPodReporter:
    """Reports pods that stay gated. `run` is started when the informers have synced."""

    def __init__(
        self, queue: SchedulingQueue, pod_status: PodStatusReporter, clock: Callable[[], float]
    ) -> None:
        self._queue = queue
        self._pod_status = pod_status
        self._clock = clock
        self._reports: deque[_GatedReport] = deque()
        """In the order in which they are due."""
        self._added = asyncio.Event()
        queue.on_gated = self._add

    def _add(self, queued: QueuedPodInfo) -> None:
        """Report the pod after the delay, unless its gate changes."""
        due = self._clock() + GATED_REPORT_DELAY_SECONDS
        self._reports.append(_GatedReport(due, queued, queued.gate))
        self._added.set()

    async def run(self) -> None:
        """Report pods until cancelled."""
        while True:
            self._added.clear()
            while self._reports:
                due, queued, gate = self._reports[0]
                await asyncio.sleep(max(due - self._clock(), 0))
                self._reports.popleft()
                if self._is_gated(queued) and queued.gate == gate:
                    await self._pod_status.failed(queued.pod, UNSCHEDULABLE, gate.message)
            await self._added.wait()

    def _is_gated(self, queued: QueuedPodInfo) -> bool:
        is_known = self._queue.find(queued.pod.uid) is queued
        return is_known and queued.sub_queue is SubQueue.GATED
