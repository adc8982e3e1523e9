"""The transport to an API server in this process: requests call its ASGI application.

They pass the same authentication, admission and validation as over HTTP. A request runs in the
caller's task; a stream has its own task, and hands over one chunk at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from allot.client.asgi import (
    DISCONNECT,
    Application,
    CollectedAnswer,
    Message,
    SharedHeaders,
    headers_with,
    http_scope,
)
from allot.client.component_users import ComponentUser
from allot.client.errors import TransportError
from allot.client.transport import JSON, ClusterTransport, Query, Response, Stream, encoded_query


class InProcessTransport(ClusterTransport):
    """Requests to an ASGI application, as a component of the cluster or as the user that a token stands for."""

    def __init__(
        self, app: Application, user: str | ComponentUser, user_agent: str = "allot"
    ) -> None:
        self._app = app
        self._headers: SharedHeaders = ((b"user-agent", user_agent.encode()),)
        self._user = user if isinstance(user, ComponentUser) else None
        if isinstance(user, str):
            self._headers += ((b"authorization", f"Bearer {user}".encode()),)
        self._streams: set[_Handover] = set()

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        given = [
            *headers_with(self._headers, body, content_type, headers)
        ]  # applications may change it
        body = body or b""
        answer = CollectedAnswer(body)
        scope = http_scope(method, path, encoded_query(query).encode(), given, body, self._user)
        # With storage in memory a request never waits: yield to other tasks.
        await asyncio.sleep(0)
        await self._app(scope, answer.receive, answer.send)
        if not answer.code:
            raise TransportError("no response from the application", was_sent=True)
        return Response(answer.code, answer.headers, answer.body)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        handover = _Handover()
        given = [*headers_with(self._headers, None, headers=headers)]
        asked = encoded_query(query).encode()
        handover.run(self._app, http_scope("GET", path, asked, given, user=self._user))
        self._streams.add(handover)
        try:
            await handover.started()
            yield Stream(handover.code, handover.headers, handover.chunks())
        finally:
            self._streams.discard(handover)
            await handover.close()

    async def close(self) -> None:
        """Abort all streams."""
        for handover in tuple(self._streams):
            await handover.close()


class _Handover:
    """A queue of one chunk between the application's task and the reader."""

    def __init__(self) -> None:
        self.code = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._piece: bytes | None = None
        self._is_over = False
        self._failure: Exception | None = None
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self._gone = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def run(self, app: Application, scope: MutableMapping[str, Any]) -> None:
        self._task = asyncio.create_task(self._run(app, scope))

    async def _run(self, app: Application, scope: MutableMapping[str, Any]) -> None:
        try:
            await app(scope, self._receive, self._send)
        except Exception as error:  # noqa: BLE001 - the reader is told instead
            self._failure = error
        finally:
            self._is_over = True
            self._filled.set()

    async def _receive(self) -> Message:
        await self._gone.wait()
        return DISCONNECT

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
            self.headers = message["headers"]
            return
        while self._piece is not None and not self._gone.is_set():
            self._emptied.clear()
            await self._emptied.wait()
        if self._gone.is_set():
            return
        self._piece = message.get("body", b"")
        self._filled.set()

    async def started(self) -> None:
        await self._filled.wait()
        if not self.code:
            await self.close()
            raise TransportError(
                "no response from the application", was_sent=True
            ) from self._failure

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            await self._filled.wait()
            piece, self._piece = self._piece, None
            if piece is None:
                if self._failure is not None:
                    raise TransportError("the stream broke", was_sent=True) from self._failure
                return
            if not self._is_over:
                self._filled.clear()
            self._emptied.set()
            if piece:
                yield piece

    async def close(self) -> None:
        self._gone.set()
        self._emptied.set()
        task, self._task = self._task, None
        if task is None:
            return
        _, unfinished = await asyncio.wait((task,), timeout=1)
        if unfinished:
            task.cancel()
            await asyncio.wait((task,))
