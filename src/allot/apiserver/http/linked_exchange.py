"""Requests that came over a link, each with its whole body: the answer goes back in one piece, or as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from allot.apiserver import api_errors
from allot.apiserver.http.flow_control import InFlightRequest
from allot.apiserver.http.http_exchange import MAX_AUDIT_ID, MAX_BODY, type_header
from allot.apiserver.http.request_headers import known_headers
from allot.apiserver.http.requests import parse_query
from allot.apiserver.http.responses import Response, StreamResponse
from allot.apiserver.registry.uids import new_uid
from allot.client.asgi import DISCONNECT, Message, http_scope
from allot.client.component_users import ComponentUser
from allot.client.link import WINDOW, AnyFrame, ChunkFrame, HeadFrame, RequestFrame, ResponseFrame

_NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})


class LinkedExchange:
    """Reads a request from its frame, and keeps what it is answered."""

    certificate: Any = None
    is_in_process = True
    answered: ResponseFrame | None = None
    _audit_id = ""

    def __init__(
        self, frame: RequestFrame, component: ComponentUser | None, *, sees_pending_writes: bool
    ) -> None:
        self._frame = frame
        self.method = frame.method
        self.path = frame.path
        self.component = component
        self.sees_pending_writes = sees_pending_writes
        headers = known_headers(frame.headers)
        self.headers = headers.text
        self.impersonates = headers.impersonates

    @property
    def scope(self) -> dict[str, Any]:
        """The request as ASGI describes it, for those who need more than the rest says."""
        frame = self._frame
        query = frame.query.encode()
        return http_scope(
            frame.method, frame.path, query, [*frame.headers], frame.body, self.component
        )

    @property
    def query(self) -> Mapping[str, str]:
        text = self._frame.query
        return parse_query(text.encode()) if text else _NO_QUERY

    @property
    def audit_id(self) -> str:
        if not self._audit_id:
            given = self.headers.get("audit-id", "")
            self._audit_id = given if 0 < len(given) <= MAX_AUDIT_ID else new_uid()
        return self._audit_id

    async def read(self, _in_flight: InFlightRequest) -> bytes:
        body = self._frame.body
        if len(body) > MAX_BODY:
            raise api_errors.body_too_large(MAX_BODY)
        return body

    async def answer(self, response: Response) -> None:
        body = response.body
        if self.method == "HEAD":
            body = b""
        elif response.more is not None:
            body += b"".join([piece async for piece in response.more])
        headers = [type_header(response.content_type), *response.headers]
        self.answered = ResponseFrame(response.code, headers, body, self._frame.id)

    async def stream(self, response: StreamResponse, count: Callable[[int], None]) -> None:
        """What a watch begins with: `receive` ends it, as its client takes a whole answer."""
        headers = [type_header(response.content_type), *response.headers]
        body = b""
        try:
            async for chunk in response.chunks:
                body += chunk
                count(len(chunk))
        finally:
            self.answered = ResponseFrame(200, headers, body, self._frame.id)

    async def receive(self) -> Message:
        return DISCONNECT

    def abort(self, reason: str) -> None:
        """There is no connection that ends with it."""


class LinkedStream(LinkedExchange):
    """A request whose answer is sent while it is made, as far as the reader has taken it."""

    def __init__(
        self,
        frame: RequestFrame,
        component: ComponentUser | None,
        *,
        sees_pending_writes: bool,
        send: Callable[[AnyFrame], None],
    ) -> None:
        super().__init__(frame, component, sees_pending_writes=sees_pending_writes)
        self._send = send
        self._ahead = 0
        self._room = asyncio.Event()
        """Set when the reader has taken enough, or is gone."""
        self._left = asyncio.Event()
        self._is_left = False

    def taken(self, size: int) -> None:
        """The reader has taken so many bytes."""
        self._ahead -= size
        if self._ahead < WINDOW:
            self._room.set()

    def leave(self) -> None:
        """The reader is gone."""
        self._is_left = True
        self._left.set()
        self._room.set()

    async def receive(self) -> Message:
        await self._left.wait()
        return DISCONNECT

    async def answer(self, response: Response) -> None:
        await super().answer(response)
        answer = self.answered
        assert answer is not None
        self._send(HeadFrame(answer.id, answer.code, [*answer.headers]))
        if answer.body:
            self._send(ChunkFrame(answer.id, answer.body))

    async def stream(self, response: StreamResponse, count: Callable[[int], None]) -> None:
        number, send, room = self._frame.id, self._send, self._room
        headers = [type_header(response.content_type), *response.headers]
        send(HeadFrame(number, 200, headers))
        async for chunk in response.chunks:
            if not chunk:
                continue
            if self._ahead >= WINDOW and not self._is_left:
                room.clear()
                await room.wait()
            if self._is_left:
                continue
            size = len(chunk)
            self._ahead += size
            send(ChunkFrame(number, chunk))
            count(size)
