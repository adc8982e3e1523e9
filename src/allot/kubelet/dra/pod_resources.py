"""The PodResources API of a node, on its socket: which devices its pods use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import grpc

from allot.api.core import Pod
from allot.kubelet.dra.container_devices import FindClaim, devices_of
from allot.proto import pod_resources_pb2 as messages
from allot.proto.services import (
    GET_ALLOCATABLE_RESOURCES,
    GET_POD_RESOURCES,
    LIST_POD_RESOURCES,
    serve,
    unary_handler,
)


class PodResourcesServer:
    """Serves the pods of one node."""

    def __init__(self, socket: Path, pods: Callable[[], Iterable[Pod]], find: FindClaim) -> None:
        """`pods` are those of the node that have not ended."""
        self._socket = socket
        self._pods = pods
        self._find = find
        self._server = grpc.aio.server()
        handlers = [
            unary_handler(LIST_POD_RESOURCES, self._list),
            unary_handler(GET_POD_RESOURCES, self._get),
            unary_handler(GET_ALLOCATABLE_RESOURCES, self._get_allocatable),
        ]
        serve(self._server, handlers)

    async def start(self) -> None:
        self._socket.unlink(missing_ok=True)
        self._server.add_insecure_port(f"unix:{self._socket}")
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)
        self._socket.unlink(missing_ok=True)

    async def _list(
        self, request: messages.ListPodResourcesRequest, context: Any
    ) -> messages.ListPodResourcesResponse:
        return messages.ListPodResourcesResponse(
            pod_resources=[pod_resources(pod, self._find) for pod in self._pods()]
        )

    async def _get(
        self, request: messages.GetPodResourcesRequest, context: Any
    ) -> messages.GetPodResourcesResponse:
        for pod in self._pods():
            metadata = pod.metadata
            if (metadata.namespace, metadata.name) == (request.pod_namespace, request.pod_name):
                return messages.GetPodResourcesResponse(
                    pod_resources=pod_resources(pod, self._find)
                )
        await context.abort(
            grpc.StatusCode.NOT_FOUND,
            f"pod {request.pod_name} in namespace {request.pod_namespace} not found",
        )
        raise AssertionError  # abort raises

    async def _get_allocatable(
        self, request: messages.AllocatableResourcesRequest, context: Any
    ) -> messages.AllocatableResourcesResponse:
        """Device plugins, CPUs and memory are not simulated."""
        return messages.AllocatableResourcesResponse()


def pod_resources(pod: Pod, find: FindClaim) -> messages.PodResources:
    containers = [
        *pod.get("spec", "initContainers", default=()),
        *pod.get("spec", "containers", default=()),
    ]
    return messages.PodResources(
        name=pod.metadata.name,
        namespace=pod.metadata.namespace,
        containers=[_container_resources(pod, container, find) for container in containers],
    )


def _container_resources(
    pod: Pod, container: Mapping[str, Any], find: FindClaim
) -> messages.ContainerResources:
    by_claim: dict[str, list[messages.ClaimResource]] = {}
    for claim, driver, device in devices_of(pod, container, find):
        resource = messages.ClaimResource(
            cdi_devices=[messages.CDIDevice(name=name) for name in device.cdi_device_ids],
            driver_name=driver,
            pool_name=device.pool,
            device_name=device.device,
            share_id=device.share_id,
        )
        by_claim.setdefault(claim, []).append(resource)
    return messages.ContainerResources(
        name=container.get("name", ""),
        dynamic_resources=[
            messages.DynamicResource(
                claim_name=claim,
                claim_namespace=pod.metadata.namespace,
                claim_resources=resources,
            )
            for claim, resources in by_claim.items()
        ],
    )
