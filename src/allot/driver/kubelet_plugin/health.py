"""The health of a driver's devices: what it reports, and who waits for changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from enum import Enum
from typing import Final, NamedTuple

from allot.client.clock import Clock

REFRESH_SECONDS: Final = 10.0
"""How often health is sent again without a change. The kubelet takes it as unknown after 30 s."""


class Health(Enum):
    """As in the kubelet's API."""

    UNKNOWN = 0
    HEALTHY = 1
    UNHEALTHY = 2


class HealthReport(NamedTuple):
    """The health of a device."""

    health: Health
    message: str = ""


Reports = dict[tuple[str, str], HealthReport]
"""By pool and device."""


class DeviceHealth:
    """The latest reports."""

    def __init__(self, clock: Clock, refresh_seconds: float = REFRESH_SECONDS) -> None:
        self._clock = clock
        self._refresh_seconds = refresh_seconds
        self._reports: Reports = {}
        self._changed = asyncio.Event()
        self._is_streamed = True

    def known(self, devices: Iterable[tuple[str, str]]) -> None:
        """The driver's devices. Those without a report are healthy."""
        self._reports = {
            device: self._reports.get(device, HealthReport(Health.HEALTHY)) for device in devices
        }
        self._wake()

    def report(self, pool: str, device: str, report: HealthReport) -> bool:
        """Whether that is new."""
        if self._reports.get((pool, device)) == report:
            return False
        self._reports[pool, device] = report
        self._wake()
        return True

    def is_unhealthy(self, pool: str, device: str) -> bool:
        report = self._reports.get((pool, device))
        return report is not None and report.health is Health.UNHEALTHY

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def begin_streams(self) -> None:
        self._is_streamed = True

    def end_streams(self) -> None:
        """They would hold up the end of the driver."""
        self._is_streamed = False
        self._wake()

    async def stream(self) -> AsyncIterator[Reports]:
        """All reports, after each change and from time to time."""
        while self._is_streamed:
            changed = self._changed
            yield dict(self._reports)
            waiting = asyncio.ensure_future(changed.wait())
            timer = self._clock.call_later(self._refresh_seconds, changed.set)
            try:
                await waiting
            finally:
                timer.cancel()
                waiting.cancel()
            if changed is self._changed:  # only the timer
                self._changed = asyncio.Event()
