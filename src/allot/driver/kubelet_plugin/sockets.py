"""The sockets of a driver: registration, DRAPlugin in v1 and v1beta1, DRAResourceHealth. Needs the extra `drivers`."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any, Final

import grpc

from allot.driver.kubelet_plugin.checkpoint import CheckpointedDevice
from allot.driver.kubelet_plugin.claims import ClaimReference
from allot.driver.kubelet_plugin.health import Reports
from allot.driver.kubelet_plugin.paths import PluginPaths
from allot.driver.kubelet_plugin.preparation import ClaimAnswer, ClaimPreparation
from allot.proto import dra_health_pb2, dra_plugin_pb2, plugin_registration_pb2
from allot.proto.services import (
    DRA_PLUGIN_TYPE,
    GET_INFO,
    HEALTH_V1,
    HEALTH_V1ALPHA1,
    NOTIFY_REGISTRATION_STATUS,
    V1,
    V1BETA1,
    Handler,
    node_prepare_resources,
    node_unprepare_resources,
    node_watch_resources,
    serve,
    stream_handler,
    unary_handler,
)

log = logging.getLogger(__name__)

STOP_SECONDS: Final = 10.0
"""How long calls in progress may take when the driver ends."""
VERSIONS: Final = (V1, V1BETA1)
"""The kubelet uses the first that it knows."""
HEALTH_VERSIONS: Final = (HEALTH_V1, HEALTH_V1ALPHA1)


class PluginSockets:
    """Serves the sockets of one instance of a driver."""

    def __init__(
        self,
        driver: str,
        paths: PluginPaths,
        preparation: ClaimPreparation,
        health: Callable[[], AsyncIterator[Reports]] | None,
        today: Callable[[], float],
        on_registration: Callable[[bool, str], None],
    ) -> None:
        """`health` is None for drivers without a health stream; `today` is the time in Unix seconds."""
        self._driver = driver
        self._paths = paths
        self._preparation = preparation
        self._health = health
        self._today = today
        self._on_registration = on_registration
        self._dra: grpc.aio.Server | None = None
        self._registration: grpc.aio.Server | None = None

    @property
    def versions(self) -> tuple[str, ...]:
        return VERSIONS + (HEALTH_VERSIONS if self._health is not None else ())

    async def start(self) -> None:
        """First the service, then the registration: the kubelet may call at once."""
        self._dra = await _listen(self._paths.endpoint, self._dra_handlers())
        handlers = [
            unary_handler(GET_INFO, self._info),
            unary_handler(NOTIFY_REGISTRATION_STATUS, self._notified),
        ]
        self._registration = await _listen(self._paths.registration, handlers)

    async def stop(self) -> None:
        """No new calls; those in progress end."""
        _remove(self._paths.registration)
        if self._registration is not None:
            await self._registration.stop(None)
        if self._dra is not None:
            await self._dra.stop(STOP_SECONDS)
        _remove(self._paths.endpoint)

    def _dra_handlers(self) -> list[Handler]:
        handlers = [
            unary_handler(node_prepare_resources(V1), self._prepare_v1),
            unary_handler(node_prepare_resources(V1BETA1), self._prepare_v1beta1),
            *(unary_handler(node_unprepare_resources(each), self._unprepare) for each in VERSIONS),
        ]
        if self._health is not None:
            handlers += [
                stream_handler(node_watch_resources(version), self._watch)
                for version in HEALTH_VERSIONS
            ]
        return handlers

    # --- registration ---

    async def _info(
        self, request: plugin_registration_pb2.InfoRequest, context: Any
    ) -> plugin_registration_pb2.PluginInfo:
        return plugin_registration_pb2.PluginInfo(
            type=DRA_PLUGIN_TYPE,
            name=self._driver,
            endpoint=str(self._paths.endpoint),
            supported_versions=self.versions,
        )

    async def _notified(
        self, request: plugin_registration_pb2.RegistrationStatus, context: Any
    ) -> plugin_registration_pb2.RegistrationStatusResponse:
        self._on_registration(request.plugin_registered, request.error)
        return plugin_registration_pb2.RegistrationStatusResponse()

    # --- claims ---

    async def _prepare_v1(
        self, request: dra_plugin_pb2.NodePrepareResourcesRequest, context: Any
    ) -> dra_plugin_pb2.NodePrepareResourcesResponse:
        return await self._prepare(request, has_shares=True)

    async def _prepare_v1beta1(
        self, request: dra_plugin_pb2.NodePrepareResourcesRequest, context: Any
    ) -> dra_plugin_pb2.NodePrepareResourcesResponse:
        return await self._prepare(request, has_shares=False)

    async def _prepare(
        self, request: dra_plugin_pb2.NodePrepareResourcesRequest, *, has_shares: bool
    ) -> dra_plugin_pb2.NodePrepareResourcesResponse:
        answers = await self._preparation.prepare(_references(request.claims))
        return dra_plugin_pb2.NodePrepareResourcesResponse(
            claims={uid: _answer(answer, has_shares) for uid, answer in answers.items()}
        )

    async def _unprepare(
        self, request: dra_plugin_pb2.NodeUnprepareResourcesRequest, context: Any
    ) -> dra_plugin_pb2.NodeUnprepareResourcesResponse:
        answers = await self._preparation.unprepare(_references(request.claims))
        return dra_plugin_pb2.NodeUnprepareResourcesResponse(
            claims={
                uid: dra_plugin_pb2.NodeUnprepareResourceResponse(error=answer.error)
                for uid, answer in answers.items()
            }
        )

    # --- health ---

    async def _watch(
        self, request: dra_health_pb2.NodeWatchResourcesRequest, context: Any
    ) -> AsyncIterator[dra_health_pb2.NodeWatchResourcesResponse]:
        assert self._health is not None
        async for reports in self._health():
            now = int(self._today())
            yield dra_health_pb2.NodeWatchResourcesResponse(
                devices=[
                    dra_health_pb2.DeviceHealth(
                        device=dra_health_pb2.DeviceIdentifier(pool_name=pool, device_name=device),
                        health=report.health.value,  # type: ignore[arg-type]
                        last_updated_time=now,
                        message=report.message,
                    )
                    for (pool, device), report in reports.items()
                ]
            )


def _remove(socket: Path) -> None:
    try:
        socket.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s cannot be removed: %s", socket, error.strerror)


async def _listen(socket: Path, handlers: Iterable[Handler]) -> grpc.aio.Server:
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)  # of a process that crashed
    server = grpc.aio.server()
    serve(server, handlers)
    try:
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
    except BaseException:
        await server.stop(None)
        raise
    return server


def _references(claims: Iterable[dra_plugin_pb2.Claim]) -> list[ClaimReference]:
    return [ClaimReference(claim.namespace, claim.name, claim.uid) for claim in claims]


def _answer(answer: ClaimAnswer, has_shares: bool) -> dra_plugin_pb2.NodePrepareResourceResponse:
    return dra_plugin_pb2.NodePrepareResourceResponse(
        devices=[_device(device, has_shares) for device in answer.devices], error=answer.error
    )


def _device(device: CheckpointedDevice, has_shares: bool) -> dra_plugin_pb2.Device:
    allocated = device.allocated
    return dra_plugin_pb2.Device(
        request_names=[allocated.base_request],
        pool_name=allocated.pool,
        device_name=allocated.device,
        cdi_device_ids=device.cdi_device_ids,
        share_id=allocated.share_id if has_shares else None,
    )
