"""A small DRA driver for tests of simulated nodes: its sockets, its slice, and a record of what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import grpc

from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.client.apply import apply
from allot.client.client import Client
from allot.client.resources import NODES, RESOURCE_CLAIMS
from allot.kubelet.dra.paths import NodePaths
from allot.proto import dra_health_pb2, dra_plugin_pb2, plugin_registration_pb2
from allot.proto.services import (
    DRA_PLUGIN_TYPE,
    GET_INFO,
    HEALTH_SERVICES,
    HEALTH_V1,
    NOTIFY_REGISTRATION_STATUS,
    V1,
    V1BETA1,
    node_prepare_resources,
    node_unprepare_resources,
    node_watch_resources,
    serve,
    stream_handler,
    unary_handler,
)

VENDOR_CLASS = "example.com/device"


class FakeDriver:
    """One instance of a driver on one node. All of it runs in the event loop of the cluster."""

    def __init__(
        self,
        name: str,
        client: Client,
        paths: NodePaths,
        *,
        versions: Iterable[str] = (V1, V1BETA1, HEALTH_V1),
        instance: str = "",
        state: dict[str, str] | None = None,
    ) -> None:
        """Instances of one driver share their `state`: claims that are prepared, by UID."""
        self.name = name
        self.client = client
        self.paths = paths
        self.versions = list(versions)
        self.state = {} if state is None else state
        suffix = f"-{instance}" if instance else ""
        directory = paths.plugins / name[:20]
        directory.mkdir(parents=True, exist_ok=True)
        self.endpoint = directory / f"dra{suffix}.sock"
        self.registration = paths.registry / f"{name[:20]}{suffix}-reg.sock"
        self.calls: list[tuple[str, list[str]]] = []
        """Methods, and the names of claims."""
        self.statuses: list[tuple[bool, str]] = []
        """What the kubelet said about the registration."""
        self.prepare_errors: list[str] = []
        """Answers to the next calls about a claim."""
        self.unprepare_blocked = asyncio.Event()
        self.unprepare_blocked.set()
        self.reports: asyncio.Queue[list[dra_health_pb2.DeviceHealth]] = asyncio.Queue()
        self.writes_specs = True
        self._serialized = asyncio.Lock()
        self._servers: list[grpc.aio.Server] = []

    # --- life ---

    async def start(self) -> None:
        handlers = []
        for version in (V1, V1BETA1):
            if version in self.versions:
                handlers += [
                    unary_handler(node_prepare_resources(version), self._prepare),
                    unary_handler(node_unprepare_resources(version), self._unprepare),
                ]
        for version in HEALTH_SERVICES:
            if version in self.versions:
                handlers.append(stream_handler(node_watch_resources(version), self._health))
        await self._listen(self.endpoint, handlers)
        await self._listen(
            self.registration,
            [
                unary_handler(GET_INFO, self._info),
                unary_handler(NOTIFY_REGISTRATION_STATUS, self._notified),
            ],
        )

    async def _listen(self, socket: Path, handlers: list[Any]) -> None:
        socket.unlink(missing_ok=True)
        server = grpc.aio.server()
        serve(server, handlers)
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        self._servers.append(server)

    async def stop(self, *, removes_sockets: bool = True) -> None:
        """End; like a killed process, if the sockets stay."""
        if removes_sockets:
            self.registration.unlink(missing_ok=True)
        for server in self._servers:
            await server.stop(None)
        if removes_sockets:
            self.endpoint.unlink(missing_ok=True)
        self._servers.clear()

    async def publish(self, node: str, devices: int = 4, **device: Any) -> None:
        """Publish the slice of this node, which owns it."""
        await publish_slice(self.client, self.name, node, devices, **device)

    # --- calls ---

    async def _info(
        self, request: plugin_registration_pb2.InfoRequest, context: Any
    ) -> plugin_registration_pb2.PluginInfo:
        return plugin_registration_pb2.PluginInfo(
            type=DRA_PLUGIN_TYPE,
            name=self.name,
            endpoint=str(self.endpoint),
            supported_versions=self.versions,
        )

    async def _notified(
        self, request: plugin_registration_pb2.RegistrationStatus, context: Any
    ) -> plugin_registration_pb2.RegistrationStatusResponse:
        self.statuses.append((request.plugin_registered, request.error))
        return plugin_registration_pb2.RegistrationStatusResponse()

    async def _prepare(
        self, request: dra_plugin_pb2.NodePrepareResourcesRequest, context: Any
    ) -> dra_plugin_pb2.NodePrepareResourcesResponse:
        self.calls.append(("prepare", [claim.name for claim in request.claims]))
        async with self._serialized:
            answers = {claim.uid: await self._prepare_one(claim) for claim in request.claims}
        return dra_plugin_pb2.NodePrepareResourcesResponse(claims=answers)

    async def _prepare_one(
        self, wanted: dra_plugin_pb2.Claim
    ) -> dra_plugin_pb2.NodePrepareResourceResponse:
        if self.prepare_errors:
            return dra_plugin_pb2.NodePrepareResourceResponse(error=self.prepare_errors.pop(0))
        key = ObjectKey(wanted.namespace, wanted.name)
        claim: ResourceClaim = await self.client.get(RESOURCE_CLAIMS, key)
        assert claim.metadata.uid == wanted.uid
        assert claim.status.allocation is not None
        devices = []
        for result in claim.status.allocation.devices.results:
            if result.driver != self.name:
                continue
            request = result.request.split("/")[0]
            cdi_name = f"{wanted.uid}-{request}-{result.device}"
            if self.writes_specs:
                self._write_spec(cdi_name, request, result.device)
            devices.append(
                dra_plugin_pb2.Device(
                    request_names=[request],
                    pool_name=result.pool,
                    device_name=result.device,
                    cdi_device_ids=[f"{VENDOR_CLASS}={cdi_name}"],
                    share_id=result.share_id,
                )
            )
        self.state[wanted.uid] = wanted.name
        return dra_plugin_pb2.NodePrepareResourceResponse(devices=devices)

    def _write_spec(self, cdi_name: str, request: str, device: str) -> None:
        edits = {
            "env": [f"{request.upper()}={device}"],
            "mounts": [{"hostPath": f"/host/{device}", "containerPath": f"/dev/{device}"}],
        }
        spec = {
            "cdiVersion": "0.6.0",
            "kind": VENDOR_CLASS,
            "devices": [{"name": cdi_name, "containerEdits": edits}],
        }
        (self.paths.cdi / f"{cdi_name}.json").write_text(json.dumps(spec))

    async def _unprepare(
        self, request: dra_plugin_pb2.NodeUnprepareResourcesRequest, context: Any
    ) -> dra_plugin_pb2.NodeUnprepareResourcesResponse:
        self.calls.append(("unprepare", [claim.name for claim in request.claims]))
        await self.unprepare_blocked.wait()
        answers = {}
        async with self._serialized:
            for claim in request.claims:
                self.state.pop(claim.uid, None)
                for file in self.paths.cdi.glob(f"{claim.uid}-*.json"):
                    file.unlink()
                answers[claim.uid] = dra_plugin_pb2.NodeUnprepareResourceResponse()
        return dra_plugin_pb2.NodeUnprepareResourcesResponse(claims=answers)

    async def _health(
        self, request: dra_health_pb2.NodeWatchResourcesRequest, context: Any
    ) -> AsyncIterator[dra_health_pb2.NodeWatchResourcesResponse]:
        while True:
            devices = await self.reports.get()
            yield dra_health_pb2.NodeWatchResourcesResponse(devices=devices)


async def publish_slice(
    client: Client, driver: str, node: str, devices: int = 4, **device: Any
) -> None:
    """A slice that belongs to the node."""
    owner = (await client.get(NODES, ObjectKey("", node))).metadata
    slice_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": f"{node}-{driver.partition('.')[0]}",
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": owner.name,
                    "uid": owner.uid,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"dev-{i}", **device} for i in range(devices)],
        },
    }
    await apply(client, [slice_])


def device_class(name: str, driver: str, **spec: Any) -> dict[str, Any]:
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector], **spec},
    }
