"""Rolling updates: a new instance of the driver starts before the old one ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from allot.conformance.catalog import check
from allot.conformance.checks.prepare import expect_same
from allot.conformance.kit import FIRST, SECOND, Kit
from allot.conformance.registrations import Registration
from allot.conformance.results import CheckFailedError, CheckSkippedError

HELPER: Final = "dynamic-resource-allocation/kubeletplugin: RollingUpdate"


@asynccontextmanager
async def _second_instance(kit: Kit) -> AsyncIterator[list[Registration]]:
    """Both instances run; in the end only the first."""
    if not kit.driver.can_run_twice:
        raise CheckSkippedError("needs a command line with {instance}")
    await kit.registrations.current()
    await kit.driver.start(SECOND)
    try:

        async def both() -> list[Registration]:
            found = await kit.registrations.answering()
            return found if len(found) == 2 else []

        yield await kit.until(both, "two instances to register")
    finally:
        await kit.driver.stop(SECOND)
        if kit.driver.problem(FIRST) or not await kit.registrations.answering():
            await kit.driver.kill(FIRST)
            await kit.driver.start(FIRST)
        await kit.registrations.register()


@check(
    "upgrade/sockets",
    "Two instances run at the same time, each with its own sockets",
    HELPER,
)
async def runs_twice(kit: Kit) -> None:
    async with _second_instance(kit) as found:
        if len({each.info.endpoint for each in found}) != 2:
            raise CheckFailedError("both instances have the same endpoint")


@check(
    "upgrade/hand-over",
    "What the old instance prepared, the new one answers and unprepares; its slices stay",
    HELPER,
)
async def hands_over(kit: Kit) -> None:
    if not kit.driver.can_run_twice:
        raise CheckSkippedError("needs a command line with {instance}")
    claim = await kit.claims.create(*await kit.slices.devices())
    before = (await kit.calls.prepare(claim))[claim.uid]
    slices = {each.metadata.uid for each in await kit.slices.complete()}
    async with _second_instance(kit):
        problem = await kit.driver.stop(FIRST)
        kit.instance = SECOND
        try:
            if problem:
                raise CheckFailedError(problem)
            after = (await kit.calls.prepare(claim))[claim.uid]
            expect_same(before, after, "the new instance has another answer")
            await kit.calls.unprepare(claim)
            if {each.metadata.uid for each in await kit.slices.now()} != slices:
                raise CheckFailedError("slices were deleted or created")
        finally:
            kit.instance = FIRST
            await kit.driver.start(FIRST)
