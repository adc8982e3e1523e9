"""Answers that are written at once: what the cycle of a request would write, or left to it."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from allot.apiserver.http.connection_request import ConnectionRequest
from allot.apiserver.http.connections import ConnectionLimits, Connections, Slot
from allot.apiserver.http.http_exchange import (
    ConnectionExchange,
    TransferLimits,
    header_lines,
)
from allot.apiserver.http.metrics import Metrics
from allot.apiserver.http.protocol import ServerProtocol
from allot.apiserver.http.request_tasks import RequestTasks
from allot.apiserver.http.responses import Response


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


class Answering:
    """An application that answers with a function."""

    transfer_limits = TransferLimits()

    def __init__(self, serve: Callable[[ConnectionExchange], Awaitable[None]]) -> None:
        self.serve: Any = serve


def connected(
    serve: Callable[[ConnectionExchange], Awaitable[None]],
) -> tuple[ServerProtocol, Transport]:
    config = uvicorn.Config(serve, http=ServerProtocol, ws="none", lifespan="off")
    config.load()
    state = ServerState()
    state.default_headers = [(b"date", b"now")]
    connections = Connections(ConnectionLimits(), Metrics())
    slot = connections.admit("127.0.0.1", lambda: None)
    assert isinstance(slot, Slot)
    protocol = ServerProtocol(
        connections,
        slot,
        Answering(serve),
        RequestTasks(),
        config=config,
        server_state=state,
        app_state={},
    )
    transport = Transport()
    protocol.connection_made(transport)
    return protocol, transport


def asked(
    request: bytes, answer: Callable[[ConnectionRequest, ServerProtocol], bool]
) -> tuple[bool, Transport]:
    """Whether a request was answered at once, and what was written."""

    async def story() -> tuple[bool, Transport]:
        found: list[bool] = []

        async def serve(_: ConnectionExchange) -> None:
            request = the_request(protocol)
            found.append(answer(request, protocol))
            if not found[0]:
                headers = [(b"content-length", b"0")]
                await request.send(
                    {"type": "http.response.start", "status": 500, "headers": headers}
                )
                await request.send({"type": "http.response.body", "body": b""})

        protocol, transport = connected(serve)
        protocol.data_received(request)
        while not found:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        protocol.connection_lost(ConnectionResetError())
        return found[0], transport

    return asyncio.run(story())


def the_request(protocol: ServerProtocol) -> ConnectionRequest:
    assert protocol.cycle is not None
    return protocol.cycle


LINES = b"content-type: text/plain\r\ncontent-length: 4\r\n"


def write(request: ConnectionRequest, _: ServerProtocol) -> bool:
    return request.answer(200, LINES, b"text")


@pytest.mark.parametrize(
    ("request_line", "is_sent"),
    [
        pytest.param(b"GET / HTTP/1.1", True, id="goes-on"),
        pytest.param(b"GET / HTTP/1.0", False, id="old"),
        pytest.param(b"GET / HTTP/1.1\r\nconnection: close", False, id="asked"),
    ],
)
def test_an_answer_is_written_at_once(request_line: bytes, is_sent: bool) -> None:
    found, transport = asked(request_line + b"\r\n\r\n", write)

    assert found == is_sent
    if is_sent:
        assert transport.written == b"HTTP/1.1 200 OK\r\ndate: now\r\n%b\r\ntext" % LINES
    assert transport.is_closed != is_sent


@pytest.mark.parametrize(
    ("line", "more"),
    [
        pytest.param(b"", [], id="goes-on"),
        pytest.param(b"connection: close\r\n", [b"connection: close"], id="asked"),
        pytest.param(b"audit-id: mine\r\n", [], id="named"),
    ],
)
def test_answers_are_the_same_at_once_and_in_steps(line: bytes, more: list[bytes]) -> None:
    """Those to requests that end the connection, or have a name, go in steps."""

    async def story() -> bytes:
        async def serve(exchange: ConnectionExchange) -> None:
            await exchange.answer(Response(201, b"text", "text/plain", ((b"warning", b"w"),)))

        protocol, transport = connected(serve)
        protocol.data_received(b"GET / HTTP/1.1\r\n%b\r\n" % line)
        await asyncio.sleep(0)
        return transport.written

    written = re.sub(rb"audit-id: [0-9a-z-]+\r\n", b"", asyncio.run(story()))
    *lines, _, body = written.split(b"\r\n")
    assert body == b"text"
    assert sorted(lines) == sorted(
        [
            b"HTTP/1.1 201 Created",
            b"cache-control: no-cache, private",
            *more,
            b"content-length: 4",
            b"content-type: text/plain",
            b"date: now",
            b"warning: w",
        ]
    )


@pytest.mark.parametrize(
    "value",
    [b"a\r\nset-cookie: b", b"a\nb", b"a\rb", b"a\r", b"a\n", b"a\0", b"\x7f", b"\x0b", b"\x1f"],
)
def test_headers_that_would_begin_another_one_are_not_written(value: bytes) -> None:
    assert header_lines("text/plain", b"private", ((b"warning", value),)) == b""
    assert header_lines("text/plain", b"private", ((value, b"text"),)) == b""


def test_a_header_may_have_tabs_and_other_alphabets() -> None:
    lines = header_lines("text/plain", b"private", ((b"warning", b"a\tb\xe4"),))

    assert lines.endswith(b"\r\nwarning: a\tb\xe4\r\n")


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

    def take(connection: ConnectionRequest, protocol: ServerProtocol) -> bool:
        protocol.flow.pause_reading()
        found.append(connection.whole_body())
        assert protocol.flow.read_paused == (body is None)
        assert the_request(protocol).message_event.is_set() == (
            body is None and b"te" in request_bytes
        )
        return write(connection, protocol)

    asked(request_bytes, take)

    assert found == [body]


def test_an_idle_connection_keeps_no_headers() -> None:
    def answer(connection: ConnectionRequest, protocol: ServerProtocol) -> bool:
        assert protocol.headers == []
        assert the_request(protocol)._head is None
        return write(connection, protocol)

    is_sent, _ = asked(b"GET / HTTP/1.1\r\nx-long: %b\r\n\r\n" % (b"x" * 100_000), answer)
    assert is_sent


def test_a_client_that_is_gone_has_no_whole_body() -> None:
    found: list[bytes | None] = []

    def take(connection: ConnectionRequest, protocol: ServerProtocol) -> bool:
        the_request(protocol).disconnected = True
        found.append(connection.whole_body())
        the_request(protocol).disconnected = False
        connection.answer(200, LINES, b"text")
        found.append(connection.whole_body())
        return True

    asked(BODY % (b"", b"text"), take)

    assert found == [None, None]


def test_chunks_are_written_when_the_answer_consists_of_chunks() -> None:
    def answer(connection: ConnectionRequest, _: ServerProtocol) -> bool:
        return connection.send_chunk(b"early")

    assert asked(b"GET / HTTP/1.1\r\n\r\n", answer)[0] is False

    def streamed(connection: ConnectionRequest, protocol: ServerProtocol) -> bool:
        begin(protocol)
        assert not connection.send_chunk(b"")
        assert connection.send_chunk(b"x" * 17)
        protocol.pause_writing()
        assert not connection.send_chunk(b"later")
        protocol.resume_writing()
        the_request(protocol).disconnected = True
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
        the_request(protocol).send(start).send(None)


def answered_head(connection: ConnectionRequest, protocol: ServerProtocol) -> bool:
    begin(protocol)
    assert not connection.send_chunk(b"a body")
    the_request(protocol).disconnected = True
    return True


def test_a_client_that_takes_nothing_is_waited_for() -> None:
    def answer(connection: ConnectionRequest, protocol: ServerProtocol) -> bool:
        protocol.pause_writing()
        try:
            return write(connection, protocol)
        finally:
            protocol.resume_writing()

    assert asked(b"GET / HTTP/1.1\r\n\r\n", answer)[0] is False


def test_a_client_that_is_gone_gets_nothing() -> None:
    def answer(connection: ConnectionRequest, protocol: ServerProtocol) -> bool:
        protocol.connection_lost(ConnectionResetError())
        return write(connection, protocol)

    is_sent, transport = asked(b"GET / HTTP/1.1\r\n\r\n", answer)

    assert not is_sent
    assert transport.written == b""


def test_an_answered_request_is_freed_without_a_search_for_cycles() -> None:
    """Of those that take long, cycles are never found."""

    async def serve(exchange: ConnectionExchange) -> None:
        await exchange.answer(Response(200, b"body"))

    async def story() -> None:
        protocol, _ = connected(serve)
        cycles = []
        for _ in range(4):
            protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
            cycles.append(weakref.ref(the_request(protocol)))
            while not the_request(protocol).response_complete:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert [cycle() for cycle in cycles[:-1]] == [None] * 3
        protocol.connection_lost(None)

    gc.disable()
    try:
        asyncio.run(story())
    finally:
        gc.enable()
