"""The sockets of one node: plugins that register, their health streams, and the PodResources API."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from allot.api.core import Pod
from allot.client.clock import Clock
from allot.kubelet.dra.health_stream import follow_health
from allot.kubelet.dra.metrics import DraMetrics
from allot.kubelet.dra.node import DraNode
from allot.kubelet.dra.paths import NodePaths
from allot.kubelet.dra.plugin import PluginIdentity, SocketPlugin
from allot.kubelet.dra.plugin_registration import PluginRegistration, RegistrationError
from allot.kubelet.dra.plugin_watcher import PluginWatcher, RegistryListener, SocketFile
from allot.kubelet.dra.pod_resources import PodResourcesServer

log = logging.getLogger(__name__)


class NodeSockets:
    """Serves and follows the sockets of a node, until closed."""

    def __init__(
        self,
        node: DraNode,
        paths: NodePaths,
        watcher: PluginWatcher,
        metrics: DraMetrics,
        clock: Clock,
        pods: Callable[[], Iterable[Pod]],
    ) -> None:
        self._node = node
        self._paths = paths
        self._watcher = watcher
        self._metrics = metrics
        self._clock = clock
        self._pods = pods
        self._registrations: dict[SocketFile, PluginRegistration] = {}
        self._health: dict[PluginIdentity, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[Any]] = set()
        self._pod_resources: PodResourcesServer | None = None
        paths.create()
        watcher.watch(paths.registry, RegistryListener(self._added, self._removed))

    async def close(self) -> None:
        self._watcher.forget(self._paths.registry)
        for registration in self._registrations.values():
            self._later(registration.close())
        self._registrations.clear()
        for task in self._health.values():
            task.cancel()
        if self._pod_resources is not None:
            server, self._pod_resources = self._pod_resources, None
            self._later(server.stop())
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _added(self, socket: SocketFile) -> None:
        self._registrations[socket] = PluginRegistration(
            socket.path, self._clock, self._register, self._unregister
        )

    def _removed(self, socket: SocketFile) -> None:
        registration = self._registrations.pop(socket, None)
        if registration is not None:
            self._later(registration.close())

    def _later(self, closing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _register(self, identity: PluginIdentity) -> None:
        driver = identity.driver
        if self._node.plugins.has_endpoint(driver, identity.endpoint):
            raise RegistrationError(
                f"DRA driver {driver} is already registered with endpoint {identity.endpoint}"
            )
        plugin = SocketPlugin(
            identity,
            self._metrics,
            self._clock.now,
            partial(self._node.driver_changed, driver),
        )
        self._node.plugins.add(plugin)
        if identity.health_version:
            self._health[identity] = asyncio.create_task(
                follow_health(plugin, self._clock, partial(self._node.report_health, driver))
            )
        self._node.driver_changed(driver)
        if self._pod_resources is None:
            self._pod_resources = PodResourcesServer(
                self._paths.pod_resources, self._pods, self._node.find
            )
            self._later(self._pod_resources.start())

    async def _unregister(self, identity: PluginIdentity) -> None:
        health = self._health.pop(identity, None)
        if health is not None:
            health.cancel()
        plugin = self._node.plugins.remove(identity.driver, identity.endpoint)
        self._node.driver_changed(identity.driver)
        if isinstance(plugin, SocketPlugin):
            await plugin.close()
