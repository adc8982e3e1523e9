"""Requests that begin with the head of the one before: they are answered like those that are parsed."""

from __future__ import annotations

import asyncio
import random
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import pytest

from allot.apiserver.auth.authentication import User
from allot.apiserver.http import request_head
from allot.apiserver.http.flow_control import MUTATING, FlowControl, FlowLimits
from allot.apiserver.http.http_exchange import ConnectionExchange
from allot.apiserver.http.metrics import Metrics
from allot.apiserver.http.protocol import ServerProtocol
from allot.apiserver.http.responses import Response
from tests.step_counts import steps
from tests.unit.apiserver.http.test_protocol import Transport, connected

ANN = User("ann")


class Seen(NamedTuple):
    """What an application is asked."""

    method: str
    path: str
    x: bytes
    body: bytes


class Recording:
    """Reads and answers all requests of one connection."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.answered = 0
        self._flow = FlowControl(FlowLimits(), Metrics())

    async def serve(self, exchange: ConnectionExchange) -> None:
        request = self._flow.request(ANN, MUTATING)
        body = await exchange.read(request)
        request.end()
        self.seen.append(Seen(exchange.method, exchange.path, exchange.header(b"x"), body))
        await exchange.answer(Response(200, b"answer"))
        self.answered += 1


def text(request: Seen, form: str) -> bytes:
    """The bytes of a request, in one of several forms that mean the same."""
    line = f"{request.method} {request.path} HTTP/1.1\r\n".encode()
    if form == "chunked":
        chunk = b"%x\r\n%b\r\n" % (len(request.body), request.body) if request.body else b""
        return b"%bTransfer-Encoding: chunked\r\nX: %b\r\n\r\n%b0\r\nX: t\r\n\r\n" % (
            line,
            request.x,
            chunk,
        )
    length = b"Content-Length: %d\r\n" % len(request.body) if request.body else b""
    separator = b":" if form == "narrow" else b": "
    return b"%b%bX%b%b\r\n\r\n%b" % (line, length, separator, request.x, request.body)


def a_request(dice: random.Random, known: list[Seen]) -> Seen:
    """Mostly one that has a head as others before."""
    if known and dice.random() < 0.8:
        like = dice.choice(known)
    else:
        like = Seen(
            dice.choice(("POST", "GET")), dice.choice(("/a", "/b")), dice.choice((b"", b"1")), b""
        )
        like = like._replace(body=b"b" * dice.choice((0, 1, 90)))
    # A body may look like a request.
    inner = text(like._replace(body=b""), "plain") * 9
    return like._replace(
        body=(dice.choice((b"", b"\r\n\r\n", inner)) + b"z" * 90)[: len(like.body)]
    )


@pytest.mark.parametrize("seed", range(40))
def test_repeated_heads_are_read_like_others(seed: int) -> None:
    """However the bytes arrive: in pieces, and before the answer to the request before."""
    dice = random.Random(seed)  # noqa: S311
    sent: list[Seen] = []
    pieces: list[bytes] = []
    for _ in range(30):
        sent.append(a_request(dice, sent[-2:]))
        written = text(sent[-1], dice.choice(("plain", "plain", "plain", "narrow", "chunked")))
        at = dice.choice((0, 0, dice.randrange(len(written))))
        pieces += [piece for piece in (written[:at], written[at:]) if piece]
    while len(pieces) > 70:  # some arrive together
        at = dice.randrange(len(pieces) - 1)
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]

    async def story() -> tuple[Recording, Transport]:
        recording = Recording()
        protocol, transport = connected(recording.serve)
        for piece in pieces:
            protocol.data_received(piece)
            for _ in range(dice.choice((0, 6))):
                await asyncio.sleep(0)
        for _ in range(200):
            await asyncio.sleep(0)
        return recording, transport

    recording, transport = asyncio.run(story())
    assert recording.seen == sent
    assert transport.written.count(b"HTTP/1.1 200 OK\r\n") == len(sent)
    assert not transport.is_closed


INSERTED = (
    b"\r\n", b"\n", b"\r", b" ", b"0", b"\r\n\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 3\r\n", b"Connection: close\r\n", b"Expect: 100-continue\r\n",
)  # fmt: skip


def damaged(dice: random.Random, request: bytes) -> bytes:
    at = dice.randrange(len(request))
    match dice.randrange(3):
        case 0:
            return request[:at] + bytes([dice.choice(b"\r\n :0159aZ\0")]) + request[at + 1 :]
        case 1:
            return request[:at] + request[at + dice.randrange(1, 4) :]
        case _:
            return request[:at] + dice.choice(INSERTED) + request[at:]


async def conversation(pieces: list[bytes], steps_between: list[int]) -> tuple[object, ...]:
    """What a client that sends these pieces causes."""
    recording = Recording()
    protocol, transport = connected(recording.serve)
    for piece, count in zip(pieces, steps_between, strict=True):
        if transport.is_closing():
            break
        protocol.data_received(piece)
        for _ in range(count):
            await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
    state = protocol._slot.state, protocol._head_size
    protocol.connection_lost(None)
    for _ in range(30):
        await asyncio.sleep(0)
    written = re.sub(rb"audit-id: \S+", b"", transport.written)
    return recording.seen, written, transport.is_closed, state


@pytest.mark.parametrize("seed", range(150))
def test_damaged_requests_are_taken_as_if_all_were_parsed(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)  # noqa: S311
    pieces: list[bytes] = []
    for _ in range(12):
        like = Seen("POST", "/a", b"1", b"b" * dice.choice((0, 5, 5, 5)))
        written = text(like, dice.choice(("plain",) * 6 + ("narrow", "chunked")))
        for _ in range(dice.choice((0,) * 8 + (1, 2))):
            written = damaged(dice, written)
        at = dice.choice((0, 0, 0, dice.randrange(len(written))))
        pieces += [piece for piece in (written[:at], written[at:]) if piece]
    steps_between = [dice.choice((0, 8, 8, 8)) for _ in pieces]

    found = asyncio.run(conversation(pieces, steps_between))
    monkeypatch.setattr(request_head, "_as_sent", lambda *_: b"")  # none is remembered
    assert found == asyncio.run(conversation(pieces, steps_between))


REQUEST = text(Seen("POST", "/pods", b"1", b"x" * 400), "plain")


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        pytest.param(b"Accept: a", False, id="plain"),
        pytest.param(b"Connection: keep-alive", False, id="keep-alive"),
        pytest.param(b"Connection: close", True, id="last"),
        pytest.param(b"Expect: 100-continue", True, id="asks"),
        pytest.param(b"Connection: upgrade\r\nUpgrade: h2c", True, id="upgrade"),
        pytest.param(b"A: " + b"x" * 3000, True, id="long"),
    ],
)
def test_which_heads_are_parsed_each_time(
    line: bytes, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = 0
    begin = ServerProtocol.on_message_begin

    def counted(self: ServerProtocol) -> None:
        nonlocal parsed
        parsed += 1
        begin(self)

    monkeypatch.setattr(ServerProtocol, "on_message_begin", counted)
    request = REQUEST.replace(b"\r\n", b"\r\n%b\r\n" % line, 1)

    async def story() -> int:
        recording = Recording()
        protocol, _ = connected(recording.serve)
        for _ in range(5):
            protocol.data_received(request)
            for _ in range(6):
                await asyncio.sleep(0)
        return len(recording.seen)

    seen = asyncio.run(story())
    assert seen == (1 if line == b"Connection: close" else 5)
    assert parsed == (seen if is_read else 2)


def test_an_answer_before_the_body_leaves_the_rest_of_the_body() -> None:
    async def story() -> tuple[list[bytes], bytes]:
        bodies: list[bytes] = []

        async def serve(exchange: ConnectionExchange) -> None:
            bodies.append(exchange.header(b"x"))
            await exchange.answer(Response(401, b"no"))

        protocol, transport = connected(serve)
        for _ in range(4):
            protocol.data_received(REQUEST[:-300])
            for _ in range(4):
                await asyncio.sleep(0)
            protocol.data_received(REQUEST[-300:])
        return bodies, transport.written

    bodies, written = asyncio.run(story())
    assert bodies == [b"1"] * 4
    assert written.count(b"HTTP/1.1 401 ") == 4


@pytest.mark.parametrize("early", [True, False])
def test_a_client_that_leaves_during_a_repeated_request_is_noticed(early: bool) -> None:
    """As for watches: a request whose body is not read hears that the client is gone."""

    async def story() -> list[str]:
        heard: list[str] = []

        async def serve(exchange: ConnectionExchange) -> None:
            if protocol.server_state.total_requests < 3:
                await exchange.answer(Response(200, b"answer"))
                return
            while "http.disconnect" not in heard:
                heard.append((await exchange.receive())["type"])

        protocol, _ = connected(serve)
        for _ in range(4):
            protocol.data_received(b"GET /pods?watch=1 HTTP/1.1\r\nX: 1\r\n\r\n")
            for _ in range(0 if early and protocol.server_state.total_requests == 3 else 4):
                await asyncio.sleep(0)
        protocol.connection_lost(ConnectionResetError())
        for _ in range(4):
            await asyncio.sleep(0)
        return heard

    assert asyncio.run(story()) == ["http.disconnect"]


@pytest.mark.parametrize("repeats", [0, 3])
def test_a_client_that_leaves_after_a_further_request_is_noticed(repeats: int) -> None:
    """The request that is being answered hears it, and not only the one that came last."""

    async def story() -> list[str]:
        heard: list[str] = []

        async def serve(exchange: ConnectionExchange) -> None:
            if protocol.server_state.total_requests < repeats:
                await exchange.answer(Response(200, b"answer"))
                return
            while "http.disconnect" not in heard:
                heard.append((await exchange.receive())["type"])

        protocol, _ = connected(serve)
        for _ in range(repeats + 2):
            protocol.data_received(b"GET /pods?watch=1 HTTP/1.1\r\nX: 1\r\n\r\n")
            for _ in range(4):
                await asyncio.sleep(0)
        protocol.connection_lost(ConnectionResetError())
        for _ in range(4):
            await asyncio.sleep(0)
        return heard

    assert asyncio.run(story())[-1:] == ["http.disconnect"]


def test_a_request_knows_where_it_came_from_when_its_client_is_gone() -> None:
    """The audit log takes requests without an address for those of this host."""

    async def story() -> list[object]:
        clients: list[object] = []

        async def serve(exchange: ConnectionExchange) -> None:
            clients.append(exchange.scope["client"])
            await exchange.answer(Response(200, b"answer"))
            if len(clients) == 1:
                protocol.connection_lost(ConnectionResetError())  # the next request has begun

        protocol, _ = connected(serve)
        protocol.client = ("192.0.2.1", 1234)
        protocol.data_received(REQUEST * 2)
        for _ in range(6):
            await asyncio.sleep(0)
        return clients

    assert asyncio.run(story()) == [("192.0.2.1", 1234)] * 2


def test_what_a_repeated_request_costs() -> None:
    """On its way to the application and back. Parsed each time, with a task of its own, it took 1,824 steps and 124 calls."""

    async def serve(exchange: ConnectionExchange) -> None:
        await exchange.read(in_flight)
        await exchange.answer(Response(201, b"answer"))

    in_flight: Any = FlowControl(FlowLimits(), Metrics()).request(ANN, MUTATING, exempt=True)

    def taken(count: Callable[[Callable[[], None]], int]) -> int:
        loop = asyncio.new_event_loop()
        protocol, transport = loop.run_until_complete(on_loop())

        def iterate() -> None:
            for _ in range(3):
                loop.call_soon(loop.stop)
                loop.run_forever()

        def ask() -> None:
            transport.written = b""
            loop.call_soon(protocol.data_received, REQUEST)
            iterate()
            assert transport.written

        for _ in range(3):
            ask()
        # The least of a few: garbage may be collected during any.
        found = min(count(ask) for _ in range(4)) - min(count(iterate) for _ in range(4))
        protocol._tasks.close()
        iterate()
        loop.close()
        return found

    async def on_loop() -> tuple[ServerProtocol, Transport]:
        return connected(serve)

    assert taken(steps) <= 1100
    assert taken(calls) <= 75


def calls(work: Callable[[], None]) -> int:
    count = 0

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
