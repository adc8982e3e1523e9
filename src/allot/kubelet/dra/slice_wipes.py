"""Deletes the ResourceSlices of drivers that are gone: of all drivers when a kubelet starts, and of one that has had no
connected instance for 30 seconds. Slices of simulated hardware stay, and so do those of no node.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from allot.api.slices import ResourceSlice
from allot.backoff import Backoff
from allot.client.client import Client
from allot.client.clock import Timer
from allot.client.errors import ClientError
from allot.client.options import Scope
from allot.client.resources import Resource

log = logging.getLogger(__name__)

RETRIES: Final = Backoff(initial_seconds=1.0, max_seconds=300.0, jitter=0.0)


class SliceWipes:
    """The slices of one node."""

    def __init__(
        self,
        client: Client,
        resource: Resource[ResourceSlice],
        node: str,
        grace_seconds: float,
        kept_label: str,
    ) -> None:
        """Slices with the label `kept_label` stay."""
        self._client = client
        self._resource = resource
        self._node = node
        self._grace_seconds = grace_seconds
        self._kept_label = kept_label
        self._timers: dict[str, Timer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def note(self, driver: str, *, is_usable: bool) -> None:
        """A driver has, or has no, connected instance."""
        if is_usable:
            self._cancel(driver)
        elif driver not in self._timers and driver not in self._tasks:
            self._timers[driver] = self._client.clock.call_later(
                self._grace_seconds, lambda: self.wipe(driver)
            )

    def wipe(self, driver: str = "") -> None:
        """Delete the slices of a driver, or of all drivers, until that succeeds."""
        self._cancel(driver)
        self._tasks[driver] = asyncio.create_task(self._wipe(driver))

    def close(self) -> None:
        for driver in (*self._timers, *self._tasks):
            self._cancel(driver)

    def _cancel(self, driver: str) -> None:
        timer = self._timers.pop(driver, None)
        if timer is not None:
            timer.cancel()
        task = self._tasks.pop(driver, None)
        if task is not None:
            task.cancel()

    async def _wipe(self, driver: str) -> None:
        fields = f"spec.nodeName={self._node}"
        if driver:
            fields += f",spec.driver={driver}"
            log.warning("node %s: driver %s is gone; deleting its slices", self._node, driver)
        scope = Scope(
            field_selector=fields, label_selector=f"!{self._kept_label}" if self._kept_label else ""
        )
        failures = 0
        while True:
            try:
                await self._client.delete_collection(self._resource, scope)
                return
            except ClientError as error:
                failures += 1
                log.info("node %s: slices not deleted: %s; retrying", self._node, error)
                await self._client.clock.sleep(RETRIES.seconds(failures, 0.0))
