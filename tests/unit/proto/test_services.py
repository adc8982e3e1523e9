"""The services of kubelet and drivers, over a real unix socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from allot.proto import dra_health_pb2, dra_plugin_pb2
from allot.proto.services import (
    V1,
    V1BETA1,
    call,
    node_prepare_resources,
    node_watch_resources,
    serve,
    stream,
    stream_handler,
    unary_handler,
)


async def prepared(
    request: dra_plugin_pb2.NodePrepareResourcesRequest, context: Any
) -> dra_plugin_pb2.NodePrepareResourcesResponse:
    device = dra_plugin_pb2.Device(device_name="gpu-0", share_id="s")
    answer = dra_plugin_pb2.NodePrepareResourceResponse(devices=[device])
    return dra_plugin_pb2.NodePrepareResourcesResponse(
        claims={claim.uid: answer for claim in request.claims}
    )


async def health(
    request: dra_health_pb2.NodeWatchResourcesRequest, context: Any
) -> AsyncIterator[dra_health_pb2.NodeWatchResourcesResponse]:
    for state in (dra_health_pb2.HEALTHY, dra_health_pb2.UNHEALTHY):
        yield dra_health_pb2.NodeWatchResourcesResponse(
            devices=[dra_health_pb2.DeviceHealth(health=state)]
        )


async def over_a_socket(path: Path) -> None:
    server = grpc.aio.server()
    serve(
        server,
        [
            unary_handler(node_prepare_resources(V1), prepared),
            stream_handler(node_watch_resources(), health),
        ],
    )
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        request = dra_plugin_pb2.NodePrepareResourcesRequest(
            claims=[dra_plugin_pb2.Claim(namespace="n", uid="u", name="c")]
        )
        answer = await call(channel, node_prepare_resources(V1), request, timeout_seconds=30)
        assert answer.claims["u"].devices[0].share_id == "s"
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(channel, node_prepare_resources(V1BETA1), request, timeout_seconds=30)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
        answers = stream(
            channel, node_watch_resources(), dra_health_pb2.NodeWatchResourcesRequest()
        )
        assert [each.devices[0].health async for each in answers] == [1, 2]
    await server.stop(None)


def test_calls_and_streams(tmp_path: Path) -> None:
    asyncio.run(over_a_socket(tmp_path / "dra.sock"))


def test_wire_format_is_that_of_kubernetes() -> None:
    """Field numbers, checked against bytes that Kubernetes' own messages encode to."""
    device = dra_plugin_pb2.Device(
        request_names=["r"], pool_name="p", device_name="d", cdi_device_ids=["v/c=x"], share_id="s"
    )
    assert device.SerializeToString() == b'\n\x01r\x12\x01p\x1a\x01d"\x05v/c=x*\x01s'
    claim = dra_plugin_pb2.Claim(namespace="n", uid="u", name="c")
    assert claim.SerializeToString() == b"\n\x01n\x12\x01u\x1a\x01c"
