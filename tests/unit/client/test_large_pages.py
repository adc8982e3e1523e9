"""Large lists are decoded in pieces. Counted in bytes between two turns of the event loop."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from allot.api.raw import RawObject
from allot.client.codecs import ListPage
from allot.client.errors import UnreadableAnswerError
from allot.client.large_pages import PIECE, decode_page_with_pauses
from allot.client.resources import CONFIG_MAPS, RESOURCE_SLICES
from allot.testing.manifests import a_slice_manifest

ITEM = 10_000


def a_list(*more: Any) -> bytes:
    maps = [
        {"metadata": {"name": f"c-{number}"}, "data": {"k": "x" * ITEM}} for number in range(100)
    ]
    metadata = {"resourceVersion": "7", "continue": "next"}
    return msgspec.json.encode({"metadata": metadata, "items": [*maps, *more]})


class Noting:
    """A codec that notes how much it is given."""

    def __init__(self) -> None:
        self.given = 0

    def decode_page(self, body: bytes, *, lenient: bool = False) -> ListPage[RawObject]:
        self.given += len(body)
        return CONFIG_MAPS.codec.decode_page(body, lenient=lenient)


def test_a_large_list_is_decoded_in_pieces() -> None:
    body = a_list()
    codec = Noting()
    turns: list[int] = []

    async def note_turns() -> None:
        while True:
            turns.append(codec.given)
            await asyncio.sleep(0)

    async def main() -> ListPage[RawObject]:
        noting = asyncio.create_task(note_turns())
        page: ListPage[RawObject] = await decode_page_with_pauses(codec, body)  # type: ignore[arg-type]
        turns.append(codec.given)
        noting.cancel()
        return page

    page = asyncio.run(main())
    whole = CONFIG_MAPS.codec.decode_page(body)
    assert [each.data for each in page.items] == [each.data for each in whole.items]
    assert page[1:] == whole[1:]
    assert codec.given >= 100 * ITEM
    most = max(after - before for before, after in pairwise(turns))
    assert most <= PIECE + ITEM


def test_a_small_list_is_decoded_at_once() -> None:
    body = b'{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}'
    step = decode_page_with_pauses(CONFIG_MAPS.codec, body).__await__()
    with pytest.raises(StopIteration) as end:
        next(step)
    assert [each.metadata.name for each in end.value.value.items] == ["a"]


def test_unreadable_objects_are_reported() -> None:
    fine = [a_slice_manifest(name=f"s-{number}") for number in range(1000)]
    broken = {"metadata": {"name": "broken"}, "spec": 5}
    body = msgspec.json.encode({"metadata": {"resourceVersion": "7"}, "items": [*fine, broken]})
    assert len(body) > PIECE
    page = asyncio.run(decode_page_with_pauses(RESOURCE_SLICES.codec, body, lenient=True))
    assert len(page.items) == 1000
    assert [each.key.name for each in page.unreadable] == ["broken"]
    with pytest.raises(UnreadableAnswerError):
        asyncio.run(decode_page_with_pauses(RESOURCE_SLICES.codec, body))


@pytest.mark.parametrize("body", [b"[" * (PIECE + 1), b'{"items":5}' + b" " * PIECE])
def test_what_is_not_a_list(body: bytes) -> None:
    with pytest.raises(UnreadableAnswerError):
        asyncio.run(decode_page_with_pauses(CONFIG_MAPS.codec, body))
