"""The server's end of a link to other components of the same cluster (`client/link.py`).

Components that act through the API alone see writes before they are durable (decision 0015). What they write is
committed with what they have seen or later. When writes are withdrawn the link is cut, and requests that have not been
written yet are abandoned: the components start again from what is stored.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from functools import lru_cache
from itertools import count
from typing import Any, Final, Protocol

from allot.apiserver.http.exchange import Exchange
from allot.apiserver.http.linked_exchange import LinkedExchange, LinkedStream
from allot.apiserver.pacing import Priority, loop_iterations
from allot.client.asgi import Headers
from allot.client.component_users import DRIVERS, NODES, ComponentUser, component_user
from allot.client.link import (
    AnyFrame,
    CancelFrame,
    EndFrame,
    FrameProtocol,
    RequestFrame,
    ResponseFrame,
    SequenceFrame,
    TakenFrame,
)
from allot.client.transport import NOT_RUN
from allot.storage.interface import Store

log = logging.getLogger(__name__)


MAX_IDLE_TASKS: Final = 16
"""Tasks that are kept for further requests."""


class LinkLostError(Exception):
    """The components at the other end are gone. They are being started again."""


class LinkedApplication(Protocol):
    """What answers the requests."""

    async def serve(self, exchange: Exchange) -> None: ...


class LinkServer:
    """Answers what comes over one link, as requests of the components that they name."""

    def __init__(self, app: LinkedApplication, store: Store) -> None:
        """For use in the event loop that runs."""
        self._app = app
        self._store = store
        self._iterations = loop_iterations()
        self._protocol = FrameProtocol(self._received, self._on_lost)
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle: list[asyncio.Future[list[RequestFrame]]] = []
        """What tasks without a request wait for."""
        self._streams: dict[int, LinkedStream] = {}
        self._ids = count(1)
        self._answers: dict[int, asyncio.Future[ResponseFrame]] = {}
        self._is_lost = False

    async def start(self, connection: socket.socket) -> None:
        """Serve a connected socket, which is closed in the end."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self._protocol, sock=connection)
        self._store.on_withdrawal(self._cut)

    async def close(self) -> None:
        self._cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ask(self, path: str, headers: Headers) -> ResponseFrame:
        """What the other end answers to a GET; `LinkLostError` if it is gone."""
        if self._is_lost:
            raise LinkLostError
        number = next(self._ids)
        answer: asyncio.Future[ResponseFrame] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self._protocol.send(RequestFrame(number, "GET", path, "", tuple(headers), b"", False))
        try:
            return await answer
        finally:
            self._answers.pop(number, None)

    def _received(self, frames: list[AnyFrame]) -> None:
        for frame in frames:
            self._take(frame)

    def _take(self, frame: AnyFrame) -> None:
        match frame:
            case _ if self._is_lost:
                pass
            case SequenceFrame():
                self._hand_out(frame.requests)
            case RequestFrame(is_stream=False):
                self._hand_out([frame])
            case RequestFrame():
                self._open(frame)
            case ResponseFrame() if frame.id in self._answers:
                answer = self._answers.pop(frame.id)
                if not answer.done():  # it may have been cancelled
                    answer.set_result(frame)
            case CancelFrame() if frame.id in self._streams:
                self._streams[frame.id].leave()
            case TakenFrame() if frame.id in self._streams:
                self._streams[frame.id].taken(frame.size)
            case _:
                pass  # about a stream that has ended, or for clients only

    def _cut(self) -> None:
        """End everything at once: a request that waits goes no further."""
        self._on_lost()
        self._store.ignore_withdrawals(self._cut)
        self._protocol.close()
        for task in self._tasks:
            task.cancel()

    def _on_lost(self) -> None:
        self._is_lost = True
        for waiting in self._idle:
            waiting.cancel()
        self._idle.clear()
        for stream in self._streams.values():
            stream.leave()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(LinkLostError())

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _hand_out(self, frames: list[RequestFrame]) -> None:
        """Have requests answered by a task that has none, or by a new one: to start one costs as much as a short request."""
        if self._idle:
            self._idle.pop().set_result(frames)
        else:
            self._spawn(self._work(frames))

    async def _work(self, frames: list[RequestFrame]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if len(frames) == 1:
                await self._answer(frames[0])
            else:
                await self._answer_in_order(frames)
            if self._is_lost or len(self._idle) >= MAX_IDLE_TASKS:
                return
            frames = []  # of which bodies may be large
            waiting: asyncio.Future[list[RequestFrame]] = loop.create_future()
            self._idle.append(waiting)
            frames = await waiting

    async def _answer_in_order(self, frames: list[RequestFrame]) -> None:
        code = 200
        for frame in frames:
            if code < 300:
                code = await self._answer(frame)
            else:
                body = (
                    b'{"kind":"Status","status":"Failure","message":"not run","code":%d}' % NOT_RUN
                )
                self._protocol.send(ResponseFrame(NOT_RUN, [], body, frame.id))

    async def _answer(self, frame: RequestFrame) -> int:
        """Answer a request; the status code."""
        user, early = _asker(frame.user)
        exchange = LinkedExchange(frame, user, sees_pending_writes=early)
        if self._iterations.is_busy(Priority.LINKED):  # hundreds may come at once
            await self._iterations.wait(Priority.LINKED)
        try:
            await self._app.serve(exchange)
        except Exception:
            log.exception("%s %s failed", frame.method, frame.path)
        answer = exchange.answered or ResponseFrame(500, [], b"", frame.id)
        self._protocol.send(answer)
        return answer.code

    def _open(self, frame: RequestFrame) -> None:
        user, early = _asker(frame.user)
        send = self._protocol.send
        stream = LinkedStream(frame, user, sees_pending_writes=early, send=send)
        self._streams[frame.id] = stream
        self._spawn(self._serve(frame, stream))

    async def _serve(self, frame: RequestFrame, stream: LinkedStream) -> None:
        failure = ""
        try:
            await self._app.serve(stream)
        except Exception as error:
            log.exception("watch of %s failed", frame.path)
            failure = f"the stream broke: {error}"
        finally:
            del self._streams[frame.id]
        self._protocol.send(EndFrame(frame.id, failure))


@lru_cache(256)
def _asker(name: str) -> tuple[ComponentUser | None, bool]:
    """The component that asks, and whether it may see writes before they are durable.

    Who is no component of a cluster needs credentials, which do not come over a link.
    """
    user = component_user(name)
    return user, user is not None and user not in (NODES, DRIVERS)
