"""The gRPC services between the kubelet and DRA drivers: full names, methods, versions.

    Registration        served by a driver in the kubelet's registry directory
    DRAPlugin           served by a driver; v1 and v1beta1
    DRAResourceHealth   served by a driver, optional; v1 and v1alpha1
    PodResourcesLister  served by the kubelet

A driver names the services that it has in `PluginInfo.supported_versions`: `DRA_SERVICES` and `HEALTH_SERVICES` map
those strings to full names.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

# The library logs every connection that ends, to stderr.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

import grpc

from allot.proto import (
    dra_health_pb2,
    dra_plugin_pb2,
    plugin_registration_pb2,
    pod_resources_pb2,
)

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")

DRA_PLUGIN_TYPE: Final = "DRAPlugin"
"""`PluginInfo.type` of DRA drivers."""
V1: Final = "v1.DRAPlugin"
V1BETA1: Final = "v1beta1.DRAPlugin"
DRA_SERVICES: Final = {
    V1: "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    V1BETA1: "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
}
HEALTH_V1: Final = "v1.DRAResourceHealth"
HEALTH_V1ALPHA1: Final = "v1alpha1.DRAResourceHealth"
HEALTH_SERVICES: Final = {HEALTH_V1: HEALTH_V1, HEALTH_V1ALPHA1: HEALTH_V1ALPHA1}
"""In the kubelet's order of preference."""
REGISTRATION: Final = "pluginregistration.Registration"
POD_RESOURCES: Final = "v1.PodResourcesLister"


@dataclass(frozen=True)
class Method(Generic[RequestT, ResponseT]):
    """A method of a service, and its messages."""

    service: str
    name: str
    request: type[RequestT]
    response: type[ResponseT]

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


GET_INFO: Final = Method(
    REGISTRATION, "GetInfo", plugin_registration_pb2.InfoRequest, plugin_registration_pb2.PluginInfo
)
NOTIFY_REGISTRATION_STATUS: Final = Method(
    REGISTRATION,
    "NotifyRegistrationStatus",
    plugin_registration_pb2.RegistrationStatus,
    plugin_registration_pb2.RegistrationStatusResponse,
)
LIST_POD_RESOURCES: Final = Method(
    POD_RESOURCES,
    "List",
    pod_resources_pb2.ListPodResourcesRequest,
    pod_resources_pb2.ListPodResourcesResponse,
)
GET_POD_RESOURCES: Final = Method(
    POD_RESOURCES,
    "Get",
    pod_resources_pb2.GetPodResourcesRequest,
    pod_resources_pb2.GetPodResourcesResponse,
)
GET_ALLOCATABLE_RESOURCES: Final = Method(
    POD_RESOURCES,
    "GetAllocatableResources",
    pod_resources_pb2.AllocatableResourcesRequest,
    pod_resources_pb2.AllocatableResourcesResponse,
)


def node_prepare_resources(
    version: str = V1,
) -> Method[
    dra_plugin_pb2.NodePrepareResourcesRequest, dra_plugin_pb2.NodePrepareResourcesResponse
]:
    """The method in a version of DRAPlugin, such as "v1.DRAPlugin"."""
    return Method(
        DRA_SERVICES[version],
        "NodePrepareResources",
        dra_plugin_pb2.NodePrepareResourcesRequest,
        dra_plugin_pb2.NodePrepareResourcesResponse,
    )


def node_unprepare_resources(
    version: str = V1,
) -> Method[
    dra_plugin_pb2.NodeUnprepareResourcesRequest, dra_plugin_pb2.NodeUnprepareResourcesResponse
]:
    return Method(
        DRA_SERVICES[version],
        "NodeUnprepareResources",
        dra_plugin_pb2.NodeUnprepareResourcesRequest,
        dra_plugin_pb2.NodeUnprepareResourcesResponse,
    )


def node_watch_resources(
    version: str = HEALTH_V1,
) -> Method[dra_health_pb2.NodeWatchResourcesRequest, dra_health_pb2.NodeWatchResourcesResponse]:
    return Method(
        HEALTH_SERVICES[version],
        "NodeWatchResources",
        dra_health_pb2.NodeWatchResourcesRequest,
        dra_health_pb2.NodeWatchResourcesResponse,
    )


class Caller(Generic[RequestT, ResponseT]):
    """A unary method on a channel, for many calls."""

    def __init__(self, channel: grpc.aio.Channel, method: Method[RequestT, ResponseT]) -> None:
        self.path = method.path
        serializer: Any = method.request
        deserializer: Any = method.response
        self._ask = channel.unary_unary(
            method.path,
            request_serializer=serializer.SerializeToString,
            response_deserializer=deserializer.FromString,
        )

    async def __call__(self, request: RequestT, *, timeout_seconds: float) -> ResponseT:
        """Raises `grpc.aio.AioRpcError`."""
        answer: ResponseT = await self._ask(request, timeout=timeout_seconds)
        return answer


async def call(
    channel: grpc.aio.Channel,
    method: Method[RequestT, ResponseT],
    request: RequestT,
    *,
    timeout_seconds: float,
) -> ResponseT:
    """Call a unary method. Raises `grpc.aio.AioRpcError`."""
    return await Caller(channel, method)(request, timeout_seconds=timeout_seconds)


def stream(
    channel: grpc.aio.Channel, method: Method[RequestT, ResponseT], request: RequestT
) -> AsyncIterator[ResponseT]:
    """Call a method that answers with a stream. Reading raises `grpc.aio.AioRpcError`."""
    serializer: Any = method.request
    deserializer: Any = method.response
    ask = channel.unary_stream(
        method.path,
        request_serializer=serializer.SerializeToString,
        response_deserializer=deserializer.FromString,
    )
    answers: AsyncIterator[ResponseT] = ask(request)
    return answers


Handler = tuple[str, str, grpc.RpcMethodHandler]


def unary_handler(
    method: Method[RequestT, ResponseT], answer: Callable[[RequestT, Any], Awaitable[ResponseT]]
) -> Handler:
    """A handler for `serve`. `answer` gets the request and the servicer context."""
    handler = grpc.unary_unary_rpc_method_handler(answer, *_codecs(method))
    return method.service, method.name, handler


def stream_handler(
    method: Method[RequestT, ResponseT],
    answer: Callable[[RequestT, Any], AsyncIterator[ResponseT]],
) -> Handler:
    handler = grpc.unary_stream_rpc_method_handler(answer, *_codecs(method))
    return method.service, method.name, handler


def serve(server: grpc.aio.Server, handlers: Iterable[Handler]) -> None:
    """Add handlers to a server."""
    by_service: dict[str, dict[str, grpc.RpcMethodHandler]] = {}
    for service, name, handler in handlers:
        by_service.setdefault(service, {})[name] = handler
    server.add_generic_rpc_handlers(
        tuple(
            grpc.method_handlers_generic_handler(service, methods)
            for service, methods in by_service.items()
        )
    )


def _codecs(method: Method[Any, Any]) -> tuple[Any, Any]:
    return method.request.FromString, method.response.SerializeToString
