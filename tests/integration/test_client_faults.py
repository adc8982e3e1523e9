"""Informers and writers through lost connections, refused requests, compacted history and killed servers."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.backoff import Backoff
from allot.client.client import Client
from allot.client.connection import connect
from allot.client.errors import ApiStatusError, ClientError, TransportError
from allot.client.in_process import InProcessTransport
from allot.client.informer import Informer
from allot.client.options import DeleteOptions, Scope
from allot.client.resources import CONFIG_MAPS
from allot.client.retries import RetryPolicy
from allot.client.transport import JSON, Query, Response, Stream, Transport
from allot.testing.processes import ApiServerProcess
from allot.testing.servers import TOKEN, LocalServer

NS = "default"
SCOPE = Scope(NS)
IMPATIENT = RetryPolicy(max_attempts=30, backoff=Backoff(0.001, 0.01))


class Unreliable:
    """A way to the server on which things get lost."""

    def __init__(self, transport: Transport, seed: int) -> None:
        self._transport = transport
        self._random = random.Random(seed)  # noqa: S311
        self.faults = 0
        self.is_calm = False
        self._cut = asyncio.Event()

    def cut(self) -> None:
        """Break all streams."""
        self._cut.set()
        self._cut = asyncio.Event()

    def _chance(self, probability: float) -> bool:
        happens = not self.is_calm and self._random.random() < probability
        self.faults += happens
        return happens

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        if self._chance(0.1):
            return Response(429, ((b"retry-after", b"0"),), b"{}")
        if self._chance(0.05):
            raise TransportError("connection refused", was_sent=False)
        response = await self._transport.request(method, path, query, body, content_type, headers)
        if self._chance(0.05):
            raise TransportError("the answer was lost", was_sent=True)
        if method == "GET" and self._chance(0.05):
            return Response(503, (), b"not now")
        return response

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        if self._chance(0.1):
            yield Stream(429, (), _nothing())
            return
        async with self._transport.stream(
            path, query, idle_seconds=idle_seconds, headers=headers
        ) as stream:
            yield stream._replace(chunks=self._pieces(stream.chunks))

    async def _pieces(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            while True:
                piece = asyncio.ensure_future(_next(chunks))
                await asyncio.wait((cut, piece), return_when=asyncio.FIRST_COMPLETED)
                if not piece.done():
                    piece.cancel()
                    await asyncio.wait((piece,))
                    raise TransportError("cut", was_sent=True)
                content = piece.result()
                if content is None:
                    return
                if self._chance(0.1):
                    yield content[: self._random.randrange(len(content))]
                    raise TransportError("cut in the middle", was_sent=True)
                yield content
        finally:
            cut.cancel()

    async def close(self) -> None:
        await self._transport.close()


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


async def _nothing() -> AsyncIterator[bytes]:
    yield b""


class Story:
    """Follows an informer and checks that each object's life makes sense."""

    def __init__(self, informer: Informer[RawObject]) -> None:
        self.known: dict[str, str] = {}
        self.wrong: list[str] = []
        self.deletes = 0
        informer.add_handlers(self._add, self._update, self._delete)

    def _add(self, obj: RawObject) -> None:
        if obj.metadata.name in self.known:
            self.wrong.append(f"{obj} added twice")
        self.known[obj.metadata.name] = obj.metadata.resource_version

    def _update(self, old: RawObject, new: RawObject) -> None:
        if self.known.get(new.metadata.name) != old.metadata.resource_version:
            self.wrong.append(f"{new}: an update that does not follow")
        if int(new.metadata.resource_version) <= int(old.metadata.resource_version):
            self.wrong.append(f"{new}: back in time")
        self.known[new.metadata.name] = new.metadata.resource_version

    def _delete(self, obj: RawObject) -> None:
        self.deletes += 1
        if self.known.pop(obj.metadata.name, None) is None:
            self.wrong.append(f"{obj} deleted, but it was not there")


async def write(client: Client, number: int, lives: int) -> None:
    """Objects that are created, changed and half of them deleted, whatever it takes."""
    for count in range(lives):
        key = ObjectKey(NS, f"w{number}-{count}")
        obj = RawObject({"metadata": {"namespace": NS, "name": key.name}, "data": {"n": "0"}})
        try:
            await client.create(CONFIG_MAPS, obj)
        except ApiStatusError as error:
            if not error.is_already_exists:
                raise

        def change(found: RawObject) -> RawObject:
            return found.with_value({"n": "1"}, "data")

        changed = await client.update_with_retry(CONFIG_MAPS, key, change)
        if count % 2:
            await client.delete(CONFIG_MAPS, key, DeleteOptions(uid=changed.metadata.uid))


