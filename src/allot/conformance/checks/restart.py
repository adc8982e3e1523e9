"""Restarts: a driver is killed and started again, at any moment."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import grpc

from allot.conformance.checks.prepare import expect_same
from allot.conformance.claims import ClaimUnderTest
from allot.conformance.harness import Harness
from allot.conformance.published_slices import PooledDevice
from allot.conformance.registry import check
from allot.conformance.results import CheckFailedError, CheckSkippedError, Level
from allot.conformance.waiting import concurrently

KEP: Final = "KEP-4381 (driver restarts)"
HELPER: Final = "dynamic-resource-allocation/kubeletplugin"
KILL_AFTER_SECONDS: Final = (0.0, 0.005, 0.02, 0.1)


@check(
    "restart/killed",
    "A driver that was killed registers again when it is started: old sockets do not stop it",
    f"{HELPER}: stale sockets are removed",
)
async def registers_again(harness: Harness) -> None:
    harness.needs_restart()
    await harness.slices.complete()
    await harness.kill_and_start()
    await harness.still_works()


@check(
    "restart/prepared",
    "A claim that was prepared before a crash has the same answer after it",
    f"{KEP}: prepared state survives",
)
async def remembers_prepared_claims(harness: Harness) -> None:
    harness.needs_restart()
    claim = await harness.claims.create(*await harness.slices.devices())
    before = (await harness.calls.prepare(claim))[claim.uid]
    await harness.kill_and_start()
    after = (await harness.calls.prepare(claim))[claim.uid]
    expect_same(before, after, "the answer after the restart differs")
    problem = harness.missing_cdi_devices(after)
    if problem:
        raise CheckFailedError(problem)


@check(
    "restart/unprepare",
    "A claim that was prepared before a crash is unprepared after it, although it is deleted from the API",
    f"{KEP}: Unprepare works without the claim",
)
async def unprepares_after_a_restart(harness: Harness) -> None:
    harness.needs_restart()
    claim = await harness.claims.create(*await harness.slices.devices())
    await harness.calls.prepare(claim)
    await harness.claims.delete(claim)
    await harness.kill_and_start()
    await harness.calls.unprepare(claim)


@check(
    "restart/cleanup",
    "The CDI devices of a claim that was prepared before a crash are gone after Unprepare",
    f"{KEP}: prepared state survives",
    Level.SHOULD,
)
async def cleans_up_after_a_restart(harness: Harness) -> None:
    harness.needs_restart()
    claim = await harness.claims.create(*await harness.slices.devices())
    devices = (await harness.calls.prepare(claim))[claim.uid]
    await harness.kill_and_start()
    await harness.calls.unprepare(claim)
    for device in devices:
        if device.cdi_device_ids and not harness.missing_cdi_devices([device]):
            raise CheckFailedError(f"CDI devices {list(device.cdi_device_ids)} still exist")


@check(
    "restart/device-in-use",
    "A device that was prepared before a crash is not prepared for another claim after it",
    "KEP-4381: the driver is the last line of defence against double use",
    Level.SHOULD,
)
async def remembers_devices_in_use(harness: Harness) -> None:
    harness.needs_restart()
    (device,) = await harness.slices.devices(is_shareable=False)
    first = await harness.claims.create(device)
    await harness.calls.prepare(first)
    await harness.claims.allocate(first, None)
    await harness.kill_and_start()
    second = await harness.claims.create(device)
    await harness.calls.refuses(second, "whose device is prepared for another claim")


@check(
    "restart/during-prepare",
    "A crash during Prepare: afterwards the claim is prepared, unprepared, and nothing is left",
    f"{KEP}: the kubelet calls Prepare again",
)
async def survives_a_crash_in_prepare(harness: Harness) -> None:
    harness.needs_restart()
    (device,) = await harness.slices.devices()
    before = _cdi_files(harness)
    for seconds in KILL_AFTER_SECONDS:
        claim = await _killed_during_prepare(harness, device, seconds)
        problem = harness.missing_cdi_devices((await harness.calls.prepare(claim))[claim.uid])
        if problem:
            raise CheckFailedError(problem)
        await harness.calls.unprepare(claim)
        await harness.claims.delete(claim)
    _expect_no_more_files(harness, before)


@check(
    "restart/unprepare-partial",
    "A crash during Prepare, and the claim is only unprepared: nothing is left of it",
    f"{KEP}: the pod may be deleted meanwhile",
    Level.SHOULD,
)
async def cleans_up_after_a_crash(harness: Harness) -> None:
    harness.needs_restart()
    (device,) = await harness.slices.devices()
    before = _cdi_files(harness)
    for seconds in KILL_AFTER_SECONDS:
        claim = await _killed_during_prepare(harness, device, seconds)
        await harness.calls.unprepare(claim)
        await harness.claims.delete(claim)
    _expect_no_more_files(harness, before)


@check(
    "restart/slices",
    "A restarted driver publishes the same devices, without a new generation",
    "dynamic-resource-allocation/resourceslice: unchanged slices are not updated",
    Level.SHOULD,
)
async def keeps_slices(harness: Harness) -> None:
    harness.needs_restart()
    before = {
        each.metadata.uid: each.spec.pool.generation for each in await harness.slices.complete()
    }
    await harness.kill_and_start()
    await harness.client.clock.sleep(harness.limits.quiet)
    after = {
        each.metadata.uid: each.spec.pool.generation for each in await harness.slices.complete()
    }
    if after != before:
        raise CheckFailedError("slices were deleted, created or got a new generation")


@check(
    "restart/graceful",
    "SIGTERM ends the driver in time; its sockets are removed, its slices stay",
    f"{HELPER}: Stop; KEP-4381: the kubelet deletes slices of drivers that do not come back",
)
async def ends_gracefully(harness: Harness) -> None:
    harness.needs_restart()
    registration = await harness.registrations.current()
    before = {each.metadata.uid for each in await harness.slices.complete()}
    problem = await harness.driver.stop(harness.instance)
    try:
        if problem:
            raise CheckFailedError(problem)
        if Path(registration.socket).exists():
            raise CheckFailedError(f"the registration socket {registration.socket} is left")
        if {each.metadata.uid for each in await harness.slices.now()} != before:
            raise CheckFailedError("slices were deleted")
    finally:
        await harness.driver.start(harness.instance)
        await harness.registrations.register()


async def _killed_during_prepare(
    harness: Harness, device: PooledDevice, seconds: float
) -> ClaimUnderTest:
    """A new claim; the driver is killed that long after it was asked to prepare it, and started again."""
    claim = await harness.claims.create(device)

    async def prepare() -> None:
        with suppress(grpc.aio.AioRpcError, CheckFailedError):  # the driver is killed meanwhile
            await harness.calls.prepare_all(claim)

    async def kill() -> None:
        await harness.client.clock.sleep(seconds)
        await harness.kill_and_start()

    await concurrently(prepare(), kill())
    return claim


def _expect_no_more_files(harness: Harness, before: set[str]) -> None:
    left = _cdi_files(harness) - before
    if left:
        raise CheckFailedError(f"CDI files are left: {sorted(left)}")


def _cdi_files(harness: Harness) -> set[str]:
    if not harness.cdi_directory.exists():
        raise CheckSkippedError("the driver writes no CDI files")
    return {path.name for path in harness.cdi_directory.iterdir() if not path.name.startswith(".")}
