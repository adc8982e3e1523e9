"""Requests and responses on the ASGI interface, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from allot.dashboard.access import SECURITY_HEADERS
from allot.dashboard.http_messages import (
    JSON,
    BodyError,
    ClientDisconnectedError,
    Message,
    Request,
    Response,
)

DISCONNECT = {"type": "http.disconnect"}
JSON_TYPE = (b"content-type", b"application/json; charset=utf-8")


def a_request(
    *headers: tuple[bytes, bytes], query: bytes = b"", received: Iterable[Message] = ()
) -> Request:
    messages = iter(received)

    async def receive() -> Message:
        return next(messages)

    scope = {"method": "GET", "path": "/", "query_string": query, "headers": headers}
    return Request(scope, receive)


def a_piece(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def test_of_several_equal_headers_the_first_counts() -> None:
    request = a_request((b"host", b"localhost"), (b"sec-fetch-site", b"none"), (b"host", b"evil"))
    assert request.headers == {"Host": "localhost", "Sec-Fetch-Site": "none"}


def test_cookies_of_all_headers() -> None:
    request = a_request((b"cookie", b'a=1; b="2";c'), (b"cookie", b"d=x=y"))
    assert request.cookies == {"a": "1", "b": "2", "c": "", "d": "x=y"}


def test_query_is_unescaped() -> None:
    request = a_request(query=b"name=a%2Fb+c&empty=&other=%C3%BC&broken=%ff&name=last")
    assert request.query == {"name": "last", "empty": "", "other": "ü", "broken": "�"}


def test_a_body_comes_in_pieces() -> None:
    request = a_request(JSON_TYPE, received=[a_piece(b"ab"), a_piece(b"cd", more=False)])
    assert asyncio.run(request.body(JSON, 4)) == b"abcd"


def test_a_large_body_is_not_read_to_its_end() -> None:
    request = a_request(JSON_TYPE, received=[a_piece(b"ab"), a_piece(b"cd")])
    with pytest.raises(BodyError) as raised:
        asyncio.run(request.body(JSON, 3))
    assert raised.value.status == 413


def test_the_client_goes_before_its_body_is_read() -> None:
    request = a_request(JSON_TYPE, received=[a_piece(b"ab"), DISCONNECT])
    with pytest.raises(ClientDisconnectedError):
        asyncio.run(request.body(JSON, 10))


def test_waiting_until_the_client_has_gone() -> None:
    request = a_request(received=[a_piece(b"", more=False), DISCONNECT])
    asyncio.run(request.disconnected())


def test_every_response_has_the_security_headers() -> None:
    sent: list[Any] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(Response(b"{}", JSON, 404, {"X-Frame-Options": "ALLOW"}).send(send))

    headers = dict(sent[0]["headers"])
    for name, value in SECURITY_HEADERS.items():
        assert headers[name.lower().encode()] == value.encode()
    assert headers[b"cache-control"] == b"no-store"
    assert headers[b"content-length"] == b"2"
    assert (sent[0]["status"], sent[1]["body"]) == (404, b"{}")
