"""Restarts: a driver is killed and started again, at any moment."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import grpc

from allot.conformance.catalog import check
from allot.conformance.checks.prepare import expect_same
from allot.conformance.claims import ClaimUnderTest
from allot.conformance.kit import Kit
from allot.conformance.published_slices import PooledDevice
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
async def registers_again(kit: Kit) -> None:
    kit.needs_restart()
    await kit.slices.complete()
    await kit.kill_and_start()
    await kit.still_works()


@check(
    "restart/prepared",
    "A claim that was prepared before a crash has the same answer after it",
    f"{KEP}: prepared state survives",
)
async def remembers_prepared_claims(kit: Kit) -> None:
    kit.needs_restart()
    claim = await kit.claims.create(*await kit.slices.devices())
    before = (await kit.calls.prepare(claim))[claim.uid]
    await kit.kill_and_start()
    after = (await kit.calls.prepare(claim))[claim.uid]
    expect_same(before, after, "the answer after the restart differs")
    problem = kit.missing_cdi_devices(after)
    if problem:
        raise CheckFailedError(problem)


@check(
    "restart/unprepare",
    "A claim that was prepared before a crash is unprepared after it, although it is deleted from the API",
    f"{KEP}: Unprepare works without the claim",
)
async def unprepares_after_a_restart(kit: Kit) -> None:
    kit.needs_restart()
    claim = await kit.claims.create(*await kit.slices.devices())
    await kit.calls.prepare(claim)
    await kit.claims.delete(claim)
    await kit.kill_and_start()
    await kit.calls.unprepare(claim)


@check(
    "restart/cleanup",
    "The CDI devices of a claim that was prepared before a crash are gone after Unprepare",
    f"{KEP}: prepared state survives",
    Level.SHOULD,
)
async def cleans_up_after_a_restart(kit: Kit) -> None:
    kit.needs_restart()
    claim = await kit.claims.create(*await kit.slices.devices())
    devices = (await kit.calls.prepare(claim))[claim.uid]
    await kit.kill_and_start()
    await kit.calls.unprepare(claim)
    for device in devices:
        if device.cdi_device_ids and not kit.missing_cdi_devices([device]):
            raise CheckFailedError(f"CDI devices {list(device.cdi_device_ids)} still exist")


@check(
    "restart/device-in-use",
    "A device that was prepared before a crash is not prepared for another claim after it",
    "KEP-4381: the driver is the last line of defence against double use",
    Level.SHOULD,
)
async def remembers_devices_in_use(kit: Kit) -> None:
    kit.needs_restart()
    (device,) = await kit.slices.devices(is_shareable=False)
    first = await kit.claims.create(device)
    await kit.calls.prepare(first)
    await kit.claims.allocate(first, None)
    await kit.kill_and_start()
    second = await kit.claims.create(device)
    await kit.calls.refuses(second, "whose device is prepared for another claim")


@check(
    "restart/during-prepare",
    "A crash during Prepare: afterwards the claim is prepared, unprepared, and nothing is left",
    f"{KEP}: the kubelet calls Prepare again",
)
async def survives_a_crash_in_prepare(kit: Kit) -> None:
    kit.needs_restart()
    (device,) = await kit.slices.devices()
    before = _cdi_files(kit)
    for seconds in KILL_AFTER_SECONDS:
        claim = await _killed_during_prepare(kit, device, seconds)
        problem = kit.missing_cdi_devices((await kit.calls.prepare(claim))[claim.uid])
        if problem:
            raise CheckFailedError(problem)
        await kit.calls.unprepare(claim)
        await kit.claims.delete(claim)
    _expect_no_more_files(kit, before)


@check(
    "restart/unprepare-partial",
    "A crash during Prepare, and the claim is only unprepared: nothing is left of it",
    f"{KEP}: the pod may be deleted meanwhile",
    Level.SHOULD,
)
async def cleans_up_after_a_crash(kit: Kit) -> None:
    kit.needs_restart()
    (device,) = await kit.slices.devices()
    before = _cdi_files(kit)
    for seconds in KILL_AFTER_SECONDS:
        claim = await _killed_during_prepare(kit, device, seconds)
        await kit.calls.unprepare(claim)
        await kit.claims.delete(claim)
    _expect_no_more_files(kit, before)


@check(
    "restart/slices",
    "A restarted driver publishes the same devices, without a new generation",
    "dynamic-resource-allocation/resourceslice: unchanged slices are not updated",
    Level.SHOULD,
)
async def keeps_slices(kit: Kit) -> None:
    kit.needs_restart()
    before = {each.metadata.uid: each.spec.pool.generation for each in await kit.slices.complete()}
    await kit.kill_and_start()
    await kit.client.clock.sleep(kit.limits.quiet)
    after = {each.metadata.uid: each.spec.pool.generation for each in await kit.slices.complete()}
    if after != before:
        raise CheckFailedError("slices were deleted, created or got a new generation")


@check(
    "restart/graceful",
    "SIGTERM ends the driver in time; its sockets are removed, its slices stay",
    f"{HELPER}: Stop; KEP-4381: the kubelet deletes slices of drivers that do not come back",
)
async def ends_gracefully(kit: Kit) -> None:
    kit.needs_restart()
    registration = await kit.registrations.current()
    before = {each.metadata.uid for each in await kit.slices.complete()}
    problem = await kit.driver.stop(kit.instance)
    try:
        if problem:
            raise CheckFailedError(problem)
        if Path(registration.socket).exists():
            raise CheckFailedError(f"the registration socket {registration.socket} is left")
        if {each.metadata.uid for each in await kit.slices.now()} != before:
            raise CheckFailedError("slices were deleted")
    finally:
        await kit.driver.start(kit.instance)
        await kit.registrations.register()


async def _killed_during_prepare(kit: Kit, device: PooledDevice, seconds: float) -> ClaimUnderTest:
    """A new claim; the driver is killed that long after it was asked to prepare it, and started again."""
    claim = await kit.claims.create(device)

    async def prepare() -> None:
        with suppress(grpc.aio.AioRpcError, CheckFailedError):  # the driver is killed meanwhile
            await kit.calls.prepare_all(claim)

    async def kill() -> None:
        await kit.client.clock.sleep(seconds)
        await kit.kill_and_start()

    await concurrently(prepare(), kill())
    return claim


def _expect_no_more_files(kit: Kit, before: set[str]) -> None:
    left = _cdi_files(kit) - before
    if left:
        raise CheckFailedError(f"CDI files are left: {sorted(left)}")


def _cdi_files(kit: Kit) -> set[str]:
    if not kit.cdi_directory.exists():
        raise CheckSkippedError("the driver writes no CDI files")
    return {path.name for path in kit.cdi_directory.iterdir() if not path.name.startswith(".")}
