"""NodeUnprepareResources."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

import grpc

from allot.conformance.catalog import check
from allot.conformance.checks.prepare import expect_same, some_devices
from allot.conformance.claims import ClaimUnderTest
from allot.conformance.kit import Kit
from allot.conformance.results import CheckFailedError, CheckSkippedError, Level
from allot.conformance.waiting import concurrently
from allot.proto import dra_plugin_pb2

API: Final = "kubelet dra/v1 api.proto"
KEP: Final = "KEP-4381 (NodeUnprepareResources)"
MANAGER: Final = "kubelet cm/dra/manager.go"


@check("unprepare/prepared", "A prepared claim is unprepared", KEP)
async def unprepares(kit: Kit) -> None:
    claim = await kit.claims.create(*await kit.slices.devices())
    await kit.calls.prepare(claim)
    await kit.calls.unprepare(claim)


@check("unprepare/idempotent", "Unprepare succeeds again for the same claim", f"{KEP}: idempotent")
async def is_idempotent(kit: Kit) -> None:
    claim = await kit.claims.create(*await kit.slices.devices())
    await kit.calls.prepare(claim)
    await kit.calls.unprepare(claim)
    await kit.calls.unprepare(claim)


@check(
    "unprepare/never-prepared",
    "Unprepare of a claim that was never prepared succeeds",
    f"{KEP}: the kubelet calls it also after Prepare failed",
)
async def accepts_unprepared_claims(kit: Kit) -> None:
    await kit.calls.unprepare(await kit.claims.create(*await kit.slices.devices()))


@check(
    "unprepare/unknown",
    "Unprepare of a claim that does not exist, and never did, succeeds",
    f"{MANAGER}: otherwise pods cannot be deleted",
)
async def accepts_unknown_claims(kit: Kit) -> None:
    await kit.slices.complete()
    await kit.calls.unprepare(ClaimUnderTest("claim-unknown", str(uuid.uuid4()), (), (), ()))


@check(
    "unprepare/deleted-claim",
    "A claim is unprepared after it was deleted from the API",
    f"{KEP}: the claim may not exist any more",
)
async def unprepares_deleted_claims(kit: Kit) -> None:
    (device,) = await kit.slices.devices()
    claim = await kit.claims.create(device)
    devices = (await kit.calls.prepare(claim))[claim.uid]
    await kit.claims.delete(claim)
    await kit.calls.unprepare(claim)
    _expect_gone(kit, devices)


@check(
    "unprepare/cdi-files",
    "The CDI devices of a claim are gone after Unprepare",
    "CDI specification; KEP-4381 (CDI)",
    Level.SHOULD,
)
async def removes_cdi_files(kit: Kit) -> None:
    claim = await kit.claims.create(*await kit.slices.devices())
    devices = (await kit.calls.prepare(claim))[claim.uid]
    if not any(device.cdi_device_ids for device in devices):
        raise CheckSkippedError("the driver returns no CDI devices")
    await kit.calls.unprepare(claim)
    _expect_gone(kit, devices)


@check("unprepare/again", "A claim can be prepared again after Unprepare", KEP)
async def prepares_again(kit: Kit) -> None:
    claim = await kit.claims.create(*await kit.slices.devices())
    await kit.calls.prepare(claim)
    await kit.calls.unprepare(claim)
    problem = kit.missing_cdi_devices((await kit.calls.prepare(claim))[claim.uid])
    if problem:
        raise CheckFailedError(problem)


@check(
    "unprepare/reallocated",
    "After Unprepare the same claim is prepared with another device",
    "KEP-4381: a claim can be deallocated and allocated again",
)
async def prepares_other_devices(kit: Kit) -> None:
    first, second = await kit.slices.devices(2, is_shareable=False)
    claim = await kit.claims.create(first)
    await kit.calls.prepare(claim)
    await kit.calls.unprepare(claim)
    await kit.claims.allocate(claim, None)
    result = {
        "request": claim.requests[0],
        "driver": kit.driver_name,
        "pool": second.pool,
        "device": second.name,
    }
    await kit.claims.allocate(claim, {"devices": {"results": [result]}})
    names = [device.device_name for device in (await kit.calls.prepare(claim))[claim.uid]]
    if names != [second.name]:
        raise CheckFailedError(f"prepared {names}; allocated: {second.name}")


@check(
    "unprepare/next-claim",
    "After Unprepare the device is prepared for another claim",
    KEP,
)
async def frees_devices(kit: Kit) -> None:
    (device,) = await kit.slices.devices(is_shareable=False)
    first = await kit.claims.create(device)
    await kit.calls.prepare(first)
    await kit.calls.unprepare(first)
    await kit.claims.delete(first)
    second = await kit.claims.create(device)
    await kit.calls.prepare(second)


@check("unprepare/many", "Several claims in one call: one answer for each", f"{MANAGER}")
async def unprepares_many(kit: Kit) -> None:
    claims = [await kit.claims.create(each) for each in await some_devices(kit)]
    await kit.calls.prepare(*claims)
    answers = await kit.calls.unprepare_all(*claims)
    if set(answers) != {claim.uid for claim in claims}:
        raise CheckFailedError(f"{len(answers)} answers about {len(claims)} claims")
    for answer in answers.values():
        if answer.error:
            raise CheckFailedError(answer.error)


@check("unprepare/empty", "A call without claims succeeds", API)
async def accepts_nothing(kit: Kit) -> None:
    try:
        await kit.calls.unprepare_all()
    except grpc.aio.AioRpcError as error:
        raise CheckFailedError(f"{error.code().name}: {error.details()}") from error


@check(
    "unprepare/others",
    "Unprepare of one claim leaves others as they are",
    f"{KEP}",
)
async def leaves_others_alone(kit: Kit) -> None:
    first, second = [await kit.claims.create(each) for each in await kit.slices.devices(2)]
    before = (await kit.calls.prepare(first, second))[second.uid]
    await kit.calls.unprepare(first)
    problem = kit.missing_cdi_devices(before)
    if problem:
        raise CheckFailedError(problem)
    expect_same(before, (await kit.calls.prepare(second))[second.uid], "the other claim changed")


@check(
    "unprepare/parallel",
    "Prepare and Unprepare of different claims at the same time succeed",
    f"{MANAGER}: pods start and end concurrently",
)
async def works_in_parallel(kit: Kit) -> None:
    first, second = [await kit.claims.create(each) for each in await kit.slices.devices(2)]
    await kit.calls.prepare(first)
    answers: dict[str, list[dra_plugin_pb2.Device]] = {}

    async def prepare() -> None:
        answers.update(await kit.calls.prepare(second))

    await concurrently(prepare(), kit.calls.unprepare(first))
    problem = kit.missing_cdi_devices(answers[second.uid])
    if problem:
        raise CheckFailedError(problem)


def _expect_gone(kit: Kit, devices: Iterable[dra_plugin_pb2.Device]) -> None:
    for device in devices:
        if device.cdi_device_ids and not kit.missing_cdi_devices([device]):
            raise CheckFailedError(f"CDI devices {list(device.cdi_device_ids)} still exist")
