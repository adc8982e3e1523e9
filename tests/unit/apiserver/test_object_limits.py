"""Objects that become much larger than the request: by defaults, or by patches of policies and webhooks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.apiserver import object_limits
from allot.testing.servers import LocalServer

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MAPS = "/api/v1/namespaces/default/configmaps"
FILLED = "/apis/example.com/v1/namespaces/default/filleds"


def definition(size: int) -> dict[str, Any]:
    """Objects with a list of items that each have so many bytes of defaults."""
    root = {"type": "object", "properties": {"spec": schema_with(size)}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": root},
    }
    names = {"plural": "filleds", "kind": "Filled"}
    return {
        "metadata": {"name": "filleds.example.com"},
        "spec": {
            "group": "example.com",
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def filled(items: int, name: str = "f0") -> dict[str, Any]:
    spec: dict[str, Any] = {"items": [{}] * items}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Filled",
        "metadata": {"name": name},
        "spec": spec,
    }


def schema_with(size: int) -> dict[str, Any]:
    item: dict[str, Any] = {"type": "object", "properties": {}}
    if size:
        item["properties"]["filled"] = {"type": "string", "default": "x" * size}
    return {"type": "object", "properties": {"items": {"type": "array", "items": item}}}


async def served(server: LocalServer) -> None:
    async with asyncio.timeout(60):
        while (await server.ask("GET", FILLED)).code != 200:
            await asyncio.sleep(0.01)


def test_defaults_that_add_too_much_are_refused() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(DEFINITIONS, definition(50_000))
            await served(server)
            await server.post(FILLED, filled(10))
            body = filled(100, "f1")
            refused = await server.ask("POST", FILLED, body)
            assert refused.code == 400
            assert "the defaults of the schema would add more than" in refused.json["message"]

    asyncio.run(run())


def test_defaults_that_came_later_leave_stored_objects_readable() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(DEFINITIONS, definition(0))
            await served(server)
            path = FILLED
            await server.post(path, filled(100))
            larger = [
                {
                    "op": "replace",
                    "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
                    "value": schema_with(50_000),
                }
            ]
            changed = await server.ask(
                "PATCH",
                f"{DEFINITIONS}/filleds.example.com",
                larger,
                content_type="application/json-patch+json",
            )
            assert changed.code == 200
            async with asyncio.timeout(60):
                while True:
                    tried = await server.ask("POST", path, filled(100, "f1"))
                    if tried.code == 400:
                        break
                    await server.ask("DELETE", f"{path}/f1")
                    await asyncio.sleep(0.01)
            (stored,) = (await server.get(path))["items"]
            assert stored["spec"] == {"items": [{}] * 100}
            assert (await server.ask("DELETE", f"{path}/f0")).code == 200

    asyncio.run(run())


def test_an_object_that_is_too_large_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_limits, "MAX_OBJECT", 40_000)

    async def run() -> None:
        async with LocalServer() as server:
            made = {"metadata": {"name": "m"}, "data": {"a": "x" * 500}}
            await server.post(MAPS, made)
            made["data"] = {"a": "x" * 40_000}
            for method, path in (("PUT", f"{MAPS}/m"), ("POST", MAPS)):
                refused = await server.ask(method, path, made)
                assert refused.code == 413
                assert refused.json["reason"] == "RequestEntityTooLarge"
                assert "limit is 40000" in refused.json["message"]

    asyncio.run(run())
