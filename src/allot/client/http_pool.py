"""Connections to one server that requests take turns on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from allot.client.http_connection import HttpConnection

IDLE_SECONDS: Final = 30.0
"""Connections that are idle for longer are not used again: servers and proxies close them at some time."""


class ConnectionPool:
    """Up to `limit` connections (0: any number). Requests beyond that wait in order."""

    def __init__(
        self, open_connection: Callable[[], Awaitable[HttpConnection]], limit: int
    ) -> None:
        self._open = open_connection
        self._limit = limit
        self._idle: list[HttpConnection] = []
        self._used: set[HttpConnection] = set()
        self._opening = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False

    def idle(self) -> HttpConnection | None:
        """The connection that was used last, if it can be used now."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable and now - connection.idle_since < IDLE_SECONDS:
                self._used.add(connection)
                return connection
            connection.abort()
        return None

    async def acquire(self, *, new: bool = False) -> HttpConnection:
        """A connection, which `release` gives back; `new`: that no request was sent on before."""
        while True:
            if not new and (connection := self.idle()) is not None:
                return connection
            if not self._limit or len(self._used) + self._opening < self._limit:
                break
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake_next()
                raise
        self._opening += 1
        try:
            connection = await self._open()
        except BaseException:
            self._opening -= 1
            self._wake_next()
            raise
        self._opening -= 1
        self._used.add(connection)
        if self._is_closed:
            connection.abort()
        return connection

    def release(self, connection: HttpConnection) -> None:
        """The request on this connection is over."""
        self._used.discard(connection)
        if connection.is_reusable and not self._is_closed:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
            if connection.idle_since - self._idle[0].idle_since > IDLE_SECONDS:
                self._idle.pop(0).abort()
        else:
            connection.abort()
        self._wake_next()

    def close(self) -> None:
        """Idle connections end now, the others with their requests."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().abort()

    def abort(self) -> None:
        """All connections end now."""
        self.close()
        for connection in tuple(self._used):
            connection.abort()

    def _wake_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
