"""Answers that are written at once: what the cycle of a request would write, or left to it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from allot.apiserver.http.connections import ConnectionLimits, Connections, Slot
from allot.apiserver.http.http_exchange import (
    CLOSE,
    CONNECTION,
    Headers,
    HttpExchange,
    TransferLimits,
)
from allot.apiserver.http.metrics import Metrics
from allot.apiserver.http.protocol import RequestConnection, ServerProtocol
from allot.apiserver.http.responses import Response

HEADERS: Headers = [(b"content-type", b"text/plain"), (b"content-length", b"4")]


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


def asked(
    request: bytes, answer: Callable[[RequestConnection, ServerProtocol], bool]
) -> tuple[bool, Transport]:
    """Whether a request was answered at once, and what was written."""

    async def story() -> tuple[bool, Transport]:
        found: list[bool] = []

        async def app(scope: Any, _receive: Any, send: Any) -> None:
            connection = scope["extensions"][CONNECTION]
            found.append(answer(connection, protocol))
            if not found[0]:
                headers = [(b"content-length", b"0")]
                await send({"type": "http.response.start", "status": 500, "headers": headers})
                await send({"type": "http.response.body", "body": b""})

        config = uvicorn.Config(app, http=ServerProtocol, ws="none", lifespan="off")
        config.load()
        state = ServerState()
        state.default_headers = [(b"date", b"now")]
        connections = Connections(ConnectionLimits(), Metrics())
        slot = connections.admit("127.0.0.1", lambda: None)
        assert isinstance(slot, Slot)
        protocol = ServerProtocol(
            connections, slot, config=config, server_state=state, app_state={}
        )
        transport = Transport()
        protocol.connection_made(transport)
        protocol.data_received(request)
        while not found:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        protocol.connection_lost(ConnectionResetError())
        return found[0], transport

    return asyncio.run(story())


def write(*more: tuple[bytes, bytes]) -> Callable[[RequestConnection, ServerProtocol], bool]:
    return lambda connection, _: connection.answer(200, [*HEADERS, *more], b"text")


@pytest.mark.parametrize(
    ("request_line", "more", "head", "is_closed"),
    [
        pytest.param(b"GET / HTTP/1.1", [], b"", False, id="goes-on"),
        pytest.param(b"GET / HTTP/1.0", [], b"connection: close\r\n", True, id="old"),
        pytest.param(b"GET / HTTP/1.1", [CLOSE], b"connection: close\r\n", True, id="asked"),
        pytest.param(b"GET / HTTP/1.0", [CLOSE], b"connection: close\r\n", True, id="both"),
    ],
)
def test_an_answer_is_written_at_once(
    request_line: bytes, more: Headers, head: bytes, is_closed: bool
) -> None:
    is_sent, transport = asked(request_line + b"\r\n\r\n", write(*more))

    assert is_sent
    assert transport.written == (
        b"HTTP/1.1 200 OK\r\ndate: now\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n"
        + head
        + b"\r\ntext"
    )
    assert transport.is_closed == is_closed


@pytest.mark.parametrize(
    "value",
    [b"a\r\nset-cookie: b", b"a\nb", b"a\rb", b"a\r", b"a\n", b"a\0", b"\x7f", b"\x0b", b"\x1f"],
)
def test_headers_that_would_begin_another_one_are_not_written(value: bytes) -> None:
    is_sent, transport = asked(b"GET / HTTP/1.1\r\n\r\n", write((b"warning", value)))

    assert not is_sent
    assert b"warning" not in transport.written


def test_a_header_may_have_tabs_and_other_alphabets() -> None:
    is_sent, transport = asked(b"GET / HTTP/1.1\r\n\r\n", write((b"warning", b"a\tb\xe4")))

    assert is_sent
    assert b"\r\nwarning: a\tb\xe4\r\n\r\ntext" in transport.written


BODY = b"POST / HTTP/1.1\r\ncontent-length: 4\r\n%b\r\n%b"


@pytest.mark.parametrize(
    ("request_bytes", "body"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", b"", id="none"),
        pytest.param(BODY % (b"", b"text"), b"text", id="whole"),
        pytest.param(BODY % (b"", b"te"), None, id="part"),
        pytest.param(BODY % (b"expect: 100-continue\r\n", b"text"), None, id="asks"),
    ],
)
def test_a_whole_body_is_taken_at_once(request_bytes: bytes, body: bytes | None) -> None:
    found: list[bytes | None] = []

    def take(connection: RequestConnection, protocol: ServerProtocol) -> bool:
        protocol.flow.pause_reading()
        found.append(connection.whole_body())
        assert protocol.flow.read_paused == (body is None)
        assert protocol.cycle.message_event.is_set() == (body is None and b"te" in request_bytes)
        return write()(connection, protocol)

    asked(request_bytes, take)

    assert found == [body]


def test_an_idle_connection_keeps_no_headers_beside_the_scope() -> None:
    def answer(connection: RequestConnection, protocol: ServerProtocol) -> bool:
        assert protocol.headers == []
        return write()(connection, protocol)

    is_sent, _ = asked(b"GET / HTTP/1.1\r\nx-long: %b\r\n\r\n" % (b"x" * 100_000), answer)
    assert is_sent


def test_a_client_that_is_gone_has_no_whole_body() -> None:
    found: list[bytes | None] = []

    def take(connection: RequestConnection, protocol: ServerProtocol) -> bool:
        protocol.cycle.disconnected = True
        found.append(connection.whole_body())
        protocol.cycle.disconnected = False
        connection.answer(200, HEADERS, b"text")
        found.append(connection.whole_body())
        return True

    asked(BODY % (b"", b"text"), take)

    assert found == [None, None]


def test_chunks_are_written_when_the_answer_consists_of_chunks() -> None:
    def answer(connection: RequestConnection, _: ServerProtocol) -> bool:
        return connection.send_chunk(b"early")

    assert asked(b"GET / HTTP/1.1\r\n\r\n", answer)[0] is False

    def streamed(connection: RequestConnection, protocol: ServerProtocol) -> bool:
        begin(protocol)
        assert not connection.send_chunk(b"")
        assert connection.send_chunk(b"x" * 17)
        protocol.pause_writing()
        assert not connection.send_chunk(b"later")
        protocol.resume_writing()
        protocol.cycle.disconnected = True
        assert not connection.send_chunk(b"gone")
        return True

    _, transport = asked(b"GET / HTTP/1.1\r\n\r\n", streamed)
    assert transport.written == (
        b"HTTP/1.1 200 OK\r\ndate: now\r\ntransfer-encoding: chunked\r\n\r\n"
        b"11\r\nxxxxxxxxxxxxxxxxx\r\n"
    )
    _, transport = asked(b"HEAD / HTTP/1.1\r\n\r\n", answered_head)
    assert transport.written.endswith(b"\r\n\r\n")


def begin(protocol: ServerProtocol) -> None:
    """Write the head of an answer without a length."""
    start: Any = {"type": "http.response.start", "status": 200, "headers": []}
    with pytest.raises(StopIteration):
        protocol.cycle.send(start).send(None)


def answered_head(connection: RequestConnection, protocol: ServerProtocol) -> bool:
    begin(protocol)
    assert not connection.send_chunk(b"a body")
    protocol.cycle.disconnected = True
    return True


def test_a_client_that_takes_nothing_is_waited_for() -> None:
    def answer(connection: RequestConnection, protocol: ServerProtocol) -> bool:
        protocol.pause_writing()
        try:
            return write()(connection, protocol)
        finally:
            protocol.resume_writing()

    assert asked(b"GET / HTTP/1.1\r\n\r\n", answer)[0] is False


def test_a_client_that_is_gone_gets_nothing() -> None:
    def answer(connection: RequestConnection, protocol: ServerProtocol) -> bool:
        protocol.connection_lost(ConnectionResetError())
        return write()(connection, protocol)

    is_sent, transport = asked(b"GET / HTTP/1.1\r\n\r\n", answer)

    assert not is_sent
    assert transport.written == b""


def test_an_answered_request_is_freed_without_a_search_for_cycles() -> None:
    """Of those that take long, cycles are never found."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await HttpExchange(scope, receive, send, TransferLimits()).answer(Response(200, b"body"))

    async def story() -> None:
        config = uvicorn.Config(app, http=ServerProtocol, ws="none", lifespan="off")
        config.load()
        connections = Connections(ConnectionLimits(), Metrics())
        slot = connections.admit("127.0.0.1", lambda: None)
        assert isinstance(slot, Slot)
        protocol = ServerProtocol(
            connections, slot, config=config, server_state=ServerState(), app_state={}
        )
        protocol.connection_made(Transport())
        cycles = []
        for _ in range(2):
            protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
            cycles.append(weakref.ref(protocol.cycle))
            while not protocol.cycle.response_complete:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert cycles[0]() is None
        protocol.connection_lost(None)

    gc.disable()
    try:
        asyncio.run(story())
    finally:
        gc.enable()
