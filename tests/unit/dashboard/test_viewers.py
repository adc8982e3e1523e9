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


def test_changes_that_happen_while_everything_is_sent_come_after_it() -> None:
    async def story() -> list[bytes]:
        def parts() -> Iterator[bytes]:
            yield b"first"
            viewers.send("change", 1)
            yield b"second"

        viewers = Viewers(parts)
        with viewers.viewer() as viewer:
            messages = viewer.messages()
            return [await anext(messages) for _ in range(3)]

    assert asyncio.run(story()) == [b"first", b"second", message("change", 1)]


def test_other_tasks_run_while_everything_is_sent() -> None:
    async def story() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        def parts() -> Iterator[bytes]:
            for _ in range(10):
                yield b"part"

        task = asyncio.create_task(other())
        with Viewers(parts).viewer() as viewer:
            messages = viewer.messages()
            for _ in range(10):
                await anext(messages)
        task.cancel()
        return turns

    assert asyncio.run(story()) >= 9
