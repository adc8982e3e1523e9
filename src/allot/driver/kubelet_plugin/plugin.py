"""One instance of a driver on a node: publishes its devices, registers with the kubelet, and serves its calls.

    start: checkpoint ──► sockets ──► slices        stop: registration ──► calls in progress ──► service

Slices stay when a driver ends: it may come back, or another instance has taken over; otherwise the kubelet deletes them.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from allot.api.base import replace
from allot.api.slices import Device
from allot.client.client import Client
from allot.driver.kubelet_plugin.cdi_files import CdiFiles
from allot.driver.kubelet_plugin.checkpoint import DriverCheckpoint, boot_id
from allot.driver.kubelet_plugin.claims import AllocatedClaim, ClaimReference, PreparedDevice
from allot.driver.kubelet_plugin.device_metadata import DeviceMetadataError, DeviceMetadataFiles
from allot.driver.kubelet_plugin.driver import Driver
from allot.driver.kubelet_plugin.health import REFRESH_SECONDS, DeviceHealth, Health, HealthReport
from allot.driver.kubelet_plugin.metrics import DriverMetrics
from allot.driver.kubelet_plugin.paths import (
    CDI_DIRECTORY,
    KUBELET_DIRECTORY,
    PluginPaths,
    plugin_paths,
)
from allot.driver.kubelet_plugin.preparation import ClaimPreparation
from allot.driver.resource_slices import DriverResources, Pool, ResourceSliceController
from allot.driver.slice_reconciler import REPAIR_SECONDS
from allot.task_cancellation import cancel_and_wait

if TYPE_CHECKING:
    from allot.driver.kubelet_plugin.sockets import PluginSockets

log = logging.getLogger(__name__)


class MissingExtraError(ImportError):
    """The packages for the sockets are not installed."""

    def __init__(self) -> None:
        super().__init__(
            "drivers need the packages grpcio and protobuf for their sockets: install allot[drivers]"
        )


@dataclass(frozen=True)
class PluginOptions:
    """Where a driver runs, and how. The defaults are those of a node."""

    kubelet_directory: Path = KUBELET_DIRECTORY
    cdi_directory: Path = CDI_DIRECTORY
    directory: Path | None = None
    """The driver's own. Default: `plugins/DRIVER` in the kubelet's directory."""
    registry: Path | None = None
    """Where the kubelet looks for drivers. Default: `plugins_registry` in the kubelet's directory."""
    instance: str = ""
    """The UID of the driver's pod: two instances with different ones can run during a rolling update."""
    serialize: bool = True
    """Whether one call is served at a time, also of another instance."""
    health: bool = True
    """Whether the kubelet gets the health of devices."""
    publish: bool = True
    """Whether slices are published."""
    pool_name: str = ""
    """The pool that nodes share, if the driver publishes only that one: slices of others are neither read nor changed."""
    device_metadata: tuple[str, ...] = ()
    """The versions in which containers get the attributes of their devices as files: v1beta1, v1alpha1. Default: none."""
    repair_seconds: float = REPAIR_SECONDS
    """Delay before changes of slices by others are reverted."""
    health_refresh_seconds: float = REFRESH_SECONDS

    def paths(self, driver: str) -> PluginPaths:
        return plugin_paths(
            driver,
            self.kubelet_directory,
            self.cdi_directory,
            self.instance,
            directory=self.directory,
            registry=self.registry,
        )


