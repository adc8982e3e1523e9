"""The dynamic resources of one node: what its kubelet process knows and does. Restarting it forgets all but the checkpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.identities import DeviceId, ObjectKey
from allot.client.clock import Clock, Timer
from allot.kubelet.dra.cdi import CdiSpecs
from allot.kubelet.dra.checkpoint import Checkpoint
from allot.kubelet.dra.claim_info import ClaimInfo
from allot.kubelet.dra.container_devices import container_devices
from allot.kubelet.dra.driver_plugin import DriverPlugin
from allot.kubelet.dra.faults import INJECTED, NodeFaults
from allot.kubelet.dra.health import (
    DeviceHealth,
    HealthCache,
    HealthStatus,
    with_resource_health,
)
from allot.kubelet.dra.manager import DraManager, PrepareError, UnprepareError
from allot.kubelet.dra.metrics import DraMetrics
from allot.kubelet.dra.paths import NodePaths
from allot.kubelet.dra.plugin_store import PluginStore
from allot.kubelet.dra.pod_work import DONE, RETRIES, PodWork, PodWorkOutcome
from allot.kubelet.dra.simulated_driver import SimulatedDriver
from allot.kubelet.dra.slice_wipes import SliceWipes

log = logging.getLogger(__name__)


class NodeContext(NamedTuple):
    """What the nodes of a simulation share."""

    clock: Clock
    metrics: DraMetrics
    find_claim: Callable[[ObjectKey], ResourceClaim | None]
    pods_of: Callable[[str], Iterable[Pod]]
    """The pods of a node."""
    queue_pod: Callable[[ObjectKey], None]
    """Tells the pod loop to look at a pod again."""
    simulates: Callable[[str], bool]
    """Whether a driver that has not registered is simulated."""


class DraNode:
    """The drivers and claims of one node, until closed."""

    def __init__(
        self,
        name: str,
        context: NodeContext,
        faults: NodeFaults,
        paths: NodePaths | None = None,
        wipes: SliceWipes | None = None,
    ) -> None:
        """`paths` are None if drivers cannot register. `faults` outlive a restart."""
        self.name = name
        self._context = context
        self._clock = context.clock
        self._faults = faults
        self._wipes = wipes
        self.plugins = PluginStore(context.clock, faults, self._simulated)
        checkpoint = Checkpoint(paths.checkpoint) if paths is not None else None
        self.manager = DraManager(self.plugins, checkpoint, context.metrics, context.clock)
        self._cdi = CdiSpecs(paths.cdi) if paths is not None else None
        self._health = HealthCache(context.clock.now)
        self._expiring: Timer | None = None
        self._preparing = PodWork(context.clock, PrepareError, context.queue_pod)
        self._releasing = PodWork(context.clock, UnprepareError, context.queue_pod)
        self._vanished: dict[str, asyncio.Task[None]] = {}
        self._ended: set[str] = set()
        """Pods that are released: the API may still say that they run."""
        self._is_closed = False

    def _simulated(self, driver: str) -> DriverPlugin | None:
        if not self._context.simulates(driver):
            return None
        return SimulatedDriver(driver, self._context.find_claim)

    def close(self) -> None:
        """The kubelet process ends, whatever it is doing."""
        self._is_closed = True
        self._preparing.close()
        self._releasing.close()
        for task in self._vanished.values():
            task.cancel()
        self._vanished.clear()
        if self._expiring is not None:
            self._expiring.cancel()
        if self._wipes is not None:
            self._wipes.close()
        self.manager.close()

    def find(self, key: ObjectKey) -> ClaimInfo | None:
        return self.manager.claims.get(key)

    # --- pods ---

    def prepare(self, pod: Pod, claims: Sequence[ResourceClaim]) -> PodWorkOutcome:
        """Prepare the claims of a pod that may start, or runs already."""
        uid = pod.metadata.uid
        if uid in self._ended:
            return DONE
        if self.manager.is_prepared(pod, claims):
            self._preparing.forget(uid)
            return DONE
        if not self._preparing.is_waiting(uid):
            try:
                if self.manager.prepare_at_once(pod, claims):
                    return DONE
            except PrepareError as error:
                return self._preparing.fail(uid, pod.key, str(error))
        return self._preparing.advance(uid, pod.key, lambda: self.manager.prepare(pod, claims))

    def release(self, pod: Pod) -> PodWorkOutcome:
        """The pod's containers have ended: unprepare its claims."""
        uid = pod.metadata.uid
        self._ended.add(uid)
        self._preparing.cancel(uid)
        if not self.manager.claims.has_pod(uid):
            self._releasing.forget(uid)
            return DONE
        return self._releasing.advance(uid, pod.key, lambda: self.manager.unprepare(uid))

    def pod_deleted(self, pod: Pod, existing_uids: Iterable[str]) -> None:
        """The pod is gone from the API, released or not."""
        self._ended.discard(pod.metadata.uid)
        if self.manager.claims.has_pod(pod.metadata.uid):
            self.release_vanished(existing_uids)

    def release_vanished(self, existing_uids: Iterable[str]) -> None:
        """Unprepare the claims of pods that no longer exist."""
        for uid in self.manager.claims.pod_uids().difference(existing_uids, self._vanished):
            self._preparing.cancel(uid)
            self._releasing.cancel(uid)
            self._vanished[uid] = asyncio.create_task(self._release_vanished(uid))

    async def _release_vanished(self, uid: str) -> None:
        failures = 0
        while True:
            try:
                await self.manager.unprepare(uid)
                break
            except UnprepareError as error:
                failures += 1
                log.info("node %s: claims of a deleted pod: %s; retrying", self.name, error)
                await self._clock.sleep(RETRIES.seconds(failures, 0.0))
        del self._vanished[uid]
        self.retry()  # a new claim of the same name may wait for that

    def container_devices(self, pod: Pod) -> Mapping[str, Any]:
        """What containers get. Raises `ContainerError`."""
        return container_devices(pod, self.find, self._cdi) if self._cdi is not None else {}

    # --- drivers ---

    def driver_changed(self, driver: str) -> None:
        """An instance was registered, connected, disconnected or removed."""
        if self._is_closed:
            return
        is_usable = self.plugins.is_usable(driver)
        if self._wipes is not None:
            self._wipes.note(driver, is_usable=is_usable)
        if is_usable:
            self.retry()

    def faults_changed(self) -> None:
        for driver in self.plugins.registered:
            self.driver_changed(driver)
        self.retry()
        for pod in self._context.pods_of(self.name):
            self._context.queue_pod(pod.key)

    def retry(self) -> None:
        self._preparing.retry_now()
        self._releasing.retry_now()

    # --- health ---

    def report_health(self, driver: str, reports: Mapping[tuple[str, str], DeviceHealth]) -> None:
        self._show_health(self._health.update(driver, reports))
        self._expire_later()

    def _expire_later(self) -> None:
        expired, seconds = self._health.expire()
        self._show_health(expired)
        if self._expiring is not None:
            self._expiring.cancel()
            self._expiring = None
        if seconds is not None:
            self._expiring = self._clock.call_later(seconds, self._expire_later)

    def _show_health(self, devices: set[DeviceId]) -> None:
        """Queue the pods that use these devices."""
        if not devices:
            return
        uids = {
            uid
            for info in self.manager.claims
            if devices.intersection(_device_ids(info))
            for uid in info.pod_uids
        }
        for pod in self._context.pods_of(self.name) if uids else ():
            if pod.metadata.uid in uids:
                self._context.queue_pod(pod.key)

    def with_health(self, status: dict[str, Any], pod: Pod) -> dict[str, Any]:
        """The pod's status with the health of its devices."""
        if not self.manager.claims.has_pod(pod.metadata.uid):
            return status
        return with_resource_health(status, pod, self.find, self._health_of)

    def _health_of(self, device: DeviceId) -> DeviceHealth | None:
        faults = self._faults.of(device.driver)
        if faults is not None and device.device in faults.health_by_device:
            health = faults.health_by_device[device.device]
            return DeviceHealth(health, "" if health is HealthStatus.HEALTHY else INJECTED)
        if device.driver in self.plugins.registered:
            return self._health.get(device)
        return None


def _device_ids(info: ClaimInfo) -> Iterable[DeviceId]:
    for driver, devices in info.devices_by_driver.items():
        for device in devices:
            yield DeviceId(driver, device.pool, device.device)
