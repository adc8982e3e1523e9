"""Decodes the events of a watch from the chunks of a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final, TypeVar

from allot.api.protobuf.envelope import FrameReader
from allot.api.protobuf.envelope import WatchEvent as Frame
from allot.api.protobuf.wire import ProtobufError
from allot.client.codecs import Codec, WatchEvent
from allot.client.errors import ClientError, UnreadableAnswerError
from allot.client.protobuf import ProtobufCodec

T = TypeVar("T")
Part = TypeVar("Part")
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
        if not self._rest and chunk.endswith(b"\n"):  # whole lines, as most chunks
            return list(filter(None, chunk.split(b"\n")))
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
        return list(filter(None, whole.split(b"\n")))


class _Frames:
    """Cuts pieces into the frames of protobuf."""

    def __init__(self) -> None:
        self._reader = FrameReader(MAX_LINE)

    def feed(self, chunk: bytes) -> list[Frame]:
        try:
            return list(self._reader.feed(chunk))
        except ProtobufError as error:
            raise UnreadableAnswerError(str(error)) from None


def decoded_events(
    chunks: AsyncIterator[bytes], codec: Codec[T], *, managed_fields: bool = True
) -> AsyncIterator[Events[T]]:
    """Events in batches, as they arrived. An ERROR event is raised after the events before it.

    A batch may be a whole list: it is decoded in steps, yielding to other tasks. Without `managed_fields` these are
    removed from objects.
    """
    decode = codec.decode_event if managed_fields else codec.decode_bare_event
    return _decoded(chunks, Lines().feed, decode, len)


def decoded_frames(
    chunks: AsyncIterator[bytes], codec: ProtobufCodec[T], *, managed_fields: bool = True
) -> AsyncIterator[Events[T]]:
    """The same for a watch in protobuf."""
    decode = codec.decode_event if managed_fields else codec.decode_bare_event
    return _decoded(chunks, _Frames().feed, decode, lambda frame: len(frame.body))


async def _decoded(
    chunks: AsyncIterator[bytes],
    feed: Callable[[bytes], list[Part]],
    decode: Callable[[Part], WatchEvent[T]],
    size_of: Callable[[Part], int],
) -> AsyncIterator[Events[T]]:
    async for chunk in chunks:
        events: Events[T] = []
        try:
            parts = feed(chunk)
            if len(parts) <= EVENTS_AT_ONCE and len(chunk) <= BYTES_AT_ONCE:
                events.extend(map(decode, parts))
            else:
                for piece in _pieces(parts, size_of):
                    events.extend(map(decode, piece))
                    await asyncio.sleep(0)
        except ClientError:
            if events:
                yield events
            raise
        if events:
            yield events


def _pieces(parts: list[Part], size_of: Callable[[Part], int]) -> Iterator[list[Part]]:
    piece: list[Part] = []
    size = 0
    for part in parts:
        piece.append(part)
        size += size_of(part)
        if len(piece) >= EVENTS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
