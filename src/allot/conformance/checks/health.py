"""The health stream, for drivers that announce it."""

from __future__ import annotations

import asyncio
from typing import Final

import grpc

from allot.conformance.harness import Harness
from allot.conformance.registry import check
from allot.conformance.results import CheckFailedError, CheckSkippedError, Level
from allot.conformance.waiting import concurrently
from allot.kubelet.dra.plugin import open_channel
from allot.proto import dra_health_pb2
from allot.proto.services import HEALTH_SERVICES, node_watch_resources, stream

API: Final = "kubelet dra-health/v1 api.proto"
DEFAULT_TIMEOUT: Final = 30.0
MAX_CLOCK_SKEW: Final = 300.0


async def _first_message(
    harness: Harness, version: str
) -> dra_health_pb2.NodeWatchResourcesResponse:
    endpoint = (await harness.registrations.current()).info.endpoint
    async with open_channel(endpoint) as channel:
        messages = stream(
            channel, node_watch_resources(version), dra_health_pb2.NodeWatchResourcesRequest()
        )
        try:
            return await asyncio.wait_for(
                anext(aiter(messages)), min(DEFAULT_TIMEOUT, harness.limits.start)
            )
        except grpc.aio.AioRpcError as error:
            raise CheckFailedError(f"{version}: {error.code().name}: {error.details()}") from error
        except (TimeoutError, StopAsyncIteration) as error:
            raise CheckFailedError(
                f"{version}: no message before the health of devices expires"
            ) from error


async def _versions(harness: Harness) -> list[str]:
    announced = (await harness.registrations.current()).info.supported_versions
    found = [version for version in HEALTH_SERVICES if version in announced]
    if not found:
        raise CheckSkippedError("the driver does not announce a health stream")
    return found


@check("health/stream", "Every announced version of the health stream sends a message", API)
async def streams(harness: Harness) -> None:
    await harness.slices.complete()
    for version in await _versions(harness):
        await _first_message(harness, version)


@check(
    "health/devices",
    "A message has published devices, each once, with a time that is about now",
    f"{API}: DeviceHealth",
)
async def reports_devices(harness: Harness) -> None:
    versions = await _versions(harness)
    known = {
        (slice_.spec.pool.name, device.name)
        for slice_ in await harness.slices.complete()
        for device in slice_.spec.devices or ()
    }
    message = await _first_message(harness, versions[0])
    reported = [(each.device.pool_name, each.device.device_name) for each in message.devices]
    if len(set(reported)) < len(reported):
        raise CheckFailedError("a device is reported twice in one message")
    unknown = set(reported) - known
    if unknown:
        raise CheckFailedError(f"devices that are not published: {sorted(unknown)}")
    now = harness.client.clock.today().timestamp()
    for each in message.devices:
        if abs(each.last_updated_time - now) > MAX_CLOCK_SKEW:
            raise CheckFailedError(
                f"device {each.device.device_name}: last_updated_time is {each.last_updated_time}, not Unix seconds of now"
            )


@check(
    "health/all-devices",
    "A message has all devices: the health of those that are missing expires",
    f"{API}: NodeWatchResourcesResponse.devices",
    Level.SHOULD,
)
async def reports_all_devices(harness: Harness) -> None:
    versions = await _versions(harness)
    missing = {
        (slice_.spec.pool.name, device.name)
        for slice_ in await harness.slices.complete()
        for device in slice_.spec.devices or ()
    }
    message = await _first_message(harness, versions[0])
    for each in message.devices:
        missing.discard((each.device.pool_name, each.device.device_name))
    if missing:
        raise CheckFailedError(f"the first message is without {sorted(missing)}")


@check(
    "health/again",
    "A second stream is served: a restarted kubelet connects again",
    "kubelet cm/dra/plugin: streams are opened again",
)
async def streams_again(harness: Harness) -> None:
    await harness.slices.complete()
    version = (await _versions(harness))[0]
    await concurrently(_first_message(harness, version), _first_message(harness, version))
    await _first_message(harness, version)