class KubeletPlugin:
    """A driver on a node. Use it in an `async with` block, or `run` it until cancelled."""

    def __init__(
        self,
        driver: Driver,
        client: Client,
        node_name: str,
        options: PluginOptions = PluginOptions(),  # noqa: B008 - a value
        metrics: DriverMetrics | None = None,
    ) -> None:
        self.driver = driver
        self.node_name = node_name
        self.metrics = metrics or DriverMetrics()
        self.is_registered = False
        """Whether the kubelet has said so."""
        self._client = client
        self._options = options
        self.paths = options.paths(driver.name)
        self._health = DeviceHealth(client.clock, options.health_refresh_seconds)
        self._resources = DriverResources()
        self._slices = ResourceSliceController(
            client,
            driver.name,
            node_name,
            pool_name=options.pool_name or None,
            on_error=self._publish_failed,
            repair_seconds=options.repair_seconds,
        )
        self._preparation: ClaimPreparation | None = None
        self._sockets: PluginSockets | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_ready(self) -> bool:
        """Whether the kubelet has registered the driver, and its slices are published."""
        return self.is_registered and (self._slices.is_published or not self._options.publish)

    # --- life ---

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Serve and publish. Raises `MissingExtraError` if packages are missing."""
        try:
            await self._start(_sockets_type())
        except BaseException:
            await self.stop()
            raise

    async def _start(self, sockets_type: type[PluginSockets]) -> None:
        self.paths.directory.mkdir(parents=True, exist_ok=True)
        self._health.begin_streams()
        self.refresh()
        checkpoint = DriverCheckpoint(self.paths.directory, boot_id())
        cdi = CdiFiles(self.paths.cdi, self.driver.name, self.driver.cdi_class)
        preparation = self._preparation = ClaimPreparation(
            self.driver,
            self._client,
            self.paths.directory,
            checkpoint,
            cdi,
            DeviceMetadataFiles(
                self.paths.directory,
                self.driver.name,
                self._options.device_metadata,
                self._known_devices,
            ),
            self._known_devices,
            self.metrics,
            serialize=self._options.serialize,
        )
        self._sockets = sockets_type(
            self.driver.name,
            self.paths,
            preparation,
            self._health.stream if self._options.health else None,
            lambda: self._client.clock.today().timestamp(),
            self._registered,
        )
        await self._sockets.start()
        if self._options.publish:
            self._tasks.append(asyncio.create_task(self._slices.run()))
        self._tasks.append(asyncio.create_task(self.driver.run(self)))
        for task in self._tasks:
            task.add_done_callback(_report)

    async def stop(self) -> None:
        """End the registration, let calls in progress end, and remove the sockets. Slices and prepared claims stay."""
        await cancel_and_wait(*self._tasks, ignore_errors=True)
        self._tasks.clear()
        if self._sockets is not None:
            sockets, self._sockets = self._sockets, None
            self._health.end_streams()
            await sockets.stop()
        self.is_registered = False

    async def run(self) -> None:
        """Serve until cancelled. Raises what ends publishing or the driver's own work."""
        await self.start()
        try:
            while True:
                pending = [task for task in self._tasks if not task.done()]
                for task in self._tasks:
                    if task.done():
                        task.result()
                if not pending:
                    await asyncio.Event().wait()
                await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self.stop()

    def _registered(self, is_registered: bool, error: str) -> None:
        self.is_registered = is_registered
        if is_registered:
            log.info("%s: registered with the kubelet", self.driver.name)
        else:
            log.error("%s: the kubelet refuses the driver: %s", self.driver.name, error)

    # --- devices ---

    def refresh(self) -> None:
        """Ask the driver for its devices, and publish them."""
        found = self.driver.devices()
        self.update(
            found
            if isinstance(found, DriverResources)
            else DriverResources({self.node_name: Pool(tuple(found))})
        )

    def update(self, resources: DriverResources) -> None:
        """Publish these pools instead of the previous ones."""
        self._resources = resources
        self._health.known(self._known_devices())
        self._publish()

    def report_health(
        self, device: str, health: Health, message: str = "", pool: str | None = None
    ) -> None:
        """The health of a device changed. The pool is the node's own by default."""
        report = HealthReport(health, message)
        if self._health.report(self.node_name if pool is None else pool, device, report):
            self._publish()

    def prepared_claims(self) -> tuple[AllocatedClaim, ...]:
        """The claims that are prepared now, also by an earlier process or another instance."""
        return () if self._preparation is None else self._preparation.prepared_claims()

    def update_metadata(self, claim: ClaimReference, devices: Iterable[PreparedDevice]) -> None:
        """Replace the metadata of prepared devices, all of a request: what was not known when the claim was prepared.

        For network drivers, when the pod's sandbox exists and before its containers start. Raises `DeviceMetadataError`.
        """
        if self._preparation is None:
            raise DeviceMetadataError(f"{self.driver.name} has not been started")
        self._preparation.update_metadata(claim.uid, devices)

    def _publish(self) -> None:
        taint = self.driver.unhealthy_taint
        resources = self._resources
        if taint is not None:

            def tainted(pool: str, device: Device) -> Device:
                if not self._health.is_unhealthy(pool, device.name):
                    return device
                return replace(device, taints=(*device.taints, taint))

            resources = DriverResources(
                {
                    name: _with_devices(pool, tuple(tainted(name, each) for each in pool.devices))
                    for name, pool in resources.pools.items()
                }
            )
        self._slices.update(resources)

    def _known_devices(self) -> dict[tuple[str, str], Device]:
        return {
            (name, device.name): device
            for name, pool in self._resources.pools.items()
            for device in pool.devices
        }

    def _publish_failed(self, error: Exception) -> None:
        self.metrics.publish_error(error)
        self.driver.on_error(error)


def _with_devices(pool: Pool, devices: tuple[Device, ...]) -> Pool:
    return dataclasses.replace(pool, devices=devices)


def _sockets_type() -> type[PluginSockets]:
    try:
        from allot.driver.kubelet_plugin.sockets import PluginSockets
    except ModuleNotFoundError as error:
        raise MissingExtraError from error
    return PluginSockets


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("%s", task.exception(), exc_info=task.exception())
