"""Events and metrics of pods that wait until their devices are ready (KEP-5007)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from allot.scheduler.framework.handle import PodEvents
from allot.scheduler.plugins.dynamic_resources.binding_conditions import shown_seconds
from allot.scheduler.plugins.dynamic_resources.binding_gate import BindingOutcome
from allot.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from allot.scheduler.framework.metrics import SchedulerMetrics

BINDING_CONDITIONS_PENDING: Final = "BindingConditionsPending"
BINDING_TIMEOUT_ANNOTATION: Final = "allot.dev/binding-timeout-seconds"
"""On that event: the scheduler's binding timeout."""


class BindingWaitReporter:
    """What is said about pods that wait for devices (KEP-5007)."""

    def __init__(self, events: PodEvents, metrics: SchedulerMetrics | None) -> None:
        self._events = events
        self._metrics = metrics

    async def waits(
        self, pod: PodInfo, node_name: str, missing: Sequence[str], timeout: timedelta
    ) -> None:
        note = f"waiting for binding conditions for device on node {node_name}"
        if missing:
            limit = f"within {shown_seconds(timeout)} of the allocation"
            note += f": {'; '.join(missing)}; the driver's controller must report this {limit}"
        seconds = {BINDING_TIMEOUT_ANNOTATION: f"{timeout.total_seconds():g}"}
        self._events.pending(pod, BINDING_CONDITIONS_PENDING, note, seconds)
        await self._events.nominate(pod, node_name)

    def waited(
        self, pod: PodInfo, drivers: Sequence[str], outcome: BindingOutcome, seconds: float
    ) -> None:
        if self._metrics is None:
            return
        for driver in drivers:
            labels = (pod.scheduler_name, driver, outcome.value)
            self._metrics.binding_device_allocations.labels(*labels).inc()
            self._metrics.binding_wait_seconds.labels(*labels).observe(seconds)

    def passed(
        self, pod: PodInfo, outcome: BindingOutcome, seconds: float, *, has_conditions: bool
    ) -> None:
        if self._metrics is None:
            return
        self._metrics.pre_bind_seconds.observe(seconds, outcome.value, str(has_conditions).lower())
        if has_conditions:
            self._metrics.binding_allocations.labels(pod.scheduler_name, outcome.value).inc()
