"""One HTTP/1.1 connection of a client: one request after the other, with httptools as parser.

    send ─► head ─► body, whole or in chunks ─► the next request, if both sides keep the connection alive

A body that is read in chunks pauses the socket while the reader is behind, so that memory stays bounded.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from typing import Any, Final, NamedTuple

import httptools

CHUNK: Final = 256 * 1024
"""Bodies are sent in pieces of this size, and this much is buffered of a body that is read in chunks."""
LARGE: Final = 1024 * 1024
"""Compressed bodies over this size are decompressed in a thread."""
_GZIP: Final = 31
"""As zlib counts: the largest window, with gzip's header."""
_BODILESS: Final = frozenset({204, 304})


class ConnectionLostError(Exception):
    """The connection ended before the response did."""

    def __init__(self, reason: str, *, is_stale: bool = False) -> None:
        super().__init__(reason)
        self.is_stale = is_stale
        """The connection was used before and ended before a byte of this response: the server may have closed it."""


class ResponseHead(NamedTuple):
    """Status and headers, as they came."""

    code: int
    headers: list[tuple[bytes, bytes]]


class HttpConnection(asyncio.Protocol):
    """A connection, which its pool hands to one request at a time."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._lost: str | None = None
        self._responses = 0
        self.idle_since = 0.0
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._head: ResponseHead | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: deque[bytes] = deque()
        self._buffered = 0
        self._streams = False
        self._paused = False
        self._has_begun = False
        self._is_complete = False
        self._keeps_alive = False
        self._is_cut_off = False
        self._ends_with_connection = False
        self._decompressor: Any = None

    # --- the request ---

    async def send(self, head: bytes, body: bytes | None, *, streams: bool = False) -> ResponseHead:
        """Send a request and wait for the head of its response; `streams`: its body is read in chunks."""
        if self._responses:
            self._begin()
        self._streams = streams
        if body is None or len(body) <= CHUNK:
            self._transport.write(head if body is None else head + body)
        else:
            await self._write(head, body)
        while self._head is None:
            await self._wait()
        return self._head

    async def _write(self, head: bytes, body: bytes) -> None:
        self._transport.write(head)
        view = memoryview(body)
        for start in range(0, len(body), CHUNK):
            if self._lost is not None:
                raise self._failure()
            if self._writable is not None:
                await self._writable
            if self._head is not None:
                self._is_cut_off = True  # refused: the server does not read the rest
                return
            self._transport.write(bytes(view[start : start + CHUNK]))

    async def read(self) -> bytes:
        """The whole body."""
        while not self._is_complete:
            await self._wait()
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        if self._decompressor is None:
            return body
        if len(body) > LARGE // 8:
            return await asyncio.to_thread(self._decompress, body)
        return self._decompress(body)

    async def read_chunk(self) -> bytes:
        """What has come of the body, of any size; empty at its end."""
        while True:
            while not self._parts and not self._is_complete:
                await self._wait()
            if not self._parts:
                return b""
            chunk = b"".join(self._parts)
            self._parts.clear()
            self._buffered = 0
            if self._paused:
                self._paused = False
                self._transport.resume_reading()
            if self._decompressor is not None:
                chunk = self._decompress(chunk)
            if chunk:
                return chunk

    def _decompress(self, body: bytes) -> bytes:
        try:
            return bytes(self._decompressor.decompress(body))
        except zlib.error as error:
            raise ConnectionLostError(f"the response is not gzip: {error}") from None

    async def _wait(self) -> None:
        if self._lost is not None:
            raise self._failure()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _failure(self) -> ConnectionLostError:
        assert self._lost is not None
        return ConnectionLostError(self._lost, is_stale=self._responses > 0 and not self._has_begun)

    # --- its end ---

    @property
    def is_reusable(self) -> bool:
        """Whether another request can be sent."""
        return (
            self._lost is None and self._is_complete and self._keeps_alive and not self._is_cut_off
        )

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()
        self._lost = self._lost or "closed"

    # --- asyncio.Protocol ---

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._is_complete:
            self.abort()  # nothing was asked
            return
        self._has_begun = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._lost = f"the response is not HTTP: {error}"
            self._transport.abort()
            self._wake()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        if self._ends_with_connection and error is None:
            self._is_complete = True
        if self._lost is None:
            self._lost = str(error) if error is not None and str(error) else "connection closed"
        self._wake()
        if self._writable is not None:
            self.resume_writing()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        waiting, self._writable = self._writable, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- callbacks of the parser ---

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        code = self._parser.get_status_code()
        if 100 <= code < 200:
            self._headers = []  # an interim response: the real one follows
            return
        self._keeps_alive = self._parser.should_keep_alive()
        has_length = False
        for name, value in self._headers:
            match name.lower():
                case b"content-encoding" if value.strip().lower() == b"gzip":
                    self._decompressor = zlib.decompressobj(_GZIP)
                case b"content-length" | b"transfer-encoding":
                    has_length = True
        self._ends_with_connection = not has_length and code not in _BODILESS
        self._head = ResponseHead(code, self._headers)
        if self._streams or self._ends_with_connection:
            self._wake()

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)
        if not self._streams:
            return
        self._buffered += len(body)
        if self._buffered > CHUNK and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        if self._head is None:
            return  # of an interim response
        self._is_complete = True
        self._responses += 1
        self._wake()
