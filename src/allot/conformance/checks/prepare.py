"""NodePrepareResources."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

import grpc

from allot.conformance.claims import ClaimUnderTest
from allot.conformance.harness import Harness
from allot.conformance.published_slices import PooledDevice
from allot.conformance.registry import check
from allot.conformance.results import CheckFailedError, CheckSkippedError, Level
from allot.conformance.waiting import concurrently
from allot.kubelet.dra.cdi import QUALIFIED_NAME
from allot.proto import dra_plugin_pb2
from allot.proto.services import V1, V1BETA1

API: Final = "kubelet dra/v1 api.proto"
KEP: Final = "KEP-4381 (NodePrepareResources)"
MANAGER: Final = "kubelet cm/dra/manager.go"
MANY: Final = 4


@check(
    "prepare/devices",
    "A prepared claim has the allocated devices, by pool and name",
    f"{API}: Device.pool_name, device_name",
)
async def answers_with_devices(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    _expect_devices(claim, (await harness.calls.prepare(claim))[claim.uid])


@check(
    "prepare/several-devices",
    "All devices of a claim are prepared, each for its request",
    f"{API}: Device.request_names",
)
async def prepares_several_devices(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices(2))
    _expect_devices(claim, (await harness.calls.prepare(claim))[claim.uid])


@check(
    "prepare/request-names",
    "Request names are those of the claim's spec, without a chosen alternative",
    f"{API}: Device.request_names; KEP-4816 (prioritized list)",
)
async def shortens_request_names(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices(), requests=["main/sub"])
    for device in (await harness.calls.prepare(claim))[claim.uid]:
        if set(device.request_names) - {"main"}:
            raise CheckFailedError(
                f"request names {list(device.request_names)} for the alternative main/sub; expected main"
            )


@check(
    "prepare/cdi-names",
    "CDI device IDs have the form VENDOR/CLASS=NAME",
    f"{API}: Device.cdi_device_ids; CDI specification",
)
async def has_cdi_names(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    for device in (await harness.calls.prepare(claim))[claim.uid]:
        for name in device.cdi_device_ids:
            if not QUALIFIED_NAME.fullmatch(name):
                raise CheckFailedError(f"{name!r} is not a qualified CDI device name")


@check(
    "prepare/cdi-files",
    "CDI devices exist, once, as soon as the call has returned",
    "CDI specification; KEP-4381 (CDI)",
)
async def writes_cdi_files(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    devices = (await harness.calls.prepare(claim))[claim.uid]
    if not any(device.cdi_device_ids for device in devices):
        raise CheckSkippedError("the driver returns no CDI devices")
    problem = harness.missing_cdi_devices(devices)
    if problem:
        raise CheckFailedError(problem)


@check(
    "prepare/idempotent",
    "A prepared claim is prepared again with the same answer: after a restart the kubelet calls again",
    f"{KEP}: the call must be idempotent",
)
async def is_idempotent(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    before = (await harness.calls.prepare(claim))[claim.uid]
    after = (await harness.calls.prepare(claim))[claim.uid]
    expect_same(before, after, "the second answer differs")


@check(
    "prepare/many",
    "Several claims in one call: exactly one answer for each",
    f"{MANAGER}: skipped or unknown claims are errors",
)
async def prepares_many(harness: Harness) -> None:
    claims = [await harness.claims.create(each) for each in await some_devices(harness)]
    answers = await harness.calls.prepare(*claims)
    if set(answers) != {claim.uid for claim in claims}:
        raise CheckFailedError("there are answers about claims that were not asked for")
    for claim in claims:
        _expect_devices(claim, answers[claim.uid])


@check("prepare/empty", "A call without claims succeeds", API)
async def accepts_nothing(harness: Harness) -> None:
    try:
        answers = await harness.calls.prepare_all()
    except grpc.aio.AioRpcError as error:
        raise CheckFailedError(f"{error.code().name}: {error.details()}") from error
    if answers:
        raise CheckFailedError("there are answers about claims that were not asked for")


@check(
    "prepare/missing-claim",
    "A claim that does not exist is not prepared",
    f"{KEP}: the driver reads the claim",
)
async def refuses_missing_claims(harness: Harness) -> None:
    await harness.slices.complete()
    claim = ClaimUnderTest("claim-missing", str(uuid.uuid4()), (), (), ())
    await harness.calls.refuses(claim, "that does not exist")


@check(
    "prepare/replaced-claim",
    "A claim whose name now belongs to another UID is not prepared",
    "dynamic-resource-allocation/kubeletplugin: the claim got replaced",
)
async def refuses_replaced_claims(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    await harness.calls.refuses(claim._replace(uid=str(uuid.uuid4())), "that was replaced")


@check(
    "prepare/unallocated-claim",
    "A claim without an allocation is not prepared",
    "dynamic-resource-allocation/kubeletplugin: claim not allocated",
)
async def refuses_unallocated_claims(harness: Harness) -> None:
    await harness.slices.complete()
    claim = await harness.claims.create(allocated=False, requests=["r0"])
    await harness.calls.refuses(claim, "without an allocation")


@check(
    "prepare/unknown-device",
    "A device that the driver does not have is not prepared",
    "KEP-4381: the driver verifies that the device exists",
    Level.SHOULD,
)
async def refuses_unknown_devices(harness: Harness) -> None:
    (device,) = await harness.slices.devices(is_shareable=False)
    unknown = device._replace(device=type(device.device)("conformance-unknown"))
    await harness.calls.refuses(
        await harness.claims.create(unknown), "with a device that does not exist"
    )


@check(
    "prepare/device-in-use",
    "A device that is prepared for another claim is not prepared, unless it is shared",
    "KEP-4381: the driver is the last line of defence against double use",
    Level.SHOULD,
)
async def refuses_devices_in_use(harness: Harness) -> None:
    (device,) = await harness.slices.devices(is_shareable=False)
    first = await harness.claims.create(device)
    await harness.calls.prepare(first)
    await harness.claims.allocate(first, None)  # without Unprepare, as when a node was lost
    second = await harness.claims.create(device)
    await harness.calls.refuses(second, "whose device is prepared for another claim")
    await harness.calls.unprepare(first)
    await harness.calls.prepare(second)


@check(
    "prepare/one-fails",
    "One claim that cannot be prepared does not fail the others for good",
    f"{API}: an error for each claim",
)
async def isolates_failures(harness: Harness) -> None:
    good = await harness.claims.create(*await harness.slices.devices())
    bad = await harness.claims.create(allocated=False, requests=["r0"])
    try:
        answers = await harness.calls.prepare_all(bad, good)
    except grpc.aio.AioRpcError:
        pass  # allowed: the kubelet discards the whole answer, and calls again
    else:
        if bad.uid in answers and not answers[bad.uid].error:
            raise CheckFailedError("a claim without an allocation was prepared without an error")
        if good.uid not in answers:
            raise CheckFailedError("the claim beside it has no answer")
    await harness.calls.prepare(good)


@check(
    "prepare/other-drivers",
    "Devices of other drivers in the same claim are left out",
    f"{MANAGER}: claims with devices of several drivers",
)
async def leaves_out_other_drivers(harness: Harness) -> None:
    other = {
        "request": "other",
        "driver": "other.conformance.example.com",
        "pool": "other",
        "device": "conformance-other",
    }
    claim = await harness.claims.create(*await harness.slices.devices(), others=[other])
    _expect_devices(claim, (await harness.calls.prepare(claim))[claim.uid])


@check(
    "prepare/shares",
    "Shares of one device are prepared for several claims, each with its share ID",
    f"{API}: Device.share_id; KEP-5075 (consumable capacity)",
)
async def prepares_shares(harness: Harness) -> None:
    (device,) = await harness.slices.devices(is_shareable=True)
    if V1 not in await harness.registrations.versions():
        raise CheckSkippedError("only v1.DRAPlugin has share IDs")
    claims = [await harness.claims.create(device), await harness.claims.create(device)]
    answers = await harness.calls.prepare(*claims, version=V1)
    for claim in claims:
        found = [each.share_id for each in answers[claim.uid]]
        if found != list(claim.share_ids):
            raise CheckFailedError(f"share IDs {found}; allocated: {list(claim.share_ids)}")
    ids = [{id_ for each in answers[claim.uid] for id_ in each.cdi_device_ids} for claim in claims]
    await harness.calls.unprepare(claims[0])
    problem = harness.missing_cdi_devices(answers[claims[1].uid])
    if ids[1] and problem:
        raise CheckFailedError(f"after the other share was unprepared: {problem}")


@check(
    "prepare/admin-access",
    "A claim with admin access is prepared although another claim has the device",
    "KEP-5018 (admin access)",
)
async def grants_admin_access(harness: Harness) -> None:
    (device,) = await harness.slices.devices(is_shareable=False)
    user = await harness.claims.create(device)
    before = (await harness.calls.prepare(user))[user.uid]
    admin = await harness.claims.create(device, admin_access=True)
    await harness.calls.prepare(admin)
    await harness.calls.unprepare(admin)
    problem = harness.missing_cdi_devices(before)
    if problem:
        raise CheckFailedError(f"after the admin's claim was unprepared: {problem}")
    expect_same(before, (await harness.calls.prepare(user))[user.uid], "the user's claim changed")


@check(
    "prepare/parallel",
    "Calls for different claims at the same time all succeed",
    f"{MANAGER}: pods start concurrently",
)
async def prepares_in_parallel(harness: Harness) -> None:
    claims = [await harness.claims.create(each) for each in await some_devices(harness)]
    answers = await concurrently(*(harness.calls.prepare(claim) for claim in claims))
    for claim, answer in zip(claims, answers, strict=True):
        _expect_devices(claim, answer[claim.uid])
        problem = harness.missing_cdi_devices(answer[claim.uid])
        if problem:
            raise CheckFailedError(problem)


@check(
    "prepare/parallel-same",
    "Calls for the same claim at the same time have the same answer",
    f"{KEP}: the call must be idempotent",
)
async def prepares_one_in_parallel(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    answers = await concurrently(*(harness.calls.prepare(claim) for _ in range(MANY)))
    for answer in answers[1:]:
        expect_same(answers[0][claim.uid], answer[claim.uid], "the answers differ")


@check(
    "prepare/versions",
    "All announced versions of DRAPlugin give the same answer; v1beta1 has no share IDs",
    "kubelet dra/v1beta1 api.proto",
)
async def agrees_in_all_versions(harness: Harness) -> None:
    versions = await harness.registrations.versions()
    if V1 not in versions or V1BETA1 not in versions:
        raise CheckSkippedError("the driver announces one version")
    claim = await harness.claims.create(*await harness.slices.devices())
    first = (await harness.calls.prepare(claim, version=V1))[claim.uid]
    second = (await harness.calls.prepare(claim, version=V1BETA1))[claim.uid]
    for device in first:
        device.ClearField("share_id")
    if any(device.HasField("share_id") for device in second):
        raise CheckFailedError("v1beta1 has a share ID, which its message does not have")
    expect_same(first, second, "v1 and v1beta1 differ")


async def some_devices(harness: Harness) -> list[PooledDevice]:
    """Two to four devices."""
    for count in range(MANY, 2, -1):
        try:
            return await harness.slices.devices(count)
        except CheckSkippedError:
            continue
    return await harness.slices.devices(2)


def _expect_devices(claim: ClaimUnderTest, found: Sequence[dra_plugin_pb2.Device]) -> None:
    wanted = {
        (request.partition("/")[0], each.pool, each.name)
        for request, each in zip(claim.requests, claim.devices, strict=True)
    }
    names = {request for request, _, _ in wanted}
    given = {
        (request, device.pool_name, device.device_name)
        for device in found
        for request in (device.request_names or names)
    }
    if not wanted <= given:
        raise CheckFailedError(
            f"prepared (request, pool, device) {sorted(given)}; allocated: {sorted(wanted)}"
        )
    if {each[1:] for each in given} != {each[1:] for each in wanted}:
        raise CheckFailedError(f"prepared {sorted(given)}, which the claim does not have")


def expect_same(
    before: Sequence[dra_plugin_pb2.Device], after: Sequence[dra_plugin_pb2.Device], what: str
) -> None:
    if _sorted(before) != _sorted(after):
        raise CheckFailedError(f"{what}: {_sorted(before)}, then {_sorted(after)}")


def _sorted(devices: Sequence[dra_plugin_pb2.Device]) -> list[tuple[str, ...]]:
    return sorted(
        (
            device.pool_name,
            device.device_name,
            device.share_id,
            ",".join(sorted(device.request_names)),
            ",".join(sorted(device.cdi_device_ids)),
        )
        for device in devices
    )
