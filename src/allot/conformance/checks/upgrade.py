"""Rolling updates: a new instance of the driver starts before the old one ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from allot.conformance.checks.prepare import expect_same
from allot.conformance.harness import FIRST, SECOND, Harness
from allot.conformance.registrations import Registration
from allot.conformance.registry import check
from allot.conformance.results import CheckFailedError, CheckSkippedError

HELPER: Final = "dynamic-resource-allocation/kubeletplugin: RollingUpdate"


@asynccontextmanager
async def _second_instance(harness: Harness) -> AsyncIterator[list[Registration]]:
    """Both instances run; in the end only the first."""
    if not harness.driver.can_run_twice:
        raise CheckSkippedError("needs a command line with {instance}")
    await harness.registrations.current()
    await harness.driver.start(SECOND)
    try:

        async def both() -> list[Registration]:
            found = await harness.registrations.answering()
            return found if len(found) == 2 else []

        yield await harness.until(both, "two instances to register")
    finally:
        await harness.driver.stop(SECOND)
        if harness.driver.problem(FIRST) or not await harness.registrations.answering():
            await harness.driver.kill(FIRST)
            await harness.driver.start(FIRST)
        await harness.registrations.register()


@check(
    "upgrade/sockets",
    "Two instances run at the same time, each with its own sockets",
    HELPER,
)
async def runs_twice(harness: Harness) -> None:
    async with _second_instance(harness) as found:
        if len({each.info.endpoint for each in found}) != 2:
            raise CheckFailedError("both instances have the same endpoint")


@check(
    "upgrade/hand-over",
    "What the old instance prepared, the new one answers and unprepares; its slices stay",
    HELPER,
)
async def hands_over(harness: Harness) -> None:
    if not harness.driver.can_run_twice:
        raise CheckSkippedError("needs a command line with {instance}")
    claim = await harness.claims.create(*await harness.slices.devices())
    before = (await harness.calls.prepare(claim))[claim.uid]
    slices = {each.metadata.uid for each in await harness.slices.complete()}
    async with _second_instance(harness):
        problem = await harness.driver.stop(FIRST)
        harness.instance = SECOND
        try:
            if problem:
                raise CheckFailedError(problem)
            after = (await harness.calls.prepare(claim))[claim.uid]
            expect_same(before, after, "the new instance has another answer")
            await harness.calls.unprepare(claim)
            if {each.metadata.uid for each in await harness.slices.now()} != slices:
                raise CheckFailedError("slices were deleted or created")
        finally:
            harness.instance = FIRST
            await harness.driver.start(FIRST)
