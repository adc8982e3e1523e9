"""What checks work with: the kubelet's calls to the driver, claims with allocations, and the driver's slices."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import grpc

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.slices import Device, ResourceSlice
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.options import Scope
from allot.client.resources import RESOURCE_CLAIMS, RESOURCE_SLICES
from allot.conformance.results import CheckFailedError, CheckSkippedError
from allot.conformance.under_test import DriverUnderTest
from allot.kubelet.dra.cdi import CdiError, CdiSpecs
from allot.kubelet.dra.paths import NodePaths
from allot.kubelet.dra.plugin import open_channel
from allot.kubelet.dra.plugin_watcher import sockets_in
from allot.proto import dra_plugin_pb2, plugin_registration_pb2
from allot.proto.services import (
    DRA_SERVICES,
    GET_INFO,
    NOTIFY_REGISTRATION_STATUS,
    Method,
    call,
    node_prepare_resources,
    node_unprepare_resources,
)

T = TypeVar("T")
RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")

NAMESPACE: Final = "conformance"
DEVICE_CLASS: Final = "conformance"
POLL_SECONDS: Final = 0.05
FIRST: Final = "a0000000-0000-4000-8000-000000000001"
SECOND: Final = "a0000000-0000-4000-8000-000000000002"
"""The UIDs of the driver's pods."""


class Limits(NamedTuple):
    """How long the kit waits, in seconds."""

    start: float = 30.0
    """For registration and publication after a start."""
    repair: float = 90.0
    """For slices that were deleted or changed by others."""
    call: float = 45.0
    """For a call: the kubelet's deadline."""
    quiet: float = 3.0
    """For how long nothing must happen."""


class ClaimUnderTest(NamedTuple):
    """A claim that the kit has made."""

    name: str
    uid: str
    devices: tuple[PooledDevice, ...]
    requests: tuple[str, ...]
    share_ids: tuple[str | None, ...]
    namespace: str = NAMESPACE

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    def message(self) -> dra_plugin_pb2.Claim:
        return dra_plugin_pb2.Claim(namespace=self.namespace, name=self.name, uid=self.uid)


class PooledDevice(NamedTuple):
    """A published device."""

    pool: str
    device: Device

    @property
    def name(self) -> str:
        return self.device.name

    @property
    def is_shareable(self) -> bool:
        return bool(self.device.allow_multiple_allocations)


Prepared = Mapping[str, dra_plugin_pb2.NodePrepareResourceResponse]
Unprepared = Mapping[str, dra_plugin_pb2.NodeUnprepareResourceResponse]


class Registration(NamedTuple):
    """A registration socket, and what it answers."""

    socket: str
    info: plugin_registration_pb2.PluginInfo


