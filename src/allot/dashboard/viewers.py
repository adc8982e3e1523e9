"""The viewers of the dashboard: each has a stream of messages, and gets changes in batches.

A viewer that is too slow for its messages gets the whole floor plan again instead of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

MAX_WAITING: Final = 100
"""Messages that wait for one viewer."""
MAX_VIEWERS: Final = 50
KEEPALIVE_SECONDS: Final = 15.0
KEEPALIVE: Final = b": keep-alive\n\n"
_encode: Final = msgspec.json.Encoder().encode


def message(event: str, data: Any) -> bytes:
    """A server-sent event. JSON has no line breaks, so that one line of data is enough."""
    return b"event: %s\ndata: %s\n\n" % (event.encode(), _encode(data))


class TooManyViewersError(Exception):
    """No more streams are served."""


class Viewer:
    """One open page."""

    def __init__(self, everything: Callable[[], Iterator[bytes]]) -> None:
        self._everything = everything
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(MAX_WAITING)
        self._needs_everything = True

    def send(self, data: bytes) -> None:
        if self._needs_everything:
            return  # it comes with everything
        try:
            self._waiting.put_nowait(data)
        except asyncio.QueueFull:
            self._needs_everything = True
            while not self._waiting.empty():
                self._waiting.get_nowait()
            self._waiting.put_nowait(KEEPALIVE)

    async def messages(self) -> AsyncIterator[bytes]:
        """Without an end; a comment when nothing happens, so that lost connections are noticed."""
        while True:
            if self._needs_everything:
                self._needs_everything = False
                # Changes of the meantime come after it, in their order: what is sent twice ends up the same.
                for data in self._everything():
                    yield data
                    await asyncio.sleep(0)
            try:
                async with asyncio.timeout(KEEPALIVE_SECONDS):
                    yield await self._waiting.get()
            except TimeoutError:
                yield KEEPALIVE


class Viewers:
    """All open pages."""

    def __init__(self, everything: Callable[[], Iterator[bytes]]) -> None:
        self._everything = everything
        self._viewers: set[Viewer] = set()

    def __len__(self) -> int:
        return len(self._viewers)

    def send(self, event: str, data: Any) -> None:
        if self._viewers:
            encoded = message(event, data)
            for viewer in self._viewers:
                viewer.send(encoded)

    @contextmanager
    def viewer(self) -> Iterator[Viewer]:
        """A new viewer, as long as the context lasts; `TooManyViewersError`."""
        if len(self._viewers) >= MAX_VIEWERS:
            raise TooManyViewersError
        viewer = Viewer(self._everything)
        self._viewers.add(viewer)
        try:
            yield viewer
        finally:
            self._viewers.discard(viewer)