async def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def names(informer: Informer[RawObject]) -> dict[str, str]:
    return {obj.metadata.name: obj.metadata.resource_version for obj in informer.store}


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming-list", "pages"])
@pytest.mark.parametrize("window", [10_000, 3], ids=["history", "hardly-any-history"])
def test_nothing_is_lost_on_an_unreliable_line(streaming: bool, window: int) -> None:
    async def main() -> None:
        async with LocalServer(window=window) as server:
            steady = Client(InProcessTransport(server.server.app, TOKEN))
            line = Unreliable(InProcessTransport(server.server.app, TOKEN), seed=window)
            client = Client(line, retry=IMPATIENT)
            informer = Informer(
                client, CONFIG_MAPS, SCOPE, streaming=streaming, backoff=Backoff(0.001, 0.01)
            )
            story = Story(informer)
            informer.start()
            writing = [asyncio.create_task(write(client, number, 20)) for number in range(5)]
            for round_ in itertools.count():
                done, _ = await asyncio.wait(writing, timeout=0.02)
                line.cut()
                if round_ % 3 == 2:
                    await server.store.compact(await server.store.revision())
                if len(done) == len(writing):
                    break
            await asyncio.gather(*writing)
            line.is_calm = True
            listed = await steady.list(CONFIG_MAPS, SCOPE)
            expected = {obj.metadata.name: obj.metadata.resource_version for obj in listed.items}
            assert len(expected) == 50
            await until(lambda: names(informer) == expected)
            assert story.known == expected
            assert not story.wrong
            assert line.faults > 20
            await informer.stop()

    asyncio.run(main())


def test_deletes_from_a_time_that_is_no_longer_kept_are_told() -> None:
    async def main() -> None:
        async with LocalServer(window=2) as server:
            steady = Client(InProcessTransport(server.server.app, TOKEN))
            line = Unreliable(InProcessTransport(server.server.app, TOKEN), seed=1)
            line.is_calm = True
            informer = Informer(
                Client(line), CONFIG_MAPS, SCOPE, backoff=Backoff(0.3, 0.3, jitter=0)
            )
            story = Story(informer)
            await write(steady, 0, 10)
            informer.start()
            await informer.wait_synced()
            line.cut()
            await asyncio.sleep(0.05)
            for number in range(0, 10, 2):
                await steady.delete(CONFIG_MAPS, ObjectKey(NS, f"w0-{number}"))
            await write(steady, 1, 10)
            await server.store.compact(await server.store.revision())
            await until(lambda: story.deletes == 5 and len(informer.store) == 5)
            assert informer.lists == 2
            assert not story.wrong
            await informer.stop()

    asyncio.run(main())


def test_a_server_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    """Over HTTPS, with writers at work: clients wait for it and go on."""

    async def main(server: ApiServerProcess) -> None:
        retry = RetryPolicy(max_attempts=200, backoff=Backoff(0.02, 0.1))
        client = connect(server.kubeconfig)
        persistent = Client(client.transport, retry=retry)
        informer = Informer(persistent, CONFIG_MAPS, SCOPE, backoff=Backoff(0.05, 0.2))
        story = Story(informer)
        informer.start()
        await informer.wait_synced()
        failures: list[ClientError] = []

        async def persistently(number: int) -> None:
            try:
                await write(persistent, number, 40)
            except ClientError as error:
                failures.append(error)

        writing = [asyncio.create_task(persistently(number)) for number in range(3)]
        for _ in range(2):
            enough = len(story.known) + 5
            await until(lambda enough=enough: len(story.known) > enough)  # type: ignore[misc]
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        await asyncio.gather(*writing)
        assert not failures
        listed = await persistent.list(CONFIG_MAPS, SCOPE)
        expected = {obj.metadata.name: obj.metadata.resource_version for obj in listed.items}
        assert sum(name.startswith("w") for name in expected) == 60
        await until(lambda: names(informer) == expected)
        assert not story.wrong
        assert informer.lists == 1, "the history was enough"
        await informer.stop()
        await client.close()

    with ApiServerProcess(tmp_path) as server:
        asyncio.run(main(server))


def test_a_server_that_stops_in_good_order_ends_watches(tmp_path: Path) -> None:
    async def main() -> None:
        server = LocalServer()
        async with server:
            client = Client(InProcessTransport(server.server.app, TOKEN))
            informer = Informer(client, CONFIG_MAPS, SCOPE)
            informer.start()
            await informer.wait_synced()
        async with asyncio.timeout(60):
            await informer.stop()
            await client.close()

    asyncio.run(main())