class Kit:
    """One driver, on one node."""

    def __init__(
        self,
        client: Client,
        driver: DriverUnderTest,
        paths: NodePaths,
        node: str,
        *,
        driver_name: str = "",
        registration_socket: str = "",
        cdi_directory: Path | None = None,
        limits: Limits = Limits(),  # noqa: B008 - a value
    ) -> None:
        """Without a `driver_name` it is the one that registers first."""
        self.client = client
        self.driver = driver
        self.paths = paths
        self.node = node
        self.limits = limits
        self.driver_name = driver_name
        self.cdi_directory = cdi_directory or paths.cdi
        self.cdi = CdiSpecs(self.cdi_directory)
        self._registration_socket = registration_socket
        self._made: list[ClaimUnderTest] = []
        self.instance = FIRST

    # --- waiting ---

    async def until(
        self,
        holds: Callable[[], Awaitable[T | None]],
        what: str,
        seconds: float | None = None,
    ) -> T:
        """What `holds` answers, once it is true. `CheckFailedError` if that takes too long."""
        limit = self.limits.start if seconds is None else seconds
        deadline = self.client.clock.now() + limit
        while True:
            found = await holds()
            if found:
                return found
            problem = self.driver.problem(self.instance)
            if problem:
                raise CheckFailedError(problem)
            if self.client.clock.now() >= deadline:
                raise CheckFailedError(f"{what}: not within {limit:.0f} s")
            await self.client.clock.sleep(POLL_SECONDS)

    # --- registration ---

    async def registrations(self) -> list[Registration]:
        """The sockets that answer now, with the driver's name if that is known."""
        if self._registration_socket:
            sockets = [self._registration_socket]
        else:
            found = await asyncio.to_thread(sockets_in, str(self.paths.registry))
            sockets = sorted(socket.path for socket in found[0])
        answers = []
        for socket in sockets:
            info = await self.get_info(socket)
            if info is not None and self.driver_name in ("", info.name):
                answers.append(Registration(socket, info))
        return answers

    async def get_info(self, socket: str) -> plugin_registration_pb2.PluginInfo | None:
        async with open_channel(socket) as channel:
            try:
                return await call(
                    channel,
                    GET_INFO,
                    plugin_registration_pb2.InfoRequest(),
                    timeout_seconds=1.0,
                )
            except grpc.aio.AioRpcError:
                return None

    async def registration(self) -> Registration:
        """The driver's registration, once it answers."""

        async def first() -> Registration | None:
            found = await self.registrations()
            return found[-1] if found else None

        found = await self.until(first, "a registration socket that answers GetInfo")
        self.driver_name = self.driver_name or found.info.name
        return found

    async def notify(self, socket: str, error: str = "") -> None:
        """Tell the driver how its registration went."""
        status = plugin_registration_pb2.RegistrationStatus(
            plugin_registered=not error, error=error
        )
        async with open_channel(socket) as channel:
            await call(channel, NOTIFY_REGISTRATION_STATUS, status, timeout_seconds=1.0)

    async def register(self) -> Registration:
        """Do what the kubelet does with a new socket."""
        found = await self.registration()
        await self.notify(found.socket)
        return found

    async def versions(self) -> list[str]:
        """The versions of DRAPlugin that the driver announces and a kubelet knows."""
        info = (await self.registration()).info
        return [version for version in info.supported_versions if version in DRA_SERVICES]

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[grpc.aio.Channel]:
        """To the driver's own socket."""
        async with open_channel((await self.registration()).info.endpoint) as channel:
            yield channel

    # --- slices ---

    async def slices(self) -> list[ResourceSlice]:
        """The driver's slices of this node."""
        fields = f"spec.driver={self.driver_name},spec.nodeName={self.node}"
        return list((await self.client.list(RESOURCE_SLICES, Scope(field_selector=fields))).items)

    async def published(self) -> list[ResourceSlice]:
        """The driver's slices of this node, once a pool is complete."""
        await self.registration()

        async def complete() -> list[ResourceSlice]:
            found = await self.slices()
            return found if found and all_complete(found) else []

        return await self.until(complete, "complete pools of the node in ResourceSlices")

    async def devices(
        self, count: int = 1, *, is_shareable: bool | None = None
    ) -> list[PooledDevice]:
        """Devices that claims can have. `CheckSkippedError` if there are fewer."""
        found = [
            PooledDevice(slice_.spec.pool.name, device)
            for slice_ in await self.published()
            for device in slice_.spec.devices or ()
            if is_shareable in (None, bool(device.allow_multiple_allocations))
            and not device.consumes_counters
            and not device.binding_conditions
        ]
        if len(found) < count:
            kind = {None: "", True: "shareable ", False: "exclusive "}[is_shareable]
            raise CheckSkippedError(f"needs {count} {kind}device(s); the driver has {len(found)}")
        return found[:count]

    # --- claims ---

    async def claim(
        self,
        *devices: PooledDevice,
        requests: Iterable[str] = (),
        admin_access: bool = False,
        allocated: bool = True,
        others: Iterable[Mapping[str, Any]] = (),
        config: Iterable[Mapping[str, Any]] = (),
    ) -> ClaimUnderTest:
        """A claim with these devices, one for each request. `others` are results of other drivers.

        A request with a slash is an alternative.
        """
        names = tuple(requests) or tuple(f"r{index}" for index in range(len(devices)))
        name = f"claim-{uuid.uuid4().hex[:12]}"
        share_ids = tuple(
            str(uuid.uuid4()) if each.is_shareable and not admin_access else None
            for each in devices
        )
        others = list(others)
        document = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "devices": {
                    "requests": [
                        *(_request(each, admin_access) for each in names),
                        *(_request(each["request"], False) for each in others),
                    ]
                }
            },
        }
        resource = RESOURCE_CLAIMS.as_raw()
        stored = await self.client.create(resource, RawObject(document))
        made = ClaimUnderTest(name, stored.data["metadata"]["uid"], devices, names, share_ids)
        self._made.append(made)
        if allocated:
            results = [
                _result(self.driver_name, request, each, share_id, admin_access)
                for request, each, share_id in zip(names, devices, share_ids, strict=True)
            ]
            allocation = {
                "devices": {"results": [*results, *others], "config": list(config)},
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": [self.node]}
                            ]
                        }
                    ]
                },
            }
            await self.allocate(made, allocation)
        return made

    async def allocate(self, claim: ClaimUnderTest, allocation: Mapping[str, Any] | None) -> None:
        """Replace the allocation."""
        resource = RESOURCE_CLAIMS.as_raw()

        def changed(current: RawObject) -> RawObject:
            status = {"allocation": allocation} if allocation is not None else {}
            return RawObject({**current.data, "status": status})

        await self.client.update_with_retry(resource, claim.key, changed, subresource="status")

    async def delete(self, claim: ClaimUnderTest) -> None:
        try:
            await self.allocate(claim, None)
            await self.client.delete(RESOURCE_CLAIMS, claim.key)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise

    async def clean_up(self) -> None:
        """Unprepare and delete what a check has made."""
        made, self._made = self._made, []
        if made and not self.driver.problem(self.instance):
            with suppress(CheckFailedError):  # the check that is about this says so
                await self.unprepare(*made)
        for claim in made:
            await self.delete(claim)

    # --- calls ---

    async def prepare_all(self, *claims: ClaimUnderTest, version: str = "") -> Prepared:
        """NodePrepareResources. Raises `grpc.aio.AioRpcError`."""
        request = dra_plugin_pb2.NodePrepareResourcesRequest(
            claims=[claim.message() for claim in claims]
        )
        answer = await self._call(node_prepare_resources, request, version)
        return dict(answer.claims)

    async def unprepare_all(self, *claims: ClaimUnderTest, version: str = "") -> Unprepared:
        request = dra_plugin_pb2.NodeUnprepareResourcesRequest(
            claims=[claim.message() for claim in claims]
        )
        answer = await self._call(node_unprepare_resources, request, version)
        return dict(answer.claims)

    async def _call(
        self,
        method: Callable[[str], Method[RequestT, ResponseT]],
        request: RequestT,
        version: str,
    ) -> ResponseT:
        chosen = version or await self._version()
        async with self.channel() as channel:
            return await call(channel, method(chosen), request, timeout_seconds=self.limits.call)

    async def _version(self) -> str:
        versions = await self.versions()
        if not versions:
            raise CheckFailedError("the driver announces no version of DRAPlugin")
        return versions[0]

    async def prepare(
        self, *claims: ClaimUnderTest, version: str = ""
    ) -> dict[str, list[dra_plugin_pb2.Device]]:
        """The devices of each claim, by UID. `CheckFailedError` unless all are prepared."""
        try:
            answers = await self.prepare_all(*claims, version=version)
        except grpc.aio.AioRpcError as error:
            raise CheckFailedError(f"NodePrepareResources: {_words(error)}") from error
        for claim in claims:
            answer = answers.get(claim.uid)
            if answer is None:
                raise CheckFailedError("NodePrepareResources has no answer about a claim")
            if answer.error:
                raise CheckFailedError(f"NodePrepareResources: {answer.error}")
        return {uid: list(answer.devices) for uid, answer in answers.items()}

    async def unprepare(self, *claims: ClaimUnderTest, version: str = "") -> None:
        """`CheckFailedError` unless all are unprepared."""
        try:
            answers = await self.unprepare_all(*claims, version=version)
        except grpc.aio.AioRpcError as error:
            raise CheckFailedError(f"NodeUnprepareResources: {_words(error)}") from error
        for claim in claims:
            answer = answers.get(claim.uid)
            if answer is None:
                raise CheckFailedError("NodeUnprepareResources has no answer about a claim")
            if answer.error:
                raise CheckFailedError(f"NodeUnprepareResources: {answer.error}")

    async def refuses(self, claim: ClaimUnderTest, why: str) -> None:
        """The claim must not be prepared: an error about it, or of the whole call."""
        try:
            answers = await self.prepare_all(claim)
        except grpc.aio.AioRpcError as error:
            if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise CheckFailedError(f"the driver does not answer: {_words(error)}") from error
            return
        answer = answers.get(claim.uid)
        if answer is None or not answer.error:
            raise CheckFailedError(f"a claim {why} was prepared without an error")

    async def still_works(self) -> None:
        """The driver runs, and prepares and unprepares a claim."""
        problem = self.driver.problem(self.instance)
        if problem:
            raise CheckFailedError(problem)
        claim = await self.claim(*await self.devices())
        await self.prepare(claim)
        await self.unprepare(claim)

    def missing_cdi_devices(self, devices: Iterable[dra_plugin_pb2.Device]) -> str:
        """Why a container runtime could not use these devices; empty if it can."""
        try:
            self.cdi.edits(id_ for device in devices for id_ in device.cdi_device_ids)
        except CdiError as error:
            return str(error)
        return ""

    # --- life of the driver ---

    def needs_restart(self) -> None:
        if not self.driver.can_restart:
            raise CheckSkippedError("needs a driver that the kit starts: give its command line")

    async def kill_and_start(self) -> None:
        await self.driver.kill(self.instance)
        await self.driver.start(self.instance)
        await self.register()


