"""Components that start slowly, or that are killed while they start: the API server goes on answering."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from allot.cli import cluster_processes, linked_components
from allot.cli.child_processes import START_SECONDS
from allot.cli.errors import CommandError
from allot.testing.virtual_time import run_in_virtual_time

KILLED = -9


class LinkedProcess(linked_components.LinkedComponents):
    """The components of `allot up`, whose process does what a test says."""

    def __init__(self, codes: Sequence[int], seconds: float) -> None:
        self.codes, self.seconds, self.runs = codes, seconds, 0
        super().__init__(None)  # type: ignore[arg-type]

    async def _run_once(self) -> int:
        return await run_once(self)

    async def start(self) -> None:
        await self.ready()

    async def stop(self, seconds: float = 0) -> None:
        await super().stop()


class SeparateProcess(cluster_processes._Process):
    """A component of `allot up --separate`, whose process does what a test says."""

    def __init__(self, codes: Sequence[int], seconds: float) -> None:
        self.codes, self.seconds, self.runs = codes, seconds, 0
        super().__init__(cluster_processes.Command("scheduler", ()))

    async def _run_once(self) -> int:
        return await run_once(self)


async def run_once(process: Any) -> int:
    """One process after the other ends with its code; the last one is ready after a time, and stays."""
    process.runs += 1
    if process.runs <= len(process.codes):
        code: int = process.codes[process.runs - 1]
        return code
    await asyncio.sleep(process.seconds)
    process._is_ready.set()
    await asyncio.Event().wait()
    return 0


@pytest.mark.parametrize("kind", [LinkedProcess, SeparateProcess])
def test_a_slow_start_is_waited_for(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        process = kind((), 20 * START_SECONDS)
        await process.start()
        assert process.runs == 1
        await process.stop(0)

    with caplog.at_level(logging.WARNING):
        run_in_virtual_time(story())
    assert [record.getMessage() for record in caplog.records if "not ready" in record.msg]


@pytest.mark.parametrize("kind", [LinkedProcess, SeparateProcess])
def test_a_process_killed_while_it_starts_is_restarted(kind: Any) -> None:
    async def story() -> None:
        process = kind((KILLED, KILLED), 1)
        await process.start()
        assert process.runs == 3
        await process.stop(0)

    run_in_virtual_time(story())


@pytest.mark.parametrize("kind", [LinkedProcess, SeparateProcess])
def test_a_process_that_gives_up_while_it_starts_is_an_error(kind: Any) -> None:
    async def story() -> None:
        process = kind((1,), 1)
        with pytest.raises(CommandError, match="did not start"):
            await process.start()
        assert process.runs == 1
        await process.stop(0)

    run_in_virtual_time(story())
