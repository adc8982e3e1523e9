"""The kubelet's side of registration: sockets in the registry directory, GetInfo, NotifyRegistrationStatus."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

import grpc

from allot.conformance.waiting import Waiting
from allot.kubelet.dra.plugin import open_channel
from allot.kubelet.dra.plugin_watcher import sockets_in
from allot.proto import plugin_registration_pb2
from allot.proto.services import DRA_SERVICES, GET_INFO, NOTIFY_REGISTRATION_STATUS, call


class Registration(NamedTuple):
    """A registration socket, and what it answers."""

    socket: str
    info: plugin_registration_pb2.PluginInfo


class Registrations:
    """The registration sockets of one driver."""

    def __init__(self, registry: Path, waiting: Waiting, driver_name: str, socket: str) -> None:
        """Without a `driver_name` it is the one that registers first; without a `socket` any of the registry."""
        self.driver_name = driver_name
        self._registry = registry
        self._waiting = waiting
        self._socket = socket

    async def answering(self) -> list[Registration]:
        """The sockets that answer now, with the driver's name if that is known."""
        if self._socket:
            sockets = [self._socket]
        else:
            found = await asyncio.to_thread(sockets_in, str(self._registry))
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

    async def current(self) -> Registration:
        """The driver's registration, once it answers."""

        async def first() -> Registration | None:
            found = await self.answering()
            return found[-1] if found else None

        found = await self._waiting.until(first, "a registration socket that answers GetInfo")
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
        found = await self.current()
        await self.notify(found.socket)
        return found

    async def versions(self) -> list[str]:
        """The versions of DRAPlugin that the driver announces and a kubelet knows."""
        info = (await self.current()).info
        return [version for version in info.supported_versions if version in DRA_SERVICES]
