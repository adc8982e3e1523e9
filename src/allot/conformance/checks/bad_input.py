"""Input that no kubelet sends: a driver that runs as root must not fall for it."""

from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

import grpc

from allot.conformance.claims import ClaimUnderTest
from allot.conformance.harness import Harness
from allot.conformance.registry import check
from allot.conformance.results import CheckFailedError, Level
from allot.proto import dra_plugin_pb2
from allot.proto.services import DRA_SERVICES

ROBUST: Final = "KEP-4381 (security): drivers are privileged"
API: Final = "kubelet dra/v1 api.proto"
CANCEL_SECONDS: Final = 0.02


@check(
    "bad-input/garbage", "A message that cannot be decoded is refused, and the driver goes on", API
)
async def survives_garbage(harness: Harness) -> None:
    service = DRA_SERVICES[(await harness.registrations.versions())[0]]
    async with harness.calls.channel() as channel:
        for method in ("NodePrepareResources", "NodeUnprepareResources"):
            ask = channel.unary_unary(f"/{service}/{method}")
            try:
                await ask(b"\xff\xff\xff\xff", timeout=harness.limits.call)
            except grpc.aio.AioRpcError:
                continue
            raise CheckFailedError(f"{method} accepted bytes that are no message")
    await harness.still_works()


@check("bad-input/method", "An unknown method is Unimplemented, and the driver goes on", API)
async def refuses_unknown_methods(harness: Harness) -> None:
    service = DRA_SERVICES[(await harness.registrations.versions())[0]]
    async with harness.calls.channel() as channel:
        ask = channel.unary_unary(f"/{service}/NodeConformanceKit")
        try:
            await ask(b"", timeout=harness.limits.call)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise CheckFailedError(f"{error.code().name}: {error.details()}") from error
        else:
            raise CheckFailedError("an unknown method was answered")
    await harness.still_works()


@check(
    "bad-input/empty-claim",
    "A claim without name and UID is refused, and the driver goes on",
    ROBUST,
)
async def survives_empty_claims(harness: Harness) -> None:
    await harness.slices.complete()
    await harness.calls.refuses(ClaimUnderTest("", "", (), (), (), ""), "without name and UID")
    await harness.still_works()


@check(
    "bad-input/uid-as-path",
    "A UID that is a path creates and deletes no file elsewhere",
    ROBUST,
)
async def stays_in_its_directories(harness: Harness) -> None:
    await harness.slices.complete()
    victim = harness.paths.root / "conformance-victim.json"
    victim.write_text("{}")
    before = _files(harness.paths.root)
    for uid in ("../conformance-victim", "../../conformance-victim", str(victim)[:-5]):
        claim = ClaimUnderTest("conformance-path", uid, (), (), ())
        await harness.calls.refuses(claim, f"with UID {uid}")
        with suppress(grpc.aio.AioRpcError):  # an error is fine
            await harness.calls.unprepare_all(claim)
        changed = before ^ _files(harness.paths.root)
        if changed:
            raise CheckFailedError(f"UID {uid} touched {sorted(changed)}")
    victim.unlink()


@check(
    "bad-input/config",
    "Opaque parameters that the driver does not know end with an answer, and the driver goes on",
    "resource.k8s.io/v1 OpaqueDeviceConfiguration: parameters are the driver's to validate",
)
async def survives_unknown_parameters(harness: Harness) -> None:
    parameters: dict[str, object] = {
        "apiVersion": "conformance.example.com/v9",
        "kind": "Unknown",
        "x": [None, {}],
    }
    opaque = {
        "driver": harness.driver_name or (await harness.registrations.current()).info.name,
        "parameters": parameters,
    }
    claim = await harness.claims.create(
        *await harness.slices.devices(), config=[{"source": "FromClaim", "opaque": opaque}]
    )
    try:
        answers = await harness.calls.prepare_all(claim)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            raise CheckFailedError(f"the driver went away: {error.details()}") from error
    else:
        if claim.uid not in answers:
            raise CheckFailedError("there is no answer about the claim")
    await harness.calls.unprepare(claim)
    await harness.claims.delete(claim)
    await harness.still_works()


@check(
    "bad-input/duplicates",
    "The same claim twice in one call is answered once",
    API,
    Level.SHOULD,
)
async def accepts_duplicates(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    await harness.calls.prepare(claim, claim)
    await harness.calls.unprepare(claim, claim)


@check(
    "bad-input/cancelled",
    "A call that the kubelet cancels leaves nothing behind that disturbs the next",
    "kubelet cm/dra/plugin: calls have a deadline of 45 s",
)
async def survives_cancelled_calls(harness: Harness) -> None:
    claim = await harness.claims.create(*await harness.slices.devices())
    service = DRA_SERVICES[(await harness.registrations.versions())[0]]
    request = dra_plugin_pb2.NodePrepareResourcesRequest(claims=[claim.message()])
    async with harness.calls.channel() as channel:
        await channel.channel_ready()
        call = channel.unary_unary(f"/{service}/NodePrepareResources")(request.SerializeToString())
        await harness.client.clock.sleep(CANCEL_SECONDS)
        call.cancel()
    await harness.calls.prepare(claim)
    await harness.calls.unprepare(claim)
    await harness.calls.unprepare(ClaimUnderTest("claim-unknown", str(uuid.uuid4()), (), (), ()))


def _files(root: Path) -> set[str]:
    """All files of the node, except the driver's own."""
    return {
        str(path)
        for directory in (root, root.parent)
        for path in directory.glob("*")
        if path.is_file()
    }