def all_complete(slices: Iterable[ResourceSlice]) -> bool:
    """Whether every pool has all slices of its newest generation, and none of an older one."""
    pools: dict[str, list[ResourceSlice]] = {}
    for slice_ in slices:
        pools.setdefault(slice_.spec.pool.name, []).append(slice_)
    return all(
        len({slice_.spec.pool.generation for slice_ in pool}) == 1
        and {slice_.spec.pool.resource_slice_count for slice_ in pool} == {len(pool)}
        for pool in pools.values()
    )


def _request(name: str, admin_access: bool) -> dict[str, Any]:
    main, _, alternative = name.partition("/")
    if alternative:
        choice = {"name": alternative, "deviceClassName": DEVICE_CLASS}
        return {"name": main, "firstAvailable": [choice]}
    exactly: dict[str, Any] = {"deviceClassName": DEVICE_CLASS}
    if admin_access:
        exactly["adminAccess"] = True
    return {"name": main, "exactly": exactly}


def _result(
    driver: str, request: str, device: PooledDevice, share_id: str | None, admin_access: bool
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "request": request,
        "driver": driver,
        "pool": device.pool,
        "device": device.name,
    }
    if admin_access:
        result["adminAccess"] = True
    if share_id is not None:
        result["shareID"] = share_id
        capacity = {name: str(each.value) for name, each in device.device.capacity.items()}
        if capacity:
            result["consumedCapacity"] = dict.fromkeys(capacity, "0")
    return result


def _words(error: grpc.aio.AioRpcError) -> str:
    return f"{error.code().name}: {error.details()}"
