"""Follows the health that a driver reports over its socket."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import grpc

from allot.client.clock import Clock
from allot.kubelet.dra.health import DEFAULT_TIMEOUT_SECONDS, DeviceHealth, HealthStatus
from allot.kubelet.dra.plugin import SocketPlugin
from allot.proto import dra_health_pb2
from allot.proto.services import node_watch_resources, stream

log = logging.getLogger(__name__)

RECONNECT_SECONDS: Final = 5.0
_HEALTH: Final = {
    dra_health_pb2.HEALTHY: HealthStatus.HEALTHY,
    dra_health_pb2.UNHEALTHY: HealthStatus.UNHEALTHY,
}

DeviceReports = dict[tuple[str, str], DeviceHealth]


async def follow_health(
    plugin: SocketPlugin, clock: Clock, report: Callable[[DeviceReports], None]
) -> None:
    """Report all devices whenever the driver does, by pool and name. Ends if it has no such service."""
    method = node_watch_resources(plugin.identity.health_version)
    while True:
        try:
            request = dra_health_pb2.NodeWatchResourcesRequest()
            async for response in stream(plugin.channel, method, request):
                report(_reports(response))
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                log.info("driver %s reports no health", plugin.driver)
                return
            log.info("driver %s: health stream ended: %s", plugin.driver, error.details())
        await clock.sleep(RECONNECT_SECONDS)


def _reports(response: dra_health_pb2.NodeWatchResourcesResponse) -> DeviceReports:
    return {
        (each.device.pool_name, each.device.device_name): DeviceHealth(
            _HEALTH.get(each.health, HealthStatus.UNKNOWN),
            each.message,
            each.health_check_timeout_seconds or DEFAULT_TIMEOUT_SECONDS,
        )
        for each in response.devices
    }
