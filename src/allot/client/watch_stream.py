"""Decodes the events of a watch from the chunks of a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final, TypeVar

from allot.client.codecs import Codec, WatchEvent
from allot.client.errors import ClientError, UnreadableAnswerError

T = TypeVar("T")
Events = list[WatchEvent[T]]

MAX_LINE = 64 * 1024 * 1024
"""The limit of one event; no object is larger."""


EVENTS_AT_ONCE: Final = 100
BYTES_AT_ONCE: Final = 128 * 1024
"""What is decoded before other tasks run."""


class Lines:
    """Splits chunks into lines."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        last = chunk.rfind(b"\n")
        if last < 0:
            self._size += len(chunk)
            if self._size > MAX_LINE:
                raise UnreadableAnswerError("an event exceeds the size limit")
            self._rest.append(chunk)
            return []
        whole = chunk[: last + 1]
        if self._rest:
            whole = b"".join((*self._rest, whole))
        rest = chunk[last + 1 :]
        self._rest = [rest] if rest else []
        self._size = len(rest)
        return [line for line in whole.split(b"\n") if line]


async def decoded_events(chunks: AsyncIterator[bytes], codec: Codec[T]) -> AsyncIterator[Events[T]]:
    """Events in batches, as they arrived. An ERROR event is raised after the events before it.

    A batch may be a whole list: it is decoded in steps, yielding to other tasks.
    """
    lines = Lines()
    async for chunk in chunks:
        events: Events[T] = []
        try:
            for number, piece in enumerate(_pieces(lines.feed(chunk))):
                if number:
                    await asyncio.sleep(0)
                events.extend(map(codec.decode_event, piece))
        except ClientError:
            if events:
                yield events
            raise
        if events:
            yield events


def _pieces(lines: list[bytes]) -> Iterator[list[bytes]]:
    piece: list[bytes] = []
    size = 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if len(piece) >= EVENTS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
