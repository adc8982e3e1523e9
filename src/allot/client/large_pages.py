"""Lists of many megabytes, decoded in pieces: a single call would keep the event loop for tenths of a second."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from allot.client.codecs import BROKEN, Codec, ListPage, TypedPage, Unreadable

PIECE: Final = 128 * 1024
"""Bytes that are decoded before other tasks get a turn; more only if one object has more."""

T = TypeVar("T")

_page: Final = msgspec.json.Decoder(TypedPage[Raw])


async def decode_page_with_pauses(
    codec: Codec[T], body: bytes, *, lenient: bool = False
) -> ListPage[T]:
    """What the codec makes of the list; other tasks run meanwhile."""
    if len(body) <= PIECE:
        return codec.decode_page(body, lenient=lenient)
    try:
        whole = _page.decode(body)
    except BROKEN:
        return codec.decode_page(body, lenient=lenient)  # which says what is wrong
    items: list[T] = []
    unreadable: list[Unreadable] = []
    for piece in _pieces(whole.items or ()):
        await asyncio.sleep(0)
        page = codec.decode_page(piece, lenient=lenient)
        items += page.items
        unreadable += page.unreadable
    metadata = whole.metadata
    return ListPage(items, metadata.resource_version, metadata.continue_ or "", tuple(unreadable))


def _pieces(items: Iterable[Raw]) -> Iterator[bytes]:
    """Lists of these items, each of about `PIECE` bytes."""
    part: list[bytes] = []
    size = 0
    for item in items:
        content = bytes(item)
        if part and size + len(content) > PIECE:
            yield b'{"items":[%b]}' % b",".join(part)
            part, size = [], 0
        part.append(content)
        size += len(content)
    if part:
        yield b'{"items":[%b]}' % b",".join(part)
