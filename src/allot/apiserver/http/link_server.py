"""The server's end of a link to other components of the same cluster (`client/link.py`)."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from itertools import count
from typing import Any

from allot.client.asgi import (
    DISCONNECT,
    Application,
    CollectedAnswer,
    Headers,
    Message,
    http_scope,
)
from allot.client.component_users import component_user
from allot.client.link import (
    WINDOW,
    AnyFrame,
    CancelFrame,
    ChunkFrame,
    EndFrame,
    FrameProtocol,
    HeadFrame,
    RequestFrame,
    ResponseFrame,
    TakenFrame,
)

log = logging.getLogger(__name__)


class LinkLostError(Exception):
    """The components at the other end are gone. They are being started again."""


class LinkServer:
    """Answers what comes over one link, as requests of the components that they name."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._protocol = FrameProtocol(self._received, self._on_lost)
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams: dict[int, _Outgoing] = {}
        self._ids = count(1)
        self._answers: dict[int, asyncio.Future[ResponseFrame]] = {}
        self._is_lost = False

    async def start(self, connection: socket.socket) -> None:
        """Serve a connected socket, which is closed in the end."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self._protocol, sock=connection)

    async def close(self) -> None:
        self._protocol.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ask(self, path: str, headers: Headers) -> ResponseFrame:
        """What the other end answers to a GET; `LinkLostError` if it is gone."""
        if self._is_lost:
            raise LinkLostError
        number = next(self._ids)
        answer: asyncio.Future[ResponseFrame] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self._protocol.send(RequestFrame(number, "GET", path, "", headers, b"", False))
        try:
            return await answer
        finally:
            self._answers.pop(number, None)

    def _received(self, frame: AnyFrame) -> None:
        match frame:
            case ResponseFrame() if frame.id in self._answers:
                self._answers.pop(frame.id).set_result(frame)
            case RequestFrame(is_stream=False):
                self._spawn(self._answer(frame))
            case RequestFrame():
                stream = self._streams[frame.id] = _Outgoing(frame.id, self._protocol.send)
                self._spawn(self._serve(frame, stream))
            case CancelFrame() if frame.id in self._streams:
                self._streams[frame.id].leave()
            case TakenFrame() if frame.id in self._streams:
                self._streams[frame.id].taken(frame.size)
            case _:
                pass  # about a stream that has ended, or for clients only

    def _on_lost(self) -> None:
        self._is_lost = True
        for stream in self._streams.values():
            stream.leave()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(LinkLostError())

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, frame: RequestFrame) -> None:
        answer = CollectedAnswer(frame.body)
        try:
            await self._app(self._scope(frame), answer.receive, answer.send)
        except Exception:
            log.exception("%s %s failed", frame.method, frame.path)
        code = answer.code or 500
        self._protocol.send(ResponseFrame(frame.id, code, answer.headers, answer.body))

    async def _serve(self, frame: RequestFrame, stream: _Outgoing) -> None:
        failure = ""
        try:
            await self._app(self._scope(frame), stream.receive, stream.send)
        except Exception as error:
            log.exception("watch of %s failed", frame.path)
            failure = f"the stream broke: {error}"
        finally:
            del self._streams[frame.id]
        self._protocol.send(EndFrame(frame.id, failure))

    def _scope(self, frame: RequestFrame) -> dict[str, Any]:
        # Who is no component of a cluster needs credentials, which do not come over a link.
        user = component_user(frame.user)
        query = frame.query.encode()
        return http_scope(frame.method, frame.path, query, frame.headers, frame.body, user)


class _Outgoing:
    """A stream, as the application writes it."""

    def __init__(self, number: int, send: Callable[[AnyFrame], None]) -> None:
        self._number = number
        self._send = send
        self._ahead = 0
        self._room = asyncio.Event()
        self._room.set()
        self._left = asyncio.Event()

    def taken(self, size: int) -> None:
        self._ahead -= size
        if self._ahead < WINDOW:
            self._room.set()

    def leave(self) -> None:
        self._left.set()
        self._room.set()

    async def receive(self) -> Message:
        await self._left.wait()
        return DISCONNECT

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._send(HeadFrame(self._number, message["status"], message["headers"]))
            return
        body = message.get("body", b"")
        if not body:
            return
        await self._room.wait()
        if self._left.is_set():
            return
        self._ahead += len(body)
        if self._ahead >= WINDOW:
            self._room.clear()
        self._send(ChunkFrame(self._number, body))
