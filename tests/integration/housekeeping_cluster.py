"""An API server in this process with some controllers beside it, for stories about housekeeping."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from allot.api.identities import GroupVersion
from allot.client.client import Client
from allot.client.component_users import CONTROLLER_MANAGER, ComponentUser, controller_user
from allot.client.in_process import InProcessTransport
from allot.controllers.manager import ControllerManager, Factory
from allot.testing.servers import TOKEN, LocalServer, ServerResponse

DEADLINE_SECONDS = 150.0


class Cluster:
    """What a test does to the API, and waits for."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server

    def client(self, user: str | ComponentUser = TOKEN) -> Client:
        return Client(InProcessTransport(self.server.server.app, user))

    @contextlib.asynccontextmanager
    async def running(self, *factories: Factory) -> AsyncIterator[ControllerManager]:
        """Controllers, each with the role of its own."""
        manager = ControllerManager(
            self.client(CONTROLLER_MANAGER),
            factories,
            controller_client=lambda name: self.client(controller_user(name)),
        )
        task = asyncio.create_task(manager.run())
        try:
            yield manager
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def create(
        self, kind: str, name: str, namespace: str = "default", **fields: Any
    ) -> dict[str, Any]:
        """`kind` is written `Pod`, or `apps/v1/ReplicaSet`; fields of metadata are meant where they belong."""
        metadata = {"name": name}
        for field in ("finalizers", "ownerReferences", "labels", "annotations"):
            if field in fields:
                metadata[field] = fields.pop(field)
        api_version, _, short = kind.rpartition("/")
        body = {"apiVersion": api_version or "v1", "kind": short, "metadata": metadata, **fields}
        return await self.server.post(_path(kind, namespace), body)

    async def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        answer = await self.server.ask("GET", _path(kind, namespace, name))
        assert answer.code in (200, 404), answer
        found: dict[str, Any] = answer.json
        return found if answer.code == 200 else None

    async def delete(
        self, kind: str, name: str, policy: str = "Background", namespace: str = "default"
    ) -> None:
        query = {"propagationPolicy": policy}
        answer = await self.server.ask("DELETE", _path(kind, namespace, name), query=query)
        assert answer.code in (200, 202), answer

    async def patch(
        self, kind: str, name: str, patch: Any, namespace: str = "default", part: str = ""
    ) -> ServerResponse:
        answer = await self.server.ask(
            "PATCH",
            _path(kind, namespace, name) + (f"/{part}" if part else ""),
            patch,
            content_type="application/merge-patch+json",
        )
        assert answer.code == 200, answer
        return answer

    async def until(self, holds: Callable[[], Awaitable[Any]]) -> Any:
        """What `holds` gives once it gives something."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not (found := await holds()):
                await asyncio.sleep(0.005)
        return found

    async def until_gone(self, kind: str, name: str, namespace: str = "default") -> None:
        async def is_gone() -> bool:
            return await self.get(kind, name, namespace) is None

        await self.until(is_gone)


_PLURALS = {"Job": "jobs", "ResourceQuota": "resourcequotas", "DeviceClass": "deviceclasses"}
_CLUSTER_WIDE = ("Namespace", "Node", "DeviceClass")


def _path(kind: str, namespace: str, name: str = "") -> str:
    api_version, _, short = kind.rpartition("/")
    group, version = GroupVersion.parse(api_version or "v1")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    place = "" if short in _CLUSTER_WIDE else f"/namespaces/{namespace}"
    plural = _PLURALS.get(short, f"{short.lower()}s")
    return f"{root}{place}/{plural}" + (f"/{name}" if name else "")


def owned_by(
    *owners: dict[str, Any], block: bool | None = None, **changes: Any
) -> list[dict[str, Any]]:
    """References to these objects, perhaps not quite right."""
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **({} if block is None else {"blockOwnerDeletion": block}),
            **changes,
        }
        for owner in owners
    ]


def play(story: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        async with LocalServer() as server:
            await story(Cluster(server))

    asyncio.run(main())
