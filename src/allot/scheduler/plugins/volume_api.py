"""PersistentVolumes and their claims in the API: writes, and waits for the volume controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from allot.api.raw import RawObject
from allot.client import resources
from allot.scheduler.framework.concurrency_limit import released_slot

if TYPE_CHECKING:
    from allot.client.client import Client
    from allot.client.informer import InformerFactory


class InformedVolumeApi:
    """Writes volumes and claims through a client; informers end the waits."""

    def __init__(self, client: Client, informers: InformerFactory | None) -> None:
        self._client = client
        self._waiters: set[asyncio.Event] = set()
        if informers is None:
            return
        for resource in (resources.PERSISTENT_VOLUMES, resources.PERSISTENT_VOLUME_CLAIMS):
            informers.informer(resource).add_handlers(
                lambda _: self._wake(), lambda _old, _new: self._wake(), lambda _: self._wake()
            )

    def _wake(self) -> None:
        for waiter in self._waiters:
            waiter.set()

    async def update(self, changed: RawObject) -> RawObject:
        resource = (
            resources.PERSISTENT_VOLUMES
            if changed.kind == "PersistentVolume"
            else resources.PERSISTENT_VOLUME_CLAIMS
        )
        return await self._client.update(resource, changed)

    async def wait_until(self, is_done: Callable[[], bool], timeout_seconds: float) -> bool:
        event = asyncio.Event()
        self._waiters.add(event)
        try:
            async with released_slot(), asyncio.timeout(timeout_seconds):
                while not is_done():
                    await event.wait()
                    event.clear()
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(event)
        return True
