"""Long lists are made while they are sent, few bytes at a time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from allot.apiserver.http.list_bodies import AT_ONCE, WHOLE_BYTES, ListFrame, list_response
from allot.apiserver.pacing import Workers

LARGE_OBJECT = 600_000


def an_object(size: int) -> Any:
    return SimpleNamespace(entry=SimpleNamespace(value=b"x" * size))


@pytest.mark.parametrize("format_", ["json", "yaml"])
@pytest.mark.parametrize(("size", "at_once"), [(LARGE_OBJECT, 1), (1000, AT_ONCE)])
def test_large_objects_are_rendered_one_by_one(format_: str, size: int, at_once: int) -> None:
    rendered: list[int] = []

    def render(stored: Any) -> bytes:
        rendered.append(len(stored.entry.value))
        return b'"%b"' % stored.entry.value

    async def story() -> None:
        workers = Workers()
        try:
            objects = [an_object(size)] * (3 * WHOLE_BYTES // min(size, WHOLE_BYTES))
            frame = ListFrame({"kind": "List"})
            response = await list_response(objects, frame, render, format_, workers)
            enough = WHOLE_BYTES // size + 1
            assert len(rendered) <= enough + at_once + 100_000 // size
            assert response.more is not None
            seen = len(rendered)
            async for piece in response.more:
                assert len(rendered) - seen <= at_once + 100_000 // size
                seen = len(rendered)
                assert len(piece) < 2 * max(size, 64 * 1024)
            assert len(rendered) == len(objects)
        finally:
            workers.close()

    asyncio.run(story())
