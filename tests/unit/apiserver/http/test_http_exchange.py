"""Transfer rates of slow clients, in virtual time: request bodies and answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from allot.apiserver.api_errors import ApiError
from allot.apiserver.auth.authentication import User
from allot.apiserver.http.exchange import ClientGoneError
from allot.apiserver.http.flow_control import MUTATING, FlowControl, FlowLimits, InFlightRequest
from allot.apiserver.http.http_exchange import (
    MAX_BODY,
    PIECE,
    ConnectionExchange,
    HttpExchange,
    TransferLimits,
    TransferRate,
)
from allot.apiserver.http.metrics import Metrics
from allot.apiserver.http.request_head import RequestHead
from allot.apiserver.http.request_headers import RequestHeaders
from allot.apiserver.http.responses import Response, StreamResponse
from allot.testing.virtual_time import run_in_virtual_time

PACES = TransferLimits(
    reading=TransferRate(10, 1000), sending=TransferRate(20, 1000), watch_seconds=60
)


class Client:
    """The other end of an exchange: how fast it sends and takes."""

    def __init__(self, *, sends: int = 0, every: float = 0.0, takes_after: float = 0.0) -> None:
        self._sends = sends
        self._every = every
        self._takes_after = takes_after
        self.messages: list[Mapping[str, Any]] = []
        self.aborted: list[str] = []

    client = None

    @property
    def is_write_paused(self) -> bool:
        return True

    def whole_body(self) -> None:
        return None

    def answer(self, *_answer: object) -> bool:
        return False

    def send_chunk(self, chunk: bytes) -> bool:
        return False

    def abort(self, reason: str) -> None:
        self.aborted.append(reason)

    def exchange(self, transfer_limits: TransferLimits = PACES, length: str = "") -> HttpExchange:
        headers = RequestHeaders([(b"content-length", length.encode())] if length else [])
        head = RequestHead("POST", "/", b"", headers)
        return ConnectionExchange(head, self, None, transfer_limits)

    async def receive(self) -> dict[str, Any]:
        await asyncio.sleep(self._every)
        return {"type": "http.request", "body": b"x" * self._sends, "more_body": True}

    async def send(self, message: Mapping[str, Any]) -> None:
        await asyncio.sleep(self._takes_after)
        self.messages.append(message)

    @property
    def content(self) -> bytes:
        return b"".join(bytes(message.get("body", b"")) for message in self.messages)


def a_turn() -> InFlightRequest:
    return FlowControl(FlowLimits(), Metrics()).request(User("ann"), MUTATING)


@pytest.mark.parametrize(
    ("sends", "every", "seconds"),
    [
        pytest.param(0, 100.0, 10.0, id="nothing"),
        pytest.param(1, 1.0, 10.0, id="a-byte-a-second"),
        pytest.param(500, 1.0, 19.5, id="half-as-fast"),
    ],
)
def test_slow_bodies_are_given_up(sends: int, every: float, seconds: float) -> None:
    async def story() -> float:
        with pytest.raises(ApiError) as refused:
            await Client(sends=sends, every=every).exchange().read(a_turn())
        assert refused.value.code == 408
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(story()) == pytest.approx(seconds, abs=0.6)


def test_a_body_that_keeps_the_pace_may_take_its_time() -> None:
    async def story() -> float:
        with pytest.raises(ApiError) as refused:
            await (
                Client(sends=100_000, every=50.0)
                .exchange(TransferLimits(reading=TransferRate(60, 2000)))
                .read(a_turn())
            )
        assert refused.value.code == 413  # it never ends, so it becomes too large
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(story()) > MAX_BODY / 2000 - 60


@pytest.mark.parametrize("length", ["4000000", "99999999999999999999", "9" * 5000])
def test_bodies_that_say_they_are_too_large_are_not_read(length: str) -> None:
    async def story() -> None:
        with pytest.raises(ApiError) as refused:
            await Client(every=1.0).exchange(length=length).read(a_turn())
        assert refused.value.code == 413
        assert asyncio.get_running_loop().time() < 1

    run_in_virtual_time(story())


def test_large_answers_go_in_pieces() -> None:
    body = bytes(range(256)) * 4096

    async def story() -> Client:
        client = Client()
        await client.exchange().answer(Response(200, body))
        return client

    client = run_in_virtual_time(story())
    assert client.content == body
    assert all(len(message.get("body", b"")) <= PIECE for message in client.messages)
    assert [message.get("more_body") for message in client.messages[-2:]] == [True, False]


def test_a_client_that_reads_nothing_is_cut_off() -> None:
    async def story() -> tuple[Client, float]:
        client = Client(takes_after=10_000.0)
        with pytest.raises(ClientGoneError):
            await client.exchange().answer(Response(200, b"x" * 1_000_000))
        return client, asyncio.get_running_loop().time()

    client, seconds = run_in_virtual_time(story())
    assert client.aborted == ["slow-reader"]
    assert seconds == pytest.approx(20.0)


def test_a_client_that_reads_a_long_answer_slowly_is_cut_off() -> None:
    async def long() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"x" * 1000

    async def story() -> tuple[Client, float]:
        client = Client(takes_after=2.0)
        with pytest.raises(ClientGoneError):
            await client.exchange().answer(Response(200, b"[", more=long()))
        return client, asyncio.get_running_loop().time()

    client, seconds = run_in_virtual_time(story())
    assert client.aborted == ["slow-reader"]
    assert 30 < seconds < 42  # 20 s, and one more for every 1,000 bytes that were taken in 2 s


def test_time_to_make_an_answer_does_not_count() -> None:
    async def slowly_made() -> AsyncIterator[bytes]:
        for _ in range(5):
            await asyncio.sleep(100)
            yield b"x"

    async def story() -> bytes:
        client = Client(takes_after=0.1)
        await client.exchange().answer(Response(200, b"-", more=slowly_made()))
        return client.content

    assert run_in_virtual_time(story()) == b"-xxxxx"


def test_a_watcher_that_takes_nothing_is_cut_off() -> None:
    async def events() -> AsyncIterator[bytes]:
        yield b"event\n"

    async def story() -> Client:
        client = Client(takes_after=61.0)
        with pytest.raises(ClientGoneError):
            await client.exchange().stream(StreamResponse(events()), lambda _: None)
        return client

    assert run_in_virtual_time(story()).aborted == ["slow-reader"]
