"""Requests and responses of the dashboard, on the ASGI interface that uvicorn calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl

from allot.dashboard.access import SECURITY_HEADERS

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

JSON: Final = "application/json"
HTML: Final = "text/html; charset=utf-8"
EVENTS: Final = "text/event-stream; charset=utf-8"


class ClientDisconnectedError(Exception):
    """The client has gone before its request was read."""


class BodyError(Exception):
    """The body of a request is not read."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Request:
    """A request over HTTP. Names of headers are written as in `Content-Type`; of several equal ones, the first counts."""

    def __init__(self, scope: Mapping[str, Any], receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        """Without the query, unescaped."""
        query: bytes = scope["query_string"]
        self.query = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
        received = [
            (name.decode("latin-1").title(), value.decode("latin-1"))
            for name, value in scope["headers"]
        ]
        self.headers = dict(reversed(received))
        self.cookies = _cookies(value for name, value in received if name == "Cookie")
        self._receive = receive

    async def body(self, content_type: str, max_bytes: int) -> bytes:
        """The whole body. `BodyError` if it has another type or more bytes."""
        if self.headers.get("Content-Type", "").partition(";")[0].strip() != content_type:
            raise BodyError(415, f"the body must be {content_type}")
        body = bytearray()
        has_more = True
        while has_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnectedError
            body += message.get("body", b"")
            if len(body) > max_bytes:
                raise BodyError(413, f"the body has more than {max_bytes} bytes")
            has_more = message.get("more_body", False)
        return bytes(body)

    async def disconnected(self) -> None:
        """Wait until the client has gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


class Response:
    """A response with the security headers. uvicorn leaves the body out if the request is a HEAD."""

    def __init__(
        self,
        body: bytes,
        content_type: str = "",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.headers = {"Cache-Control": "no-store", **(headers or {}), **SECURITY_HEADERS}
        if content_type:
            self.headers["Content-Type"] = content_type
        self._body = body

    async def send(self, send: Send) -> None:
        await self._send_head(send, {**self.headers, "Content-Length": str(len(self._body))})
        await send({"type": "http.response.body", "body": self._body})

    async def _send_head(self, send: Send, headers: Mapping[str, str]) -> None:
        raw: RawHeaders = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers.items()
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": raw})


class StreamedResponse(Response):
    """A response whose body has no known length: the caller sends it in pieces."""

    def __init__(self, content_type: str, headers: Mapping[str, str]) -> None:
        super().__init__(b"", content_type, headers=headers)

    async def begin(self, send: Send) -> None:
        await self._send_head(send, self.headers)

    async def send_piece(self, send: Send, data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, send: Send) -> None:
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _cookies(headers: Iterable[str]) -> dict[str, str]:
    pairs = (pair.partition("=") for header in headers for pair in header.split(";"))
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs}
