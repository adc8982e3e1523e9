"""A driver made with `allot.driver`, with the same handles for tests as `FakeDriver`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from typing import Any

from allot.client.client import Client
from allot.driver import (
    AllocatedClaim,
    ClaimReference,
    ContainerEdits,
    Device,
    Driver,
    KubeletPlugin,
    PluginOptions,
    PreparedDevice,
    PrepareError,
    make_device,
)
from allot.driver.kubelet_plugin.preparation import ClaimAnswer, ClaimPreparation
from allot.kubelet.dra.paths import NodePaths
from tests.integration.dra_driver import publish_slice


class SdkDriver:
    """One instance of a driver on one node. Its state is the SDK's checkpoint."""

    def __init__(
        self,
        name: str,
        client: Client,
        paths: NodePaths,
        *,
        instance: str = "",
        state: Any = None,
    ) -> None:
        self.name = name
        self.client = client
        self.calls: list[tuple[str, list[str]]] = []
        """Methods, and the names of claims."""
        self.statuses: list[tuple[bool, str]] = []
        """What the kubelet said about the registration."""
        self._driver = _NodeDriver(name)
        options = PluginOptions(
            kubelet_directory=paths.root,
            cdi_directory=paths.cdi,
            instance=instance,
            repair_seconds=0.2,
        )
        self._plugin = _RecordedPlugin(self._driver, client, paths.root.name, options)
        self._plugin.statuses, self._plugin.calls = self.statuses, self.calls

    @property
    def prepare_errors(self) -> list[str]:
        """Answers to the next calls about a claim."""
        return self._driver.prepare_errors

    @prepare_errors.setter
    def prepare_errors(self, errors: list[str]) -> None:
        self._driver.prepare_errors = errors

    @property
    def unprepare_blocked(self) -> asyncio.Event:
        return self._driver.unprepare_blocked

    @property
    def state(self) -> dict[str, str]:
        """Claims that are prepared, by UID."""
        return {each.uid: each.reference.name for each in self._plugin.prepared_claims()}

    async def start(self) -> None:
        await self._plugin.start()

    async def stop(self, *, removes_sockets: bool = True) -> None:
        """End; like a killed process, if the sockets stay."""
        await self._plugin.stop()
        if not removes_sockets:
            for path in (self._plugin.paths.endpoint, self._plugin.paths.registration):
                with socket.socket(socket.AF_UNIX) as left:
                    left.bind(str(path))

    async def publish(self, node: str, devices: int = 4, **device: Any) -> None:
        """The SDK publishes; before the driver has started, another client does."""
        if not self.statuses:
            await publish_slice(self.client, self.name, node, devices, **device)
            return
        self._driver.found = [make_device(f"dev-{i}", **device) for i in range(devices)]
        self._plugin.refresh()
        async with asyncio.timeout(60):
            while not self._plugin.is_ready:
                await asyncio.sleep(0.02)


class _NodeDriver(Driver):
    def __init__(self, name: str) -> None:
        self.name = name
        self.found = [make_device(f"dev-{i}") for i in range(4)]
        self.prepare_errors: list[str] = []
        self.unprepare_blocked = asyncio.Event()
        self.unprepare_blocked.set()

    def devices(self) -> Iterable[Device]:
        return self.found

    async def prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        if self.prepare_errors:
            raise PrepareError(self.prepare_errors.pop(0))
        return [
            each.prepared(
                ContainerEdits(
                    {each.base_request.upper(): each.device},
                    mounts={f"/host/{each.device}": f"/dev/{each.device}"},
                )
            )
            for each in claim.devices
        ]

    async def unprepare(self, claim: AllocatedClaim) -> None:
        await self.unprepare_blocked.wait()


class _RecordedPlugin(KubeletPlugin):
    """Records what the kubelet says and asks."""

    statuses: list[tuple[bool, str]]
    calls: list[tuple[str, list[str]]]

    def _registered(self, is_registered: bool, error: str) -> None:
        super()._registered(is_registered, error)
        self.statuses.append((is_registered, error))

    async def start(self) -> None:
        await super().start()
        assert self._preparation is not None
        _record(self._preparation, self.calls)


def _record(preparation: ClaimPreparation, calls: list[tuple[str, list[str]]]) -> None:
    for method in ("prepare", "unprepare"):
        original = getattr(preparation, method)

        async def recorded(
            references: Iterable[ClaimReference], method: str = method, original: Any = original
        ) -> dict[str, ClaimAnswer]:
            asked = list(references)
            calls.append((method, [each.name for each in asked]))
            answers: dict[str, ClaimAnswer] = await original(asked)
            return answers

        setattr(preparation, method, recorded)
