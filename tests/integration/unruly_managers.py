"""Controller managers that come and go: killed between any two writes, restarted, several at once, far from the server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from allot.apiserver.assembly import ApiServer
from allot.client.client import Client
from allot.client.clock import Clock
from allot.client.in_process import InProcessTransport
from allot.client.transport import JSON, Query, Response, Stream, Transport
from allot.controllers.manager import ControllerManager
from allot.controllers.registry import ALL, select_controllers
from allot.testing.servers import TOKEN
from tests.integration.test_client_faults import Unreliable
from tests.integration.test_scheduler import Mortal

FAR_SECONDS: Final = 0.02
LAGS_SECONDS: Final = (0.0, 0.0, 0.1, 1.0)
LONGEST_LIFE_SECONDS: Final = 20.0
MOST_WRITES: Final = 30


class Distant:
    """A way to the server that takes its time; some watches are behind, each by its own measure."""

    def __init__(self, transport: Transport, chance: random.Random) -> None:
        self._transport = transport
        self._chance = chance

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        await asyncio.sleep(self._chance.random() * FAR_SECONDS)
        answer = await self._transport.request(method, path, query, body, content_type, headers)
        await asyncio.sleep(self._chance.random() * FAR_SECONDS)
        return answer

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        async with self._transport.stream(
            path, query, idle_seconds=idle_seconds, headers=headers
        ) as stream:
            yield stream._replace(chunks=self._late(stream.chunks))

    async def _late(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        lag = self._chance.choice(LAGS_SECONDS)
        async for chunk in chunks:
            if lag:
                await asyncio.sleep(self._chance.random() * lag)
            yield chunk

    async def close(self) -> None:
        await self._transport.close()


class Managers:
    """So many at once. Whichever dies or is stopped is replaced at once, until there is peace."""

    def __init__(self, server: ApiServer, clock: Clock, seed: int, at_once: int) -> None:
        self._server = server
        self._clock = clock
        self._chance = random.Random(seed)  # noqa: S311 - a game
        self._ways: list[Unreliable] = []
        self._peace = asyncio.Event()
        self._at_once = at_once
        self.deaths = 0
        self.restarts = 0

    @property
    def faults(self) -> int:
        return sum(way.faults for way in self._ways)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        keeping = [self._keep_one_running() for _ in range(self._at_once)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(keep) for keep in keeping]
            yield
            for task in tasks:
                task.cancel()

    def make_peace(self) -> None:
        """From now on no manager is killed, and no request is lost."""
        self._peace.set()
        for way in self._ways:
            way.is_calm = True

    def cut_watches(self) -> None:
        for way in self._ways:
            way.cut()

    async def _keep_one_running(self) -> None:
        while True:
            near = InProcessTransport(self._server.app, TOKEN, "unruly-manager")
            way = Unreliable(near, self._chance.randrange(1 << 32))
            way.is_calm = self._peace.is_set()
            self._ways.append(way)
            writes = 1 << 60 if self._peace.is_set() else self._chance.randint(1, MOST_WRITES)
            mortal = Mortal(
                Distant(way, self._chance), writes, answered=self._chance.random() < 0.5
            )
            manager = ControllerManager(
                Client(mortal, clock=self._clock), select_controllers((ALL,))
            )
            await self._live(manager, mortal)

    async def _live(self, manager: ControllerManager, mortal: Mortal) -> None:
        running = asyncio.create_task(manager.run())
        dying = asyncio.create_task(mortal.died.wait())
        try:
            life = None if self._peace.is_set() else self._chance.random() * LONGEST_LIFE_SECONDS
            done, _ = await asyncio.wait(
                (running, dying), timeout=life, return_when=asyncio.FIRST_COMPLETED
            )
            assert running not in done, running
            self.deaths += dying in done
            self.restarts += dying not in done
        finally:
            running.cancel()
            dying.cancel()
            await asyncio.gather(running, dying, return_exceptions=True)
