"""Components that fail are restarted after a backoff; readiness is polled."""

from __future__ import annotations

import asyncio
import logging

import pytest

from allot.client.supervision import run_with_restarts, wait_until_ready
from allot.testing.virtual_time import run_in_virtual_time
from tests.unit.client.fakes import FakeClock


def test_a_failed_component_is_restarted_after_growing_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock(hasty=True)
    failures = iter([ValueError("one"), ValueError("two"), ValueError("three")])

    async def run() -> None:
        for error in failures:
            raise error

    with caplog.at_level(logging.WARNING):
        asyncio.run(run_with_restarts("the scheduler", run, clock))

    assert clock.slept == [0.1, 0.2, 0.4]
    assert [each.getMessage() for each in caplog.records] == [
        f"the scheduler failed; restarting in {wait} s" for wait in (0.1, 0.2, 0.4)
    ]


def test_a_cancelled_component_is_not_restarted() -> None:
    clock = FakeClock(hasty=True)

    async def main() -> None:
        task = asyncio.create_task(run_with_restarts("it", asyncio.Event().wait, clock))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert clock.slept == []


def test_waiting_ends_once_the_component_is_ready() -> None:
    async def main() -> None:
        answers = iter([False, False, True])
        await wait_until_ready(lambda: next(answers))

    run_in_virtual_time(main())
