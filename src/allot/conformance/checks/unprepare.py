"""NodeUnprepareResources."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

import grpc

from allot.conformance.checks.prepare import expect_same, some_devices
from allot.conformance.claims import ClaimUnderTest
from allot.conformance.harness import Harness
from allot.conformance.registry import check
from allot.conformance.results import CheckFailedError, CheckSkippedError, Level
from allot.conformance.waiting import concurrently
from allot.proto import dra_plugin_pb2

API: Final = "kubelet dra/v1 api.proto"
KEP: Final = "KEP-4381 (NodeUnprepareResources)"
MANAGER: Final = "kubelet cm/dra/manager.go"


@check("unprepare/prepared", "A prepared claim is unprepared", KEP)
async def unprepares(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    await harness.calls.prepare(claim)
    await harness.calls.unprepare(claim)


@check("unprepare/idempotent", "Unprepare succeeds again for the same claim", f"{KEP}: idempotent")
async def is_idempotent(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    await harness.calls.prepare(claim)
    await harness.calls.unprepare(claim)
    await harness.calls.unprepare(claim)


@check(
    "unprepare/never-prepared",
    "Unprepare of a claim that was never prepared succeeds",
    f"{KEP}: the kubelet calls it also after Prepare failed",
)
async def accepts_unprepared_claims(harness: Harness) -> None:
    await harness.calls.unprepare(await harness.claims.create(*await harness.slices.devices()))


@check(
    "unprepare/unknown",
    "Unprepare of a claim that does not exist, and never did, succeeds",
    f"{MANAGER}: otherwise pods cannot be deleted",
)
async def accepts_unknown_claims(harness: Harness) -> None:
    await harness.slices.complete()
    await harness.calls.unprepare(ClaimUnderTest("claim-unknown", str(uuid.uuid4()), (), (), ()))


@check(
    "unprepare/deleted-claim",
    "A claim is unprepared after it was deleted from the API",
    f"{KEP}: the claim may not exist any more",
)
async def unprepares_deleted_claims(harness: Harness) -> None:
    (device,) = await harness.slices.devices()
    claim = await harness.claims.create(device)
    devices = (await harness.calls.prepare(claim))[claim.uid]
    await harness.claims.delete(claim)
    await harness.calls.unprepare(claim)
    _expect_gone(harness, devices)


@check(
    "unprepare/cdi-files",
    "The CDI devices of a claim are gone after Unprepare",
    "CDI specification; KEP-4381 (CDI)",
    Level.SHOULD,
)
async def removes_cdi_files(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    devices = (await harness.calls.prepare(claim))[claim.uid]
    if not any(device.cdi_device_ids for device in devices):
        raise CheckSkippedError("the driver returns no CDI devices")
    await harness.calls.unprepare(claim)
    _expect_gone(harness, devices)


@check("unprepare/again", "A claim can be prepared again after Unprepare", KEP)
async def prepares_again(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    await harness.calls.prepare(claim)
    await harness.calls.unprepare(claim)
    problem = harness.missing_cdi_devices((await harness.calls.prepare(claim))[claim.uid])
    if problem:
        raise CheckFailedError(problem)


@check(
    "unprepare/reallocated",
    "After Unprepare the same claim is prepared with another device",
    "KEP-4381: a claim can be deallocated and allocated again",
)
async def prepares_other_devices(harness: Harness) -> None:
    first, second = await harness.slices.devices(2, is_shareable=False)
    claim = await harness.claims.create(first)
    await harness.calls.prepare(claim)
    await harness.calls.unprepare(claim)
    await harness.claims.allocate(claim, None)
    result = {
        "request": claim.requests[0],
        "driver": harness.driver_name,
        "pool": second.pool,
        "device": second.name,
    }
    await harness.claims.allocate(claim, {"devices": {"results": [result]}})
    names = [device.device_name for device in (await harness.calls.prepare(claim))[claim.uid]]
    if names != [second.name]:
        raise CheckFailedError(f"prepared {names}; allocated: {second.name}")


@check(
    "unprepare/next-claim",
    "After Unprepare the device is prepared for another claim",
    KEP,
)
async def frees_devices(harness: Harness) -> None:
    (device,) = await harness.slices.devices(is_shareable=False)
    first = await harness.claims.create(device)
    await harness.calls.prepare(first)
    await harness.calls.unprepare(first)
    await harness.claims.delete(first)
    second = await harness.claims.create(device)
    await harness.calls.prepare(second)


@check("unprepare/many", "Several claims in one call: one answer for each", f"{MANAGER}")
async def unprepares_many(harness: Harness) -> None:
    claims = [await harness.claims.create(each) for each in await some_devices(harness)]
    await harness.calls.prepare(*claims)
    answers = await harness.calls.unprepare_all(*claims)
    if set(answers) != {claim.uid for claim in claims}:
        raise CheckFailedError(f"{len(answers)} answers about {len(claims)} claims")
    for answer in answers.values():
        if answer.error:
            raise CheckFailedError(answer.error)


@check("unprepare/empty", "A call without claims succeeds", API)
async def accepts_nothing(harness: Harness) -> None:
    try:
        await harness.calls.unprepare_all()
    except grpc.aio.AioRpcError as error:
        raise CheckFailedError(f"{error.code().name}: {error.details()}") from error


@check(
    "unprepare/others",
    "Unprepare of one claim leaves others as they are",
    f"{KEP}",
)
async def leaves_others_alone(harness: Harness) -> None:
    first, second = [await harness.claims.create(each) for each in await harness.slices.devices(2)]
    before = (await harness.calls.prepare(first, second))[second.uid]
    await harness.calls.unprepare(first)
    problem = harness.missing_cdi_devices(before)
    if problem:
        raise CheckFailedError(problem)
    expect_same(
        before, (await harness.calls.prepare(second))[second.uid], "the other claim changed"
    )


@check(
    "unprepare/parallel",
    "Prepare and Unprepare of different claims at the same time succeed",
    f"{MANAGER}: pods start and end concurrently",
)
async def works_in_parallel(harness: Harness) -> None:
    first, second = [await harness.claims.create(each) for each in await harness.slices.devices(2)]
    await harness.calls.prepare(first)
    answers: dict[str, list[dra_plugin_pb2.Device]] = {}

    async def prepare() -> None:
        answers.update(await harness.calls.prepare(second))

    await concurrently(prepare(), harness.calls.unprepare(first))
    problem = harness.missing_cdi_devices(answers[second.uid])
    if problem:
        raise CheckFailedError(problem)


def _expect_gone(harness: Harness, devices: Iterable[dra_plugin_pb2.Device]) -> None:
    for device in devices:
        if device.cdi_device_ids and not harness.missing_cdi_devices([device]):
            raise CheckFailedError(f"CDI devices {list(device.cdi_device_ids)} still exist")
