"""Drivers that break rules: each is the SDK's driver with one defect, and the checks that must find it."""
# ruff: noqa: ARG005 - defects have the signatures of what they replace

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
import pytest

from allot.api.base import replace
from allot.api.quantity import Quantity
from allot.api.slices import Counter, Device, DeviceCounterConsumption
from allot.client.options import Scope
from allot.client.resources import RESOURCE_SLICES
from allot.driver import AllocatedClaim, Driver, KubeletPlugin, Pool, PrepareError, make_device
from allot.driver.kubelet_plugin import (
    cdi_files,
    checkpoint,
    claims,
    paths,
    plugin,
    preparation,
    sockets,
)
from allot.driver.resource_slices import ResourceSliceController
from allot.driver.slice_reconciler import SliceReconciler
from allot.driver.slices import cut_into_slices
from allot.proto import dra_health_pb2, dra_plugin_pb2, plugin_registration_pb2
from allot.proto.services import (
    GET_INFO,
    V1,
    V1BETA1,
    unary_handler,
)
from tests.driver_conformance.drivers import SimpleDriver

Patch = pytest.MonkeyPatch
PreparedAnswer = dra_plugin_pb2.NodePrepareResourcesResponse


class Mutant(NamedTuple):
    """A defect, and what finds it."""

    name: str
    checks: tuple[str, ...]
    apply: Callable[[Patch], None]
    driver: type[Driver] = SimpleDriver


def _info(**fields: Any) -> Callable[[Patch], None]:
    """GetInfo answers with other fields."""

    def apply(patch: Patch) -> None:
        original = sockets.PluginSockets._info

        async def changed(self: Any, request: Any, context: Any) -> Any:
            info = await original(self, request, context)
            values = {
                "type": info.type,
                "name": info.name,
                "endpoint": info.endpoint,
                "supported_versions": list(info.supported_versions),
            }
            return plugin_registration_pb2.PluginInfo(**(values | fields))

        patch.setattr(sockets.PluginSockets, "_info", changed)

    return apply


def _prepared(change: Callable[[PreparedAnswer, Any], PreparedAnswer]) -> Callable[[Patch], None]:
    """NodePrepareResources answers otherwise."""

    def apply(patch: Patch) -> None:
        original = sockets.PluginSockets._prepare

        async def changed(self: Any, request: Any, *, has_shares: bool) -> Any:
            return change(await original(self, request, has_shares=has_shares), request)

        patch.setattr(sockets.PluginSockets, "_prepare", changed)

    return apply


def _unprepared(change: Callable[[Any, Any], Any]) -> Callable[[Patch], None]:
    def apply(patch: Patch) -> None:
        original = sockets.PluginSockets._unprepare

        async def changed(self: Any, request: Any, context: Any) -> Any:
            return change(await original(self, request, context), request)

        patch.setattr(sockets.PluginSockets, "_unprepare", changed)

    return apply


def _each_device(change: Callable[[dra_plugin_pb2.Device], None]) -> Callable[[Patch], None]:
    def apply(answer: PreparedAnswer, request: Any) -> PreparedAnswer:
        for claim in answer.claims.values():
            for device in claim.devices:
                change(device)
        return answer

    return _prepared(apply)


def _without_errors(answer: PreparedAnswer, request: Any) -> PreparedAnswer:
    for claim in answer.claims.values():
        claim.error = ""
    return answer


def _first_answer(answer: Any, request: Any) -> Any:
    for uid in list(answer.claims)[1:]:
        del answer.claims[uid]
    return answer


def _first_device(answer: PreparedAnswer, request: Any) -> PreparedAnswer:
    for claim in answer.claims.values():
        del claim.devices[1:]
    return answer


def _nothing_beside_errors(answer: PreparedAnswer, request: Any) -> PreparedAnswer:
    if any(claim.error for claim in answer.claims.values()):
        for uid in [uid for uid, claim in answer.claims.items() if not claim.error]:
            del answer.claims[uid]
    return answer


def _refuse_empty(answer: Any, request: Any) -> Any:
    if not request.claims:
        raise ValueError("no claims")
    return answer


def _fail_unprepare(answer: Any, request: Any) -> Any:
    for claim in answer.claims.values():
        claim.error = "cannot be undone"
    return answer


