"""Many deletions in a namespace with many quotas. Counted in quotas that are examined and queued."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.api.core import ResourceQuota
from allot.client.client import Client
from allot.client.discovery import ServedKind, discover
from allot.client.event_recorder import EventRecorder
from allot.client.in_process import InProcessTransport
from allot.client.informer import InformerFactory
from allot.client.metadata import Metadata, MetadataObject
from allot.client.resources import RESOURCE_QUOTAS
from allot.controllers.controller import ControllerContext
from allot.controllers.resource_quota import ResourceQuotaController, controller
from allot.quota.evaluators import object_count_resources
from allot.testing.servers import TOKEN, LocalServer

QUOTAS = 20


def a_quota(name: str, namespace: str, entry: str) -> ResourceQuota:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}
    return ResourceQuota({"metadata": metadata, "spec": {"hard": {entry: "5"}}})


def deleted(number: int, namespace: str) -> MetadataObject:
    metadata = Metadata(name=f"c-{number}", namespace=namespace, uid=f"u-{number}")
    return MetadataObject(metadata)


@pytest.mark.parametrize(("plural", "counted"), [("configmaps", QUOTAS), ("secrets", 0)])
def test_a_burst_of_deletions_examines_each_quota_once(
    plural: str, counted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined: list[None] = []

    def noted(names: Any) -> Any:
        examined.append(None)
        return object_count_resources(names)

    monkeypatch.setattr(controller, "object_count_resources", noted)

    async def main() -> None:
        client = Client(InProcessTransport(LocalServer().server.app, TOKEN))
        informers = InformerFactory(client)
        recorder = EventRecorder(client, "test", "test")
        quotas = ResourceQuotaController(ControllerContext(client, informers, recorder))
        for number in range(QUOTAS):
            quota = a_quota(f"q-{number}", "default", "count/configmaps")
            informers.informer(RESOURCE_QUOTAS).put(quota)
        while len(quotas.queue):
            quotas.queue.done(await quotas.queue.get())
        kind = await kind_of(client, plural)
        for number in range(1000):
            quotas._object_changed(kind, deleted(number, "default"), None)
            quotas._object_changed(kind, deleted(number, "other"), None)
        assert not examined
        async with asyncio.timeout(60):
            while len(examined) < QUOTAS:
                await asyncio.sleep(0.01)
        assert len(examined) == QUOTAS
        assert len(quotas.queue) == counted

    asyncio.run(main())


async def kind_of(client: Client, plural: str) -> ServedKind:
    return next(kind for kind in (await discover(client)).kinds if kind.plural == plural)
