"""A link: what a client and an application see of each other through it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, MutableMapping
from typing import Any

import pytest

from allot.apiserver.http.exchange import Exchange
from allot.apiserver.http.link_server import LinkLostError, LinkServer
from allot.apiserver.http.responses import Response, StreamResponse
from allot.client.asgi import USER, WHOLE_BODY
from allot.client.component_users import CONTROLLER_MANAGER, SCHEDULER, ComponentUser
from allot.client.errors import ApiStatusError, TransportError
from allot.client.link import (
    WINDOW,
    AnyFrame,
    ChunkFrame,
    FrameProtocol,
    HeadFrame,
    Link,
    LinkTransport,
    RequestFrame,
    ResponseFrame,
)
from allot.client.rest_client import status_error
from allot.client.transport import NOT_RUN
from allot.storage.memory import MemoryStore
from allot.testing.virtual_time import run_in_virtual_time

Message = MutableMapping[str, Any]
ALLOWED_TO_TAKE = 60.0


class Application:
    """Echoes requests; streams as many pieces as the path says, and counts those it got rid of."""

    def __init__(self) -> None:
        self.scopes: list[MutableMapping[str, Any]] = []
        self.sent = 0
        self.left = asyncio.Event()
        self.hangs = asyncio.Event()

    async def serve(self, exchange: Exchange) -> None:
        self.scopes.append(exchange.scope)
        what, _, number = exchange.path.strip("/").partition("/")
        match what:
            case "broken":
                raise ValueError("broken")
            case "stream":
                await exchange.stream(StreamResponse(self._pieces(int(number))), self._count)
                return
            case "watch":
                await exchange.stream(StreamResponse(self._until_left(exchange)), self._count)
                return
            case "hang":
                await self.hangs.wait()
        body = exchange.scope["extensions"][WHOLE_BODY]
        await exchange.answer(Response(200, b"<" + body + b">", "text/plain"))

    async def _pieces(self, count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b"x" * 1000

    async def _until_left(self, exchange: Exchange) -> AsyncIterator[bytes]:
        yield b"first"
        await exchange.receive()
        self.left.set()

    def _count(self, size: int) -> None:
        self.sent += size


@contextlib.asynccontextmanager
async def linked(app: Application) -> AsyncIterator[tuple[Link, LinkServer]]:
    ours, theirs = socket.socketpair()
    server = LinkServer(app, MemoryStore())
    await server.start(theirs)
    link = await Link.over(ours)
    yield link, server
    link.close()
    await server.close()


Story = Callable[[Application, Link, LinkServer], Coroutine[Any, Any, None]]


def played(story: Story) -> None:
    async def run() -> None:
        app = Application()
        async with asyncio.timeout(ALLOWED_TO_TAKE), linked(app) as (link, server):
            await story(app, link, server)

    asyncio.run(run())


def test_requests_carry_everything() -> None:
    async def story(app: Application, link: Link, _: LinkServer) -> None:
        transport = LinkTransport(link, SCHEDULER, "me")
        body = bytes(range(256)) * 10_000
        response = await transport.request(
            "POST", "/a%2Fb", {"q": "ä&"}, body, "text/odd", {"Accept": "x"}
        )

        assert (response.code, response.body) == (200, b"<" + body + b">")
        scope = app.scopes[0]
        assert scope["extensions"][USER] == SCHEDULER
        assert (scope["path"], scope["raw_path"]) == ("/a/b", b"/a%2Fb")
        assert scope["query_string"] == b"q=%C3%A4%26"
        assert scope["headers"] == [
            (b"user-agent", b"me"),
            (b"content-type", b"text/odd"),
            (b"accept", b"x"),
        ]

    played(story)


def test_many_requests_at_once() -> None:
    async def story(_app: Application, link: Link, _: LinkServer) -> None:
        transport = LinkTransport(link, SCHEDULER)
        asked = [transport.request("POST", "/", body=str(n).encode()) for n in range(500)]
        answers = await asyncio.gather(*asked)

        assert [answer.body for answer in answers] == [b"<%d>" % n for n in range(500)]

    played(story)


def test_requests_in_order_begin_when_the_one_before_has_ended() -> None:
    async def story(app: Application, link: Link, _: LinkServer) -> None:
        ordered = LinkTransport(link, SCHEDULER, "me").in_order(3)
        asked = [ordered.request("POST", path, body=b"a") for path in ("/first", "/hang", "/last")]
        first = await asked[0]
        assert first.body == b"<a>"
        while len(app.scopes) < 2:
            await asyncio.sleep(0)
        assert (await LinkTransport(link, SCHEDULER).request("GET", "/other")).code == 200
        assert [scope["path"] for scope in app.scopes] == ["/first", "/hang", "/other"]
        app.hangs.set()
        assert [answer.code for answer in await asyncio.gather(*asked)] == [200, 200, 200]
        assert app.scopes[-1]["path"] == "/last"
        assert app.scopes[-1]["extensions"][USER] == SCHEDULER

    played(story)


def test_after_a_request_that_fails_the_others_in_order_are_not_run() -> None:
    async def story(app: Application, link: Link, _: LinkServer) -> None:
        ordered = LinkTransport(link, SCHEDULER).in_order(3)
        paths = ("/first", "/broken", "/last")
        answers = await asyncio.gather(*(ordered.request("POST", path) for path in paths))
        assert [answer.code for answer in answers] == [200, 500, NOT_RUN]
        assert [scope["path"] for scope in app.scopes] == ["/first", "/broken"]
        with pytest.raises(ApiStatusError) as caught:
            raise status_error(answers[-1])
        assert caught.value.code == NOT_RUN

    played(story)


def test_a_slow_reader_holds_up_only_its_stream() -> None:
    async def story(app: Application, link: Link, _: LinkServer) -> None:
        transport = LinkTransport(link, SCHEDULER)
        async with transport.stream("/stream/100000") as stream:
            answers = [await transport.request("POST", "/", body=b"a") for _ in range(50)]
            assert len(answers) == 50
            assert app.sent <= WINDOW + 1000

            received = 0
            async for chunk in stream.chunks:
                received += len(chunk)
        assert received == 100_000_000

    played(story)


def test_leaving_a_stream_is_noticed() -> None:
    async def story(app: Application, link: Link, _: LinkServer) -> None:
        async with LinkTransport(link, SCHEDULER).stream("/watch") as stream:
            assert await anext(stream.chunks) == b"first"
        await app.left.wait()

    played(story)


def test_a_stream_on_which_nothing_comes_is_given_up() -> None:
    async def story(_app: Application, link: Link, _: LinkServer) -> None:
        async with LinkTransport(link, SCHEDULER).stream("/watch", idle_seconds=0.01) as stream:
            assert await anext(stream.chunks) == b"first"
            with pytest.raises(TransportError, match=r"no data for 0\.01 s"):
                await anext(stream.chunks)

    played(story)


def test_a_stream_is_idle_when_one_wait_takes_too_long() -> None:
    """Not when all waits together do, and not while its reader is busy with what came."""

    async def run() -> None:
        link = Link()
        stream = link.open("/watch", "", ())
        stream.started_with(HeadFrame(1, 200, []))
        chunks = stream.chunks(10.0)
        loop = asyncio.get_running_loop()
        started = loop.time()
        for number in range(5):
            loop.call_later(8.0, stream.received, b"x")
            assert await anext(chunks) == b"x"
            assert loop.time() == pytest.approx(started + number * 38.0 + 8.0)
            await asyncio.sleep(30.0)
        with pytest.raises(TransportError, match=r"no data for 10\.0 s"):
            await anext(chunks)
        assert loop.time() == pytest.approx(started + 5 * 38.0 + 10.0)
        link.end(stream)

    run_in_virtual_time(run())


def test_an_application_that_fails() -> None:
    async def story(_app: Application, link: Link, _: LinkServer) -> None:
        transport = LinkTransport(link, SCHEDULER)
        assert (await transport.request("GET", "/broken")).code == 500
        with pytest.raises(TransportError, match="the stream broke: broken"):
            async with transport.stream("/broken"):
                pass

    played(story)


def test_a_lost_link_ends_everything() -> None:
    async def story(_app: Application, link: Link, server: LinkServer) -> None:
        transport = LinkTransport(link, SCHEDULER)
        hanging = transport.request("GET", "/hang")
        async with transport.stream("/watch") as stream:
            assert await anext(stream.chunks) == b"first"
            closing = asyncio.create_task(server.close())
            with pytest.raises(TransportError, match="the link to the API server is lost"):
                await anext(stream.chunks)
        with pytest.raises(TransportError) as caught:
            await hanging
        assert caught.value.was_sent
        await closing
        with pytest.raises(TransportError) as caught:
            await transport.request("GET", "/")
        assert not caught.value.was_sent
        assert link.is_lost.is_set()

    played(story)


def test_the_server_can_ask_too() -> None:
    async def story(_app: Application, link: Link, server: LinkServer) -> None:
        async def serve(frame: RequestFrame) -> ResponseFrame:
            return ResponseFrame(200, [], f"{frame.path}!".encode(), frame.id)

        link.serve = serve
        assert (await server.ask("/metrics/scheduler", [])).body == b"/metrics/scheduler!"
        link.close()
        await link.is_lost.wait()
        with pytest.raises(LinkLostError):
            await server.ask("/metrics/scheduler", [])

    played(story)


def test_closing_a_transport_leaves_the_others_alone() -> None:
    async def story(_app: Application, link: Link, _: LinkServer) -> None:
        one, other = LinkTransport(link, SCHEDULER), LinkTransport(link, SCHEDULER)
        async with one.stream("/watch") as stream:
            assert await anext(stream.chunks) == b"first"
            await one.close()
            with pytest.raises(TransportError, match="the client was closed"):
                await anext(stream.chunks)
        assert (await other.request("GET", "/")).code == 200

    played(story)


def test_each_component_asks_as_itself_and_others_not_at_all() -> None:
    async def story(app: Application, link: Link, _: LinkServer) -> None:
        for user in (SCHEDULER, CONTROLLER_MANAGER, ComponentUser("root", ("system:masters",))):
            await LinkTransport(link, user).request("GET", "/")

        found = [scope["extensions"].get(USER) for scope in app.scopes]
        assert found == [SCHEDULER, CONTROLLER_MANAGER, None]

    played(story)


class Connection(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass


def test_frames_of_one_iteration_are_two_writes_in_order() -> None:
    """The first one does not wait, the others wake the other end once."""

    async def run() -> None:
        received: list[AnyFrame] = []
        sender = FrameProtocol(received.extend, lambda: None)
        connection = Connection()
        sender.connection_made(connection)
        sent = [ChunkFrame(number, b"x" * number) for number in range(1, 6)]

        for frame in sent[:4]:
            sender.send(frame)
        assert len(connection.writes) == 1
        await asyncio.sleep(0)
        assert len(connection.writes) == 2
        sender.send(sent[4])
        assert len(connection.writes) == 3

        receiver = FrameProtocol(received.extend, lambda: None)
        receiver.data_received(b"".join(connection.writes))
        assert received == sent

        received.clear()
        for write in connection.writes:  # of which the second has several frames
            for place in range(len(write)):
                receiver.data_received(write[place : place + 1])
        assert received == sent

    asyncio.run(run())


def test_frames_are_written_before_the_connection_is_closed() -> None:
    async def run() -> None:
        sender = FrameProtocol(lambda _: None, lambda: None)
        connection = Connection()
        sender.connection_made(connection)
        sender.send(ChunkFrame(1, b"first"))
        sender.send(ChunkFrame(2, b"second"))

        sender.close()

        assert b"second" in b"".join(connection.writes)

    asyncio.run(run())
