from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from allot.client.asgi import Application
from allot.client.errors import TransportError
from allot.client.in_process import InProcessTransport
from tests.unit.client.fakes import settle

START = {"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"b")]}


def piece(content: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}


def play(app: Application, scenario: Callable[[InProcessTransport], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(120):
            await scenario(InProcessTransport(app, "secret"))

    asyncio.run(main())


def test_a_request_and_its_answer() -> None:
    seen: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope, body=(await receive())["body"])
        await send(START)
        await send(piece(b"a"))
        await send(piece(b"b", more=False))

    async def scenario(transport: InProcessTransport) -> None:
        response = await transport.request(
            "PUT", "/a%2Fb", {"q": "x y&z"}, b"{}", "text/x", {"x-y": "z"}
        )
        assert (response.code, response.body, response.header(b"x-a")) == (200, b"ab", b"b")
        assert response.header(b"retry-after") is None

    play(app, scenario)
    assert (seen["method"], seen["path"], seen["raw_path"]) == ("PUT", "/a/b", b"/a%2Fb")
    assert (seen["query_string"], seen["body"]) == (b"q=x+y%26z", b"{}")
    headers = dict(seen["headers"])
    assert headers[b"authorization"] == b"Bearer secret"
    assert (headers[b"content-type"], headers[b"x-y"]) == (b"text/x", b"z")


def test_a_stream_waits_for_its_reader() -> None:
    sent: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        for number in range(100):
            await send(piece(b"%d" % number))
            sent.append(number)
        await send(piece(b"", more=False))

    async def scenario(transport: InProcessTransport) -> None:
        async with transport.stream("/watch") as stream:
            assert stream.code == 200
            await settle()
            assert len(sent) == 1
            read = []
            async for chunk in stream.chunks:
                read.append(int(chunk))
                await settle()
                assert len(sent) <= len(read) + 1
            assert read == list(range(100))

    play(app, scenario)


def test_a_reader_that_leaves_ends_the_stream() -> None:
    ended: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        leaving = asyncio.ensure_future(receive())
        while not leaving.done():
            await send(piece(b"x"))
            await asyncio.sleep(0)
        ended.append(leaving.result()["type"])

    async def scenario(transport: InProcessTransport) -> None:
        async with transport.stream("/watch") as stream:
            await anext(stream.chunks)
        assert ended == ["http.disconnect"]
        async with transport.stream("/watch") as stream:
            await anext(stream.chunks)
            await transport.close()
            assert len(ended) == 2

    play(app, scenario)


def test_an_application_that_does_not_notice_is_cancelled() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        await send(piece(b"x"))
        await asyncio.Event().wait()

    async def scenario(transport: InProcessTransport) -> None:
        async with transport.stream("/watch"):
            pass

    play(app, scenario)


@pytest.mark.parametrize("begun", [True, False])
def test_an_application_that_fails_is_a_lost_connection(begun: bool) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if begun:
            await send(START)
            await send(piece(b"x"))
        raise RuntimeError("oh")

    async def read(transport: InProcessTransport) -> None:
        async with transport.stream("/watch") as stream:
            async for _ in stream.chunks:
                pass

    async def scenario(transport: InProcessTransport) -> None:
        with pytest.raises(TransportError):
            await read(transport)

    play(app, scenario)


def test_requests_let_others_have_their_turn() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        await send(piece(b"", more=False))

    async def scenario(transport: InProcessTransport) -> None:
        turns: list[int] = []

        async def other() -> None:
            while True:
                turns.append(1)
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(10):
            await transport.request("GET", "/")
        task.cancel()
        assert len(turns) >= 9

    play(app, scenario)


def test_what_an_application_does_to_headers_concerns_one_request() -> None:
    counts: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        counts.append(len(scope["headers"]))
        scope["headers"].append((b"x-request-id", b"1"))
        await send(START)
        await send(piece(b"", more=False))

    async def scenario(transport: InProcessTransport) -> None:
        for body in (b"{}", b"{}", None, None):
            await transport.request("POST", "/a", body=body)

    play(app, scenario)
    assert counts == [3, 3, 2, 2]
