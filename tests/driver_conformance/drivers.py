"""Drivers for the conformance suite, in the test's own process: the SDK's, and ones that break a rule each."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path

from allot.api.slices import Device
from allot.client.client import Client
from allot.driver import (
    AllocatedClaim,
    ContainerEdits,
    Driver,
    KubeletPlugin,
    PluginOptions,
    PreparedDevice,
    make_device,
)
from allot.kubelet.dra.paths import NodePaths

NAME = "kit.example.com"
NODE = "n1"


class SimpleDriver(Driver):
    name = NAME

    def devices(self) -> Iterable[Device]:
        for index in range(4):
            yield make_device(f"dev-{index}")
        yield make_device("shared", allow_multiple_allocations=True)

    async def prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        return [each.prepared(ContainerEdits({"DEVICE": each.device})) for each in claim.devices]


class InProcessDriver:
    """The SDK's driver in this process. A kill closes its servers and leaves its sockets."""

    can_restart = True
    can_run_twice = True

    def __init__(
        self, client: Client, paths: NodePaths, driver: type[Driver] = SimpleDriver
    ) -> None:
        self._client = client
        self._paths = paths
        self._driver = driver
        self._plugins: dict[str, KubeletPlugin] = {}
        self._problem = ""

    async def start(self, instance: str) -> None:
        options = PluginOptions(
            kubelet_directory=self._paths.root,
            cdi_directory=self._paths.cdi,
            instance=instance,
            repair_seconds=0.2,
        )
        plugin = KubeletPlugin(self._driver(), self._client, NODE, options)
        self._plugins[instance] = plugin
        try:
            await plugin.start()
        except OSError as error:
            self._problem = str(error)

    async def kill(self, instance: str) -> None:
        plugin = self._plugins.pop(instance, None)
        if plugin is None:
            return
        await plugin.stop()
        for path in (plugin.paths.endpoint, plugin.paths.registration):
            _stale_socket(path)

    async def stop(self, instance: str) -> str:
        plugin = self._plugins.pop(instance, None)
        if plugin is not None:
            await plugin.stop()
        return ""

    def problem(self, instance: str) -> str:
        return self._problem


def _stale_socket(path: Path) -> None:
    """What a process that was killed leaves."""
    if not path.exists():
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
