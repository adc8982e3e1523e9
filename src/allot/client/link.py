"""A link to an API server in another process of the same cluster: one socket between the two, without HTTP and TLS.

    LinkTransport ─ Request ────────────▶ apiserver/http/link_server.py
                  ◀─ Response ──────────
                  ─ Sequence ───────────▶   requests that are run in order
                  ◀─ Response, Response ─
                  ─ Request (a stream) ─▶
                  ◀─ Head, Chunk, Chunk ─   Taken ─▶ says how many bytes were used up
                  ◀─ End ────────────────   Cancel ─▶ ends it from this side

Requests pass the same authentication, admission and validation as over HTTP. A stream may be `WINDOW` bytes ahead of its
reader, so that a slow reader does not block other streams.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, cast

import msgspec

from allot.client.asgi import Headers, SharedHeaders, headers_with
from allot.client.component_users import ComponentUser
from allot.client.errors import TransportError
from allot.client.transport import (
    JSON,
    ClusterTransport,
    Query,
    Response,
    Stream,
    encoded_query,
)

WINDOW: Final = 1 << 20
TAKEN_AT_ONCE: Final = WINDOW // 4
"""The bytes that a reader uses up before it says so."""
SIZE_BYTES: Final = 4
"""Every message begins with its length."""


class LinkFrame(msgspec.Struct, array_like=True, frozen=True):
    """A message on the link. `id` identifies the exchange."""

    id: int


class RequestFrame(LinkFrame, tag=0, frozen=True):
    method: str
    path: str
    query: str
    headers: SharedHeaders
    body: bytes
    is_stream: bool
    user: str = ""
    """The component that asks."""


class ResponseFrame(Response, array_like=True, tag=1, frozen=True):
    id: int


class HeadFrame(LinkFrame, tag=2, frozen=True):
    code: int
    headers: Headers


class ChunkFrame(LinkFrame, tag=3, frozen=True):
    data: bytes


class EndFrame(LinkFrame, tag=4, frozen=True):
    failure: str
    """Why the stream failed; empty for a normal end."""


class CancelFrame(LinkFrame, tag=5, frozen=True):
    pass


class TakenFrame(LinkFrame, tag=6, frozen=True):
    size: int


class SequenceFrame(LinkFrame, tag=7, frozen=True):
    """Requests that are run one after the other, each if the one before succeeded."""

    requests: list[RequestFrame]


AnyFrame = (
    RequestFrame
    | ResponseFrame
    | HeadFrame
    | ChunkFrame
    | EndFrame
    | CancelFrame
    | TakenFrame
    | SequenceFrame
)


class FrameProtocol(asyncio.Protocol):
    """Encodes and decodes frames. They are sent as messages: the length, and a list of frames.

    The first frame of an iteration of the event loop is written at once, the others in one message when it ends: each
    write wakes the process at the other end, and each message is encoded and decoded in one step.
    """

    def __init__(
        self, received: Callable[[list[AnyFrame]], None], lost: Callable[[], None]
    ) -> None:
        """`received` gets the frames of a message."""
        self._received = received
        self._lost = lost
        self._decode = msgspec.msgpack.Decoder(list[AnyFrame]).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self._buffer = bytearray()
        self._unsent: list[AnyFrame] = []
        self._has_written = False
        """Whether a frame was written in this iteration."""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        if buffer:
            buffer += data
            with memoryview(buffer) as view:
                used = self._take(view)
            del buffer[:used]
        else:  # mostly: whole messages, which are not copied
            used = self._take(memoryview(data))
            if used < len(data):
                buffer += memoryview(data)[used:]

    def _take(self, data: memoryview) -> int:
        """Decode all messages that are complete; how many bytes they take."""
        start, size = 0, len(data)
        while (content := start + SIZE_BYTES) <= size:
            end = content + int.from_bytes(data[start:content])
            if end > size:
                break
            start = end
            self._received(self._decode(data[content:end]))
        return start

    def send(self, frame: AnyFrame) -> None:
        """Frames sent after the connection was lost are dropped; `lost` has been called."""
        if self._has_written:
            self._unsent.append(frame)
        elif self._transport is not None:
            self._has_written = True
            self._write([frame])
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._has_written = False
        if self._unsent:
            unsent, self._unsent = self._unsent, []
            self._write(unsent)

    def _write(self, frames: list[AnyFrame]) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            data = self._encode(frames)
            transport.write(len(data).to_bytes(SIZE_BYTES) + data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost()

    def close(self) -> None:
        self._flush()
        if self._transport is not None:
            self._transport.close()


class Link:
    """One connection; any number of transports may share it."""

    def __init__(self) -> None:
        self._protocol = FrameProtocol(self._received, self._on_lost)
        self.send = self._protocol.send
        self._last_id = 0
        self._answers: dict[int, asyncio.Future[Response]] = {}
        """Including those of cancelled callers, until the server has answered."""
        self._streams: dict[int, _Incoming] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self.serve: Callable[[RequestFrame], Awaitable[ResponseFrame]] | None = None
        """Handles requests of the server."""
        self.is_lost = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def over(cls, connection: socket.socket) -> Link:
        """A link over a connected socket, which it owns."""
        link = cls()
        await link._loop.create_connection(lambda: link._protocol, sock=connection)
        return link

    def close(self) -> None:
        self._protocol.close()

    def _received(self, frames: list[AnyFrame]) -> None:
        for frame in frames:
            match frame:
                case ResponseFrame():
                    answer = self._answers.pop(frame.id, None)
                    if answer is not None and not answer.done():
                        answer.set_result(frame)
                case ChunkFrame():
                    stream = self._streams.get(frame.id)
                    if stream is not None:
                        stream.received(frame.data)
                case HeadFrame():
                    stream = self._streams.get(frame.id)
                    if stream is not None:
                        stream.started_with(frame)
                case EndFrame():
                    stream = self._streams.get(frame.id)
                    if stream is not None:
                        stream.ended(frame.failure)
                case RequestFrame() if self.serve is not None:
                    task = asyncio.create_task(self._answer(frame, self.serve))
                    self._serving.add(task)
                    task.add_done_callback(self._serving.discard)
                case _:
                    pass  # only servers get these

    async def _answer(
        self, frame: RequestFrame, serve: Callable[[RequestFrame], Awaitable[ResponseFrame]]
    ) -> None:
        self.send(await serve(frame))

    def _on_lost(self) -> None:
        self.is_lost.set()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(TransportError(LOST, was_sent=True))
                answer.exception()  # retrieved: the caller may have been cancelled
        self._answers.clear()
        for stream in self._streams.values():
            stream.ended(LOST)

    def expect_answer(self) -> tuple[int, asyncio.Future[Response]]:
        """The id of a request, and the response to it. The caller sends the request."""
        if self.is_lost.is_set():
            raise TransportError(LOST, was_sent=False)
        number = self._last_id = self._last_id + 1
        answer = self._answers[number] = self._loop.create_future()
        return number, answer

    def open(self, path: str, query: str, headers: SharedHeaders, user: str = "") -> _Incoming:
        if self.is_lost.is_set():
            raise TransportError(LOST, was_sent=False)
        number = self._last_id = self._last_id + 1
        stream = self._streams[number] = _Incoming(number, self.send, self._loop)
        self.send(RequestFrame(number, "GET", path, query, headers, b"", True, user))
        return stream

    def end(self, stream: _Incoming) -> None:
        stream.close()
        if self._streams.pop(stream.number, None) is not None and not stream.is_over:
            self.send(CancelFrame(stream.number))


LOST: Final = "the link to the API server is lost"


class _Incoming:
    """The reader's end of a stream."""

    def __init__(
        self, number: int, send: Callable[[AnyFrame], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.number = number
        self.head: HeadFrame | None = None
        self.is_over = False
        self._send = send
        self._loop = loop
        self._failure = ""
        """Why there will be no more."""
        self._pieces: deque[bytes] = deque()
        self._reader: asyncio.Future[None] | None = None
        """What the reader waits for."""
        self._taken = 0
        self._waits_since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        """One for many waits: it looks how long the current one takes."""

    def started_with(self, head: HeadFrame) -> None:
        self.head = head
        self._wake()

    def received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._wake()

    def ended(self, failure: str) -> None:
        self.is_over = True
        self._failure = failure
        self._wake()

    def _wake(self) -> None:
        reader = self._reader
        if reader is not None and not reader.done():
            reader.set_result(None)

    async def started(self, idle_seconds: float | None) -> HeadFrame:
        while self.head is None and not self.is_over and not self._failure:
            await self._next(idle_seconds)
        if self.head is None:
            raise TransportError(self._failure or "no response from the server", was_sent=True)
        return self.head

    async def chunks(self, idle_seconds: float | None) -> AsyncIterator[bytes]:
        pieces = self._pieces
        while True:
            while pieces:
                piece = pieces.popleft()
                self._taken += len(piece)
                if self._taken > TAKEN_AT_ONCE:
                    self._send(TakenFrame(self.number, self._taken))
                    self._taken = 0
                yield piece
            if self._failure:
                raise TransportError(self._failure, was_sent=True)
            if self.is_over:
                return
            await self._next(idle_seconds)

    def _next(self, idle_seconds: float | None) -> asyncio.Future[None]:
        """Done when something is received, or nothing for so long."""
        if idle_seconds is not None:
            self._waits_since = self._loop.time()
            if self._timer is None:
                self._timer = self._loop.call_later(idle_seconds, self._check_idle, idle_seconds)
        self._reader = self._loop.create_future()
        return self._reader

    def _check_idle(self, idle_seconds: float) -> None:
        self._timer = None
        if self._reader is None or self._reader.done():
            return  # it is at work
        rest = self._waits_since + idle_seconds - self._loop.time()
        if rest > 0:
            self._timer = self._loop.call_later(rest, self._check_idle, idle_seconds)
        else:
            self._failure = f"no data for {idle_seconds} s"
            self._wake()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class LinkTransport(ClusterTransport):
    """Requests over a link, as a component of the cluster."""

    def __init__(self, link: Link, user: ComponentUser, user_agent: str = "allot") -> None:
        self._link = link
        self._component = user
        self._user = user.name
        self._agent = user_agent
        self._headers = ((b"user-agent", user_agent.encode()),)
        self._streams: set[_Incoming] = set()

    def in_order(self, count: int) -> LinkTransport:
        return _Sequence(self._link, self._component, self._agent, count)

    def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> asyncio.Future[Response]:
        """It is sent when this is called, whenever its response is waited for."""
        asked = encoded_query(query) if query else ""
        given = headers_with(self._headers, body, content_type, headers)
        number, answer = self._link.expect_answer()
        self._send(RequestFrame(number, method, path, asked, given, body or b"", False, self._user))
        return answer

    def _send(self, request: RequestFrame) -> None:
        self._link.send(request)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        given = headers_with(self._headers, None, headers=headers)
        incoming = self._link.open(path, encoded_query(query), given, self._user)
        self._streams.add(incoming)
        try:
            head = await incoming.started(idle_seconds)
            yield Stream(head.code, head.headers, incoming.chunks(idle_seconds))
        finally:
            self._streams.discard(incoming)
            self._link.end(incoming)

    async def close(self) -> None:
        """Abort all streams. The link stays open for other transports."""
        for incoming in tuple(self._streams):
            incoming.ended("the client was closed")


class _Sequence(LinkTransport):
    """Collects requests, and sends them together when the last one is there."""

    def __init__(self, link: Link, user: ComponentUser, user_agent: str, count: int) -> None:
        super().__init__(link, user, user_agent)
        self._count = count
        self._requests: list[RequestFrame] = []

    def _send(self, request: RequestFrame) -> None:
        self._requests.append(request)
        if len(self._requests) == self._count:
            self._link.send(SequenceFrame(self._requests[0].id, self._requests))