def _set(owner: Any, name: str, value: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(owner, name, value)


def _all(*changes: Callable[[Patch], None]) -> Callable[[Patch], None]:
    def apply(patch: Patch) -> None:
        for change in changes:
            change(patch)

    return apply


async def _aborted(self: Any, request: Any, context: Any) -> None:
    await context.abort(grpc.StatusCode.INTERNAL, "not today")


async def _no_registration(self: Any) -> None:
    self._dra = await sockets._listen(self._paths.endpoint, self._dra_handlers())


def _changing_info(patch: Patch) -> None:
    original = sockets.PluginSockets._info
    calls = iter(range(1000))

    async def changed(self: Any, request: Any, context: Any) -> Any:
        info = await original(self, request, context)
        info.supported_versions.append(f"v{next(calls)}.Other")
        return info

    patch.setattr(sockets.PluginSockets, "_info", changed)


def _second_registration(patch: Patch) -> None:
    original = sockets.PluginSockets.start

    async def changed(self: Any) -> None:
        await original(self)
        path = self._paths.registration
        handlers = [unary_handler(GET_INFO, self._info)]
        self._other = await sockets._listen(path.with_name(f"2-{path.name}"), handlers)

    ending = sockets.PluginSockets.stop

    async def stop(self: Any) -> None:
        await self._other.stop(None)
        await ending(self)

    patch.setattr(sockets.PluginSockets, "start", changed)
    patch.setattr(sockets.PluginSockets, "stop", stop)


def _without_v1beta1(patch: Patch) -> None:
    original = sockets.PluginSockets._dra_handlers

    def changed(self: Any) -> Any:
        return [each for each in original(self) if "v1beta1" not in each[0]]

    patch.setattr(sockets.PluginSockets, "_dra_handlers", changed)


async def _publish_nothing(self: Any) -> None:
    await asyncio.Event().wait()


def _duplicated_slices(patch: Patch) -> None:
    from allot.driver import resource_slices

    def changed(spec: Any) -> Any:
        (part,) = cut_into_slices(spec)
        part = replace(part, pool=replace(part.pool, resource_slice_count=2))
        return (part, part)

    patch.setattr(resource_slices, "cut_into_slices", changed)


def _stale_pools(patch: Patch) -> None:
    original = ResourceSliceController._wanted

    def changed(self: Any, key: Any) -> Any:
        wanted = original(self, key)
        return wanted if wanted is not None and wanted.slices else None

    patch.setattr(ResourceSliceController, "_wanted", changed)


class CountingDriver(SimpleDriver):
    def devices(self) -> Iterable[Device]:
        uses = DeviceCounterConsumption("missing", {"memory": Counter(Quantity.parse("1"))})
        return [Device("dev-0", consumes_counters=(uses,))]


class RestlessDriver(SimpleDriver):
    async def run(self, plugin: KubeletPlugin) -> None:
        for number in range(10_000):
            await asyncio.sleep(0.05)
            await plugin._client.list(RESOURCE_SLICES)
            plugin.update(plugin_resources(plugin, make_device("dev-0", {"number": number})))


def plugin_resources(plugin: KubeletPlugin, *devices: Device) -> Any:
    from allot.driver import DriverResources

    return DriverResources({plugin.node_name: Pool(devices)})


class GreedyDriver(SimpleDriver):
    """Deletes slices of others."""

    async def run(self, plugin: KubeletPlugin) -> None:
        while True:
            await asyncio.sleep(0.05)
            others = Scope(field_selector=f"spec.driver!={self.name}")
            await plugin._client.delete_collection(RESOURCE_SLICES, others)


class CrowdedDriver(SimpleDriver):
    """Fails if two calls are made at the same time."""

    busy = False

    async def prepare(self, claim: AllocatedClaim) -> Any:
        if CrowdedDriver.busy:
            raise PrepareError("busy")
        CrowdedDriver.busy = True
        await asyncio.sleep(0.05)
        CrowdedDriver.busy = False
        return await super().prepare(claim)

    async def unprepare(self, claim: AllocatedClaim) -> None:
        if CrowdedDriver.busy:
            raise PrepareError("busy")
        CrowdedDriver.busy = True
        await asyncio.sleep(0.05)
        CrowdedDriver.busy = False


class PickyDriver(SimpleDriver):
    """Ends when it gets parameters."""

    async def prepare(self, claim: AllocatedClaim) -> Any:
        if any(device.parameters for device in claim.devices):
            PickyDriver.is_broken = True
        if PickyDriver.is_broken:
            raise PrepareError("out of order")
        return await super().prepare(claim)

    is_broken = False


class OneTimeDriver(SimpleDriver):
    """Prepares a claim once in its life."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    async def prepare(self, claim: AllocatedClaim) -> Any:
        if claim.uid in self.seen:
            raise PrepareError("already prepared")
        self.seen.add(claim.uid)
        return await super().prepare(claim)


def _concurrent(patch: Patch) -> None:
    """Calls are not serialized."""

    @asynccontextmanager
    async def at_once(self: Any) -> AsyncIterator[None]:
        yield

    patch.setattr(preparation.ClaimPreparation, "_own_turn", at_once)


def _cached_for_ever(patch: Patch) -> None:
    """The first answer about a claim is the answer, whatever happens."""
    original = preparation.ClaimPreparation._prepare_one

    async def changed(self: Any, reference: Any) -> Any:
        cache = vars(self).setdefault("cache", {})
        if reference.uid not in cache:
            cache[reference.uid] = await original(self, reference)
        return cache[reference.uid]

    patch.setattr(preparation.ClaimPreparation, "_prepare_one", changed)


def _forgetful(patch: Patch) -> None:
    """State is in memory only, of each instance."""
    patch.setattr(
        checkpoint.DriverCheckpoint, "read", lambda self: dict(vars(self).get("kept", {}))
    )

    def write(self: Any, claims: Any) -> None:
        self.kept = dict(claims)

    patch.setattr(checkpoint.DriverCheckpoint, "_write", write)


async def _known_only(self: Any, reference: Any) -> Any:
    known = self._checkpoint.read().get(reference.uid)
    if known is None:
        raise PrepareError("not prepared")
    await self._undo(known)
    return ()


def _needs_claim(patch: Patch) -> None:
    original = preparation.ClaimPreparation._unprepare_one

    async def changed(self: Any, reference: Any) -> Any:
        await self._read(reference)
        return await original(self, reference)

    patch.setattr(preparation.ClaimPreparation, "_unprepare_one", changed)


async def _keep_devices(self: Any, claim: Any) -> None:
    self._cdi.remove(claim.reference.uid)


def _remove_all_files(self: Any, uid: str) -> None:
    for path in self._directory.iterdir():
        path.unlink()


def _remove_any_file(patch: Patch) -> None:
    """A UID is trusted as a part of a path, before anything is known about the claim."""
    patch.setattr(preparation, "is_safe_uid", lambda uid: True)
    original = preparation.ClaimPreparation._unprepare_one

    async def changed(self: Any, reference: Any) -> Any:
        (self._cdi._directory / f"{reference.uid}.json").unlink(missing_ok=True)
        return await original(self, reference)

    patch.setattr(preparation.ClaimPreparation, "_unprepare_one", changed)


async def _one_stream(self: Any, request: Any, context: Any) -> AsyncIterator[Any]:
    if vars(self).setdefault("streams", []):
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "one is enough")
    self.streams.append(1)
    yield dra_health_pb2.NodeWatchResourcesResponse()
    await asyncio.Event().wait()


async def _foreign_health(self: Any, request: Any, context: Any) -> AsyncIterator[Any]:
    device = dra_health_pb2.DeviceIdentifier(pool_name="n1", device_name="unknown")
    health = dra_health_pb2.DeviceHealth(device=device)
    yield dra_health_pb2.NodeWatchResourcesResponse(devices=[health])


async def _broken_health(self: Any, request: Any, context: Any) -> AsyncIterator[Any]:
    await context.abort(grpc.StatusCode.INTERNAL, "no health")
    yield


def _raw_handlers(patch: Patch) -> None:
    """Answers bytes of any kind, to methods of any name."""
    original = sockets._listen

    async def answer(request: bytes, context: Any) -> bytes:
        return b""

    class Everything(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(answer)

    async def listen(socket: Path, handlers: Any) -> Any:
        if "reg" in socket.name:
            return await original(socket, handlers)
        socket.unlink(missing_ok=True)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((Everything(),))
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        return server

    patch.setattr(sockets, "_listen", listen)


def _stale_sockets_stop_it(patch: Patch) -> None:
    original = sockets._listen

    async def listen(socket: Path, handlers: Any) -> Any:
        if socket.exists():
            raise OSError(f"{socket}: address already in use")
        return await original(socket, handlers)

    patch.setattr(sockets, "_listen", listen)


def _deletes_slices(patch: Patch) -> None:
    original = KubeletPlugin.stop

    async def stop(self: Any) -> None:
        await original(self)
        own = Scope(field_selector=f"spec.driver={self.driver.name}")
        await self._client.delete_collection(RESOURCE_SLICES, own)

    patch.setattr(KubeletPlugin, "stop", stop)


def _keeps_sockets(patch: Patch) -> None:
    original = sockets.PluginSockets.stop

    async def stop(self: Any) -> None:
        await original(self)
        self._paths.registration.touch()

    patch.setattr(sockets.PluginSockets, "stop", stop)


def _same_endpoint(patch: Patch) -> None:
    original = paths.plugin_paths

    def changed(*arguments: Any, **options: Any) -> Any:
        found = original(*arguments, **options)
        return found._replace(endpoint=found.directory / "dra.sock")

    patch.setattr(plugin, "plugin_paths", changed)


def _other_version_differs(patch: Patch) -> None:
    async def nothing(self: Any, request: Any, context: Any) -> Any:
        answer = await self._prepare(request, has_shares=False)
        for claim in answer.claims.values():
            del claim.devices[:]
        return answer

    patch.setattr(sockets.PluginSockets, "_prepare_v1beta1", nothing)


def _random_names(patch: Patch) -> None:
    patch.setattr(preparation.ClaimPreparation, "_has_files", lambda self, claim: False)
    patch.setattr(cdi_files, "_name", lambda uid, index: f"{uuid.uuid4()}")
    patch.setattr(
        cdi_files.CdiFiles,
        "device_ids",
        lambda self, uid, devices: [(f"a.b/c={uuid.uuid4()}",) for _ in devices],
    )


def _ignores_admin_access(patch: Patch) -> None:
    patch.setattr(
        preparation,
        "_holder",
        lambda found, uid, device: next(
            (
                claim.reference
                for other, claim in found.items()
                if other != uid and any(each.device == device.device for each in claim.allocated)
            ),
            None,
        ),
    )


def _stuck_after_cancel(patch: Patch) -> None:
    """A cancelled call keeps the device for itself."""
    original = preparation.ClaimPreparation._prepare_one
    seen: set[str] = set()

    async def changed(self: Any, reference: Any) -> Any:
        if reference.uid in seen:
            raise PrepareError("in progress")
        seen.add(reference.uid)
        await asyncio.sleep(0.5)
        answer = await original(self, reference)
        seen.discard(reference.uid)
        return answer

    patch.setattr(preparation.ClaimPreparation, "_prepare_one", changed)


def _wrong_pool(device: dra_plugin_pb2.Device) -> None:
    device.pool_name = "wrong"


def _wrong_cdi(device: dra_plugin_pb2.Device) -> None:
    del device.cdi_device_ids[:]
    device.cdi_device_ids.append("not-qualified")


MUTANTS: Final = (
    Mutant("no-registration", ("registration/socket",), _set(sockets.PluginSockets, "start", _no_registration)),
    Mutant("wrong-type", ("registration/type",), _info(type="CSIPlugin")),
    Mutant("wrong-name", ("registration/name",), _info(name="Not_A_Name")),
    Mutant("relative-endpoint", ("registration/endpoint",), _info(endpoint="dra.sock")),
    Mutant("missing-endpoint", ("registration/endpoint",), _info(endpoint="/nowhere/dra.sock")),
    Mutant("no-version", ("registration/versions",), _info(supported_versions=["v2.DRAPlugin"])),
    Mutant("old-version-first", ("registration/prefers-v1",), _info(supported_versions=[V1BETA1, V1])),
    Mutant("unserved-version", ("registration/served-versions",), _without_v1beta1),
    Mutant("no-notification", ("registration/notification",), _set(sockets.PluginSockets, "_notified", _aborted)),
    Mutant("changing-info", ("registration/stable-info",), _changing_info),
    Mutant("two-registrations", ("registration/one-socket",), _second_registration),
    Mutant("no-slices", ("publishing/complete",), _set(ResourceSliceController, "run", _publish_nothing)),
    Mutant("same-name-twice", ("publishing/unique-names",), _duplicated_slices),
    Mutant("no-owner", ("publishing/owner",), _set(__import__("allot.driver.resource_slices", fromlist=["x"]), "owner_reference", lambda node: None)),
    Mutant("missing-counters", ("publishing/counters",), _set(Pool, "problems", lambda self: ()), CountingDriver),
    Mutant("restless", ("publishing/quiet",), lambda patch: None, RestlessDriver),
    Mutant("no-repair", ("publishing/wiped", "publishing/repaired"), _set(SliceReconciler, "_repair", lambda self, slice_: None)),
    Mutant("stale-pools", ("publishing/stale",), _stale_pools),
    Mutant("deletes-others", ("publishing/others",), lambda patch: None, GreedyDriver),
    Mutant("wrong-pool", ("prepare/devices", "prepare/other-drivers"), _each_device(_wrong_pool)),
    Mutant("first-device-only", ("prepare/several-devices",), _prepared(_first_device)),
    Mutant("whole-request-name", ("prepare/request-names",), _set(claims.AllocatedDevice, "base_request", property(lambda self: self.request))),
    Mutant("unqualified-cdi", ("prepare/cdi-names",), _each_device(_wrong_cdi)),
    Mutant("no-cdi-files", ("prepare/cdi-files", "prepare/parallel", "unprepare/again", "restart/during-prepare"), _set(cdi_files.CdiFiles, "write", lambda self, uid, devices: None)),
    Mutant("another-answer", ("prepare/idempotent", "prepare/parallel-same", "restart/prepared", "upgrade/hand-over"), _random_names),
    Mutant("first-claim-only", ("prepare/many",), _prepared(_first_answer)),
    Mutant("no-empty-call", ("prepare/empty",), _prepared(_refuse_empty)),
    Mutant(
        "no-errors",
        ("prepare/missing-claim", "prepare/replaced-claim", "prepare/unallocated-claim", "prepare/unknown-device", "prepare/device-in-use",
         "prepare/one-fails", "bad-input/empty-claim"),
        _prepared(_without_errors),
    ),
    Mutant("errors-spread", ("prepare/one-fails",), _prepared(_nothing_beside_errors)),
    Mutant("no-share-ids", ("prepare/shares",), _each_device(lambda device: device.ClearField("share_id"))),
    Mutant("no-admin-access", ("prepare/admin-access",), _ignores_admin_access),
    Mutant("not-concurrent", ("prepare/parallel", "unprepare/parallel"), _concurrent, CrowdedDriver),
    Mutant("versions-differ", ("prepare/versions",), _other_version_differs),
    Mutant("no-unprepare", ("unprepare/prepared", "unprepare/many", "restart/unprepare"), _unprepared(_fail_unprepare)),
    Mutant("unprepare-once", ("unprepare/idempotent", "unprepare/never-prepared", "unprepare/unknown"), _set(preparation.ClaimPreparation, "_unprepare_one", _known_only)),
    Mutant("unprepare-needs-claim", ("unprepare/deleted-claim",), _needs_claim),
    Mutant("cdi-files-left", ("unprepare/cdi-files", "unprepare/deleted-claim", "restart/cleanup", "restart/during-prepare", "restart/unprepare-partial"), _set(cdi_files.CdiFiles, "remove", lambda self, uid: None)),
    Mutant("once-in-a-life", ("unprepare/again",), lambda patch: None, OneTimeDriver),
    Mutant("devices-not-freed", ("unprepare/next-claim",), _set(preparation.ClaimPreparation, "_undo", _keep_devices)),
    Mutant("stale-devices", ("unprepare/reallocated",), _cached_for_ever),
    Mutant("first-unprepare-only", ("unprepare/many",), _unprepared(_first_answer)),
    Mutant("no-empty-unprepare", ("unprepare/empty",), _unprepared(_refuse_empty)),
    Mutant("removes-all-files", ("unprepare/others", "prepare/shares"), _set(cdi_files.CdiFiles, "remove", _remove_all_files)),
    Mutant("broken-health", ("health/stream",), _set(sockets.PluginSockets, "_watch", _broken_health)),
    Mutant("health-of-others", ("health/devices", "health/all-devices"), _set(sockets.PluginSockets, "_watch", _foreign_health)),
    Mutant("one-health-stream", ("health/again",), _set(sockets.PluginSockets, "_watch", _one_stream)),
    Mutant("accepts-garbage", ("bad-input/garbage", "bad-input/method"), _raw_handlers),
    Mutant("trusts-uids", ("bad-input/uid-as-path",), _remove_any_file),
    Mutant("breaks-on-parameters", ("bad-input/config",), lambda patch: None, PickyDriver),
    Mutant("stuck-after-cancel", ("bad-input/cancelled",), _stuck_after_cancel),
    Mutant("stale-sockets", ("restart/killed",), _stale_sockets_stop_it),
    Mutant("forgetful", ("restart/cleanup", "restart/device-in-use"), _forgetful),
    Mutant("slices-deleted", ("restart/slices", "restart/graceful"), _deletes_slices),
    Mutant("sockets-left", ("restart/graceful",), _keeps_sockets),
    Mutant("one-endpoint", ("upgrade/sockets",), _same_endpoint),
)  # fmt: skip
