"""Viewers: everything first, then changes; one that is too slow gets everything again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from allot.dashboard.viewers import (
    MAX_VIEWERS,
    MAX_WAITING,
    TooManyViewersError,
    Viewers,
    message,
)


def everything() -> Iterator[bytes]:
    yield b"everything"


def test_messages_in_order() -> None:
    async def story() -> list[bytes]:
        viewers = Viewers(everything)
        with viewers.viewer() as viewer:
            messages = viewer.messages()
            first = await anext(messages)
            viewers.send("change", {"a": 1})
            return [first, await anext(messages)]

    assert asyncio.run(story()) == [b"everything", b'event: change\ndata: {"a":1}\n\n']


def test_a_slow_viewer_gets_everything_again() -> None:
    async def story() -> list[bytes]:
        viewers = Viewers(everything)
        with viewers.viewer() as viewer:
            messages = viewer.messages()
            await anext(messages)
            for number in range(MAX_WAITING + 1):
                viewers.send("change", number)
            found = [await anext(messages)]
            found.append(await anext(messages))
            viewers.send("change", "later")
            return [*found, await anext(messages)]

    assert asyncio.run(story())[1:] == [b"everything", message("change", "later")]


def test_strings_with_line_breaks_stay_one_line() -> None:
    assert message("change", "a\nb\r\ndata: x").count(b"\n") == 3


def test_there_is_a_limit() -> None:
    viewers = Viewers(everything)
    open_ = [viewers.viewer() for _ in range(MAX_VIEWERS)]
    for each in open_:
        each.__enter__()

    with pytest.raises(TooManyViewersError), viewers.viewer():
        pass
    for each in open_:
        each.__exit__(None, None, None)
    assert len(viewers) == 0
