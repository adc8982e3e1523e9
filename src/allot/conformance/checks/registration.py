"""Registration with the kubelet's plugin manager."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Final

import grpc

from allot.conformance.harness import Harness
from allot.conformance.registry import check
from allot.conformance.results import CheckFailedError, CheckSkippedError, Level
from allot.kubelet.dra.paths import MAX_SOCKET_PATH
from allot.proto.services import DRA_PLUGIN_TYPE, DRA_SERVICES, V1

PLUGIN_REGISTRATION: Final = "kubelet pluginregistration/v1 api.proto"
KUBELET_PLUGIN: Final = "dynamic-resource-allocation/kubeletplugin"
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
MAX_DRIVER_NAME: Final = 63


@check(
    "registration/socket",
    "A socket in the registry directory answers GetInfo within a second",
    f"{PLUGIN_REGISTRATION}, KEP-4381 (kubelet)",
)
async def registers(harness: Harness) -> None:
    await harness.registrations.current()


@check("registration/type", "The plugin type is DRAPlugin", PLUGIN_REGISTRATION)
async def has_type(harness: Harness) -> None:
    info = (await harness.registrations.current()).info
    if info.type != DRA_PLUGIN_TYPE:
        raise CheckFailedError(f"the type is {info.type!r}, not {DRA_PLUGIN_TYPE!r}")


@check(
    "registration/name",
    "The name is that of the driver: a DNS subdomain of at most 63 characters",
    "resource.k8s.io/v1 ResourceSliceSpec.driver",
)
async def has_name(harness: Harness) -> None:
    name = (await harness.registrations.current()).info.name
    if len(name) > MAX_DRIVER_NAME or not _SUBDOMAIN.fullmatch(name):
        raise CheckFailedError(f"{name!r} is not a DNS subdomain of at most 63 characters")


@check(
    "registration/endpoint",
    "The endpoint is the absolute path of a unix socket, of at most 107 bytes",
    PLUGIN_REGISTRATION,
)
async def has_endpoint(harness: Harness) -> None:
    endpoint = (await harness.registrations.current()).info.endpoint
    path = Path(endpoint)
    if not path.is_absolute():
        raise CheckFailedError(f"endpoint {endpoint!r} is not an absolute path")
    if len(endpoint.encode()) > MAX_SOCKET_PATH:
        raise CheckFailedError(f"endpoint {endpoint} is longer than {MAX_SOCKET_PATH} bytes")
    if not path.exists() or not stat.S_ISSOCK(path.stat().st_mode):
        raise CheckFailedError(f"endpoint {endpoint} is not a socket")


@check(
    "registration/versions",
    "supported_versions has v1.DRAPlugin or v1beta1.DRAPlugin",
    f"{KUBELET_PLUGIN}, kubelet cm/dra/plugin",
)
async def has_versions(harness: Harness) -> None:
    if not await harness.registrations.versions():
        announced = list((await harness.registrations.current()).info.supported_versions)
        raise CheckFailedError(f"{announced} has none of {', '.join(DRA_SERVICES)}")


@check(
    "registration/prefers-v1",
    "v1.DRAPlugin is announced, and before v1beta1.DRAPlugin",
    f"{KUBELET_PLUGIN}: the kubelet uses the first version that it knows",
    Level.SHOULD,
)
async def prefers_v1(harness: Harness) -> None:
    versions = await harness.registrations.versions()
    if versions[:1] != [V1]:
        raise CheckFailedError(f"the kubelet would use {versions[0]}" if versions else "no version")


@check(
    "registration/served-versions",
    "Every announced version of DRAPlugin is served at the endpoint",
    f"{KUBELET_PLUGIN}, kubelet dra/v1 and dra/v1beta1 api.proto",
)
async def serves_versions(harness: Harness) -> None:
    for version in await harness.registrations.versions():
        try:
            await harness.calls.prepare_all(version=version)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise CheckFailedError(f"{version} is announced and not implemented") from error
            raise CheckFailedError(f"{version}: {error.code().name}: {error.details()}") from error


@check("registration/notification", "NotifyRegistrationStatus is answered", PLUGIN_REGISTRATION)
async def is_notified(harness: Harness) -> None:
    socket = (await harness.registrations.current()).socket
    try:
        await harness.registrations.notify(socket)
    except grpc.aio.AioRpcError as error:
        raise CheckFailedError(f"{error.code().name}: {error.details()}") from error


@check(
    "registration/stable-info",
    "GetInfo gives the same answer again: a restarted kubelet asks again",
    "KEP-4381 (kubelet restarts)",
)
async def has_stable_info(harness: Harness) -> None:
    before = await harness.registrations.current()
    after = await harness.registrations.get_info(before.socket)
    if after != before.info:
        raise CheckFailedError("GetInfo answered differently, or not at all, the second time")


@check(
    "registration/one-socket",
    "One running instance has one registration socket",
    "kubelet cm/dra/plugin: an endpoint is registered once",
)
async def registers_once(harness: Harness) -> None:
    await harness.registrations.current()
    found = await harness.registrations.answering()
    if len(found) != 1:
        raise CheckFailedError(f"{len(found)} sockets answer: {[each.socket for each in found]}")


@check(
    "registration/refused",
    "The driver still serves after the kubelet refused it: it is asked again",
    "kubelet pluginmanager/reconciler",
)
async def survives_refusal(harness: Harness) -> None:
    if not harness.driver.can_restart:
        raise CheckSkippedError("would disturb a driver that the harness did not start")
    registration = await harness.registrations.current()
    try:
        await harness.registrations.notify(registration.socket, "refused by the conformance suite")
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            raise CheckFailedError("the driver went away") from error
    await harness.client.clock.sleep(min(harness.limits.quiet, 0.5))
    if harness.problem():  # a driver may end, to be started again
        await harness.driver.start(harness.instance)
    await harness.registrations.register()
