"""A cluster that is followed wherever it is: when its address changes, it is read anew from there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import Final

from allot.backoff import Backoff
from allot.client.errors import ClientError
from allot.questions.live_cluster import LiveCluster
from allot.questions.live_devices import LiveDevices
from allot.questions.observed_cluster import ObservedCluster

START_BACKOFF: Final = Backoff(0.5, 5.0)
ADDRESS_SECONDS: Final = 2.0
"""While the cluster does not answer, its address is read again so often."""


class ReconnectingCluster:
    """The objects and devices of a cluster, also after its restart at another port."""

    is_live = True

    def __init__(
        self,
        make: Callable[[], LiveCluster],
        address: Callable[[], str],
        base: ObservedCluster,
        title: str,
        utc_now: Callable[[], datetime],
    ) -> None:
        """`make` is called in the event loop. `address` is that of the kubeconfig; `ClientError` if it has none."""
        self.title = title
        self.devices = LiveDevices(base.gates)
        self._make = make
        self._address = address
        self._base = base
        self._utc_now = utc_now
        self._live: LiveCluster | None = None
        self._earlier_revisions = 0

    @property
    def revision(self) -> int:
        """Another number after each change."""
        return self._earlier_revisions + (0 if self._live is None else self._live.revision)

    @property
    def is_loading(self) -> bool:
        """Whether the first lists are not complete yet."""
        return self._live is None or not self._live.has_synced

    @property
    def failure(self) -> str:
        """Why it is outdated; empty if it is not."""
        return "" if self._live is None else self._live.failure

    def observed(self) -> ObservedCluster:
        """The cluster as it is known now."""
        return self._base if self._live is None else self._live.observed(self._utc_now())

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        while True:
            address = self._address()
            self._earlier_revisions = self.revision + 1
            live = self._live = self._make()
            self.devices = LiveDevices(self._base.gates)
            live.add_handler(self.devices.change)
            try:
                await self._start(live)
                await self._until_moved(live, address)
            finally:
                await live.stop()

    async def _start(self, live: LiveCluster) -> None:
        failures = 0
        while True:
            try:
                await live.start()
                return
            except ClientError:
                failures += 1
                await asyncio.sleep(START_BACKOFF.seconds(failures, 0.5))

    async def _until_moved(self, live: LiveCluster, address: str) -> None:
        while True:
            await asyncio.sleep(ADDRESS_SECONDS)
            if live.failure:
                with contextlib.suppress(ClientError):
                    if self._address() != address:
                        return
