"""The events of a watch, out of the pieces in which they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

from allot.client.codecs import Codec, WatchEvent
from allot.client.errors import ClientError, UnreadableAnswerError

T = TypeVar("T")
Events = list[WatchEvent[T]]

MAX_LINE = 64 * 1024 * 1024
"""No object is larger; what goes on beyond is not a watch."""


class Lines:
    """Cuts pieces into lines."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that are complete with this piece."""
        last = chunk.rfind(b"\n")
        if last < 0:
            self._size += len(chunk)
            if self._size > MAX_LINE:
                raise UnreadableAnswerError("an event without an end")
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
    """Events in batches, as they came together. A reported error is raised after what came before it."""
    lines = Lines()
    async for chunk in chunks:
        events: Events[T] = []
        try:
            events.extend(map(codec.decode_event, lines.feed(chunk)))
        except ClientError:
            if events:
                yield events
            raise
        if events:
            yield events
