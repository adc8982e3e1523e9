"""Registration of plugins: asks a socket in the registry directory who it is, and tells it the outcome.

    socket appears ──► GetInfo ──► type, name and versions are checked ──► NotifyRegistrationStatus
                          └──── failed: again, after a backoff, as long as the socket is there ◄──┘

`PluginRegistration` is one socket; the drivers that are registered are in `plugin_store`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import grpc

from allot.backoff import Backoff
from allot.client.clock import Clock
from allot.kubelet.dra.paths import MAX_SOCKET_PATH
from allot.kubelet.dra.plugin import PluginIdentity, call_error, open_channel
from allot.proto import plugin_registration_pb2
from allot.proto.services import (
    DRA_PLUGIN_TYPE,
    DRA_SERVICES,
    GET_INFO,
    HEALTH_SERVICES,
    NOTIFY_REGISTRATION_STATUS,
    call,
)
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

GET_INFO_SECONDS: Final = 1.0
NOTIFY_SECONDS: Final = 1.0
RETRIES: Final = Backoff(initial_seconds=0.5, max_seconds=30.0, jitter=0.0)


class RegistrationError(Exception):
    """A plugin is refused. It is told why."""


def identity_from(info: plugin_registration_pb2.PluginInfo, socket: str) -> PluginIdentity:
    """What to use of a plugin. Raises `RegistrationError`."""
    if info.type != DRA_PLUGIN_TYPE:
        raise RegistrationError(
            f"plugin type {info.type!r} is not supported; supported: {DRA_PLUGIN_TYPE}"
        )
    if not info.name:
        raise RegistrationError("the plugin has no name: `name` must be that of the DRA driver")
    versions = list(info.supported_versions)
    version = _first(versions, DRA_SERVICES)
    if not version:
        raise RegistrationError(
            f"DRA driver {info.name}: none of its versions {versions} is supported; "
            f"supported: {', '.join(DRA_SERVICES)}"
        )
    endpoint = info.endpoint or socket
    if len(endpoint.encode()) > MAX_SOCKET_PATH:
        raise RegistrationError(
            f"DRA driver {info.name}: endpoint {endpoint} is longer than {MAX_SOCKET_PATH} bytes"
        )
    return PluginIdentity(info.name, endpoint, version, _first(HEALTH_SERVICES, versions))


def _first(wanted: Iterable[str], known: Iterable[str] | Mapping[str, str]) -> str:
    """The first that is known: of DRAPlugin in the order of the plugin, of health in that of the kubelet."""
    known = set(known)
    return next((version for version in wanted if version in known), "")


class PluginRegistration:
    """Registers the plugin behind one socket, until closed."""

    def __init__(
        self,
        path: str,
        clock: Clock,
        register: Callable[[PluginIdentity], None],
        unregister: Callable[[PluginIdentity], Awaitable[None]],
    ) -> None:
        """`register` raises `RegistrationError` to refuse a plugin."""
        self._path = path
        self._clock = clock
        self._register = register
        self._unregister = unregister
        self._identity: PluginIdentity | None = None
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        await cancel_and_wait(self._task, ignore_errors=True)
        if self._identity is not None:
            identity, self._identity = self._identity, None
            await self._unregister(identity)

    async def _run(self) -> None:
        failures = 0
        while self._identity is None:
            try:
                await self._attempt()
            except (RegistrationError, OSError) as error:
                failures += 1
                log.log(
                    logging.WARNING if failures == 1 else logging.INFO,
                    "plugin socket %s is not registered: %s",
                    self._path,
                    error,
                )
                await self._clock.sleep(RETRIES.seconds(failures, 0.0))

    async def _attempt(self) -> None:
        async with open_channel(self._path) as channel:
            try:
                info = await call(
                    channel,
                    GET_INFO,
                    plugin_registration_pb2.InfoRequest(),
                    timeout_seconds=GET_INFO_SECONDS,
                )
            except grpc.aio.AioRpcError as error:
                raise RegistrationError(f"GetInfo failed: {call_error(error)}") from error
            try:
                identity = identity_from(info, self._path)
                self._register(identity)
            except RegistrationError as error:
                with suppress(grpc.aio.AioRpcError):
                    await _notify(channel, str(error))
                raise
            self._identity = identity
            log.info("registered DRA driver %s at %s", identity.driver, Path(identity.endpoint))
            with suppress(grpc.aio.AioRpcError):  # it is registered, whether it hears that or not
                await _notify(channel)


async def _notify(channel: grpc.aio.Channel, error: str = "") -> None:
    status = plugin_registration_pb2.RegistrationStatus(plugin_registered=not error, error=error)
    await call(channel, NOTIFY_REGISTRATION_STATUS, status, timeout_seconds=NOTIFY_SECONDS)
