"""A driver behind a unix socket: NodePrepareResources and NodeUnprepareResources over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import grpc

from allot.kubelet.dra.claim_info import ClaimReference, PreparedClaim, PreparedDevice
from allot.kubelet.dra.driver_plugin import DriverCallError
from allot.kubelet.dra.metrics import DraMetrics
from allot.proto import dra_plugin_pb2
from allot.proto.services import (
    V1,
    Caller,
    node_prepare_resources,
    node_unprepare_resources,
)
from allot.task_cancellation import cancel_and_wait

CALL_SECONDS: Final = 45.0
"""The deadline of a call. The kubelet's."""
OK: Final = "OK"
CHANNEL_OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.default_authority", "localhost"),
)
_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class PluginIdentity(NamedTuple):
    """What a driver said when it registered."""

    driver: str
    endpoint: str
    """The path of its DRA socket."""
    version: str = V1
    """The version of DRAPlugin to use."""
    health_version: str = ""
    """The version of DRAResourceHealth; empty: it has none."""


def open_channel(path: str) -> grpc.aio.Channel:
    """A channel to a unix socket."""
    return grpc.aio.insecure_channel(f"unix:{path}", CHANNEL_OPTIONS)


def call_error(error: grpc.aio.AioRpcError) -> DriverCallError:
    return DriverCallError(_go_name(error.code()), error.details() or "")


class SocketPlugin:
    """One registered instance of a driver. Watches its connection until closed."""

    is_simulated = False

    def __init__(
        self,
        identity: PluginIdentity,
        metrics: DraMetrics,
        now: Callable[[], float],
        on_connection_change: Callable[[], None],
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        self.identity = identity
        self._metrics = metrics
        self._now = now
        self._call_seconds = call_seconds
        self._on_connection_change = on_connection_change
        self.is_connected = False
        self.channel = open_channel(identity.endpoint)
        self._prepare = Caller(self.channel, node_prepare_resources(identity.version))
        self._unprepare = Caller(self.channel, node_unprepare_resources(identity.version))
        self._watching = asyncio.create_task(self._watch_connection())

    @property
    def driver(self) -> str:
        return self.identity.driver

    @property
    def endpoint(self) -> str:
        return self.identity.endpoint

    async def close(self) -> None:
        await cancel_and_wait(self._watching, ignore_errors=True)
        self.is_connected = False
        await self.channel.close()

    async def _watch_connection(self) -> None:
        while True:
            state = self.channel.get_state(try_to_connect=True)
            is_connected = state is grpc.ChannelConnectivity.READY
            if is_connected != self.is_connected:
                self.is_connected = is_connected
                self._on_connection_change()
            await self.channel.wait_for_state_change(state)

    # --- calls ---

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        request = dra_plugin_pb2.NodePrepareResourcesRequest(claims=_messages(claims))
        response = await self._call(self._prepare, request)
        has_shares = self.identity.version == V1
        return {
            uid: PreparedClaim(
                tuple(_device(device, has_shares) for device in answer.devices), answer.error
            )
            for uid, answer in response.claims.items()
        }

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        request = dra_plugin_pb2.NodeUnprepareResourcesRequest(claims=_messages(claims))
        response = await self._call(self._unprepare, request)
        return {uid: answer.error for uid, answer in response.claims.items()}

    async def _call(self, caller: Caller[_Request, _Answer], request: _Request) -> _Answer:
        started = self._now()
        code = OK
        try:
            return await caller(request, timeout_seconds=self._call_seconds)
        except grpc.aio.AioRpcError as error:
            failure = call_error(error)
            code = failure.code
            raise failure from error
        finally:
            self._metrics.call(self.driver, caller.path, code, self._now() - started)


def _messages(claims: Sequence[ClaimReference]) -> list[dra_plugin_pb2.Claim]:
    return [dra_plugin_pb2.Claim(**claim._asdict()) for claim in claims]


def _device(device: dra_plugin_pb2.Device, has_shares: bool) -> PreparedDevice:
    return PreparedDevice(
        device.pool_name,
        device.device_name,
        tuple(device.request_names),
        tuple(device.cdi_device_ids),
        device.share_id if has_shares and device.HasField("share_id") else None,
    )


def _go_name(code: grpc.StatusCode) -> str:
    """`DeadlineExceeded` for DEADLINE_EXCEEDED, as Go writes it."""
    return "".join(word.capitalize() for word in code.name.split("_"))
