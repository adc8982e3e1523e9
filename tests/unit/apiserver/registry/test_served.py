"""Lookups of what is served take as long with thousands of versions as with one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.apiserver.registry.served import BY_DEFAULT, ServedResources
from allot.testing.servers import LocalServer

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def definition(versions: int) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "metadata": {"name": "bombs.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "bombs", "kind": "Bomb"},
            "versions": [
                {"name": f"v{index + 1}", "served": True, "storage": not index, "schema": schema}
                for index in range(versions)
            ],
        },
    }


def test_discovery_looks_at_every_resource_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    versions = ServedResources.versions

    def counted(self: ServedResources, resource: Any) -> tuple[str, ...]:
        nonlocal looked
        looked += 1
        return versions(self, resource)

    async def run() -> None:
        async with LocalServer() as server:
            await server.post(DEFINITIONS, definition(100))
            path = "/apis/example.com/v100"
            while (await server.ask("GET", path)).code != 200:
                await asyncio.sleep(0.01)
            monkeypatch.setattr(ServedResources, "versions", counted)
            answer = await server.ask("GET", "/apis", headers={"accept": AGGREGATED})
            (group,) = [
                item for item in answer.json["items"] if item["metadata"]["name"] == "example.com"
            ]
            assert [each["version"] for each in group["versions"]][:2] == ["v100", "v99"]
            assert len(group["versions"]) == 100
            assert looked < 5 * 200  # of which 100 are those of the definition

    asyncio.run(run())


def test_lookups() -> None:
    assert BY_DEFAULT.versions_of("resource.k8s.io")[0] == "v1"
    assert BY_DEFAULT.versions_of("missing.example.com") == ()
    found = BY_DEFAULT.resources_in(GroupVersion("batch", "v1"))
    assert [resource.plural for resource in found] == ["cronjobs", "jobs"]
    assert BY_DEFAULT.find_kind(GroupVersionKind("batch", "v1", "Job")) is found[1]
    assert BY_DEFAULT.find_kind(GroupVersionKind("batch", "v9", "Job")) is None
    assert BY_DEFAULT.resources_in(GroupVersion("batch", "v9")) == []
