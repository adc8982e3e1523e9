"""What the server does after a definition changes: as much as that one asks for, however many others there are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.apiserver.registry import custom_definitions, definition_status
from allot.testing.servers import LocalServer

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "shapes.example.com"
LIMIT_SECONDS = 60


def a_definition(name: str, *short_names: str) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True}
    names = {"plural": f"{name}s", "singular": name, "kind": name.title()}
    return {
        "metadata": {"name": f"{name}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {**names, "shortNames": list(short_names)},
            "versions": [{**version, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }


async def conditions(server: LocalServer, name: str) -> dict[str, str]:
    found = await server.get(f"{DEFINITIONS}/{name}s.{GROUP}")
    return {each["type"]: each["status"] for each in found["status"]["conditions"] or ()}


async def wait_until_accepted(server: LocalServer, name: str, status: str = "True") -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        while (await conditions(server, name)).get("NamesAccepted") != status:
            await asyncio.sleep(0.01)


async def change_short_names(server: LocalServer, name: str, *short_names: str) -> None:
    changed = await server.ask(
        "PATCH",
        f"{DEFINITIONS}/{name}s.{GROUP}",
        {"spec": {"names": {"shortNames": list(short_names)}}},
        content_type="application/merge-patch+json",
    )
    assert changed.code == 200


def test_a_change_concerns_one_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 30
    looked_at: list[str] = []
    original = definition_status.with_status

    def counting(definition: Any, *rest: Any) -> Any:
        looked_at.append(definition.metadata.name)
        return original(definition, *rest)

    async def run() -> None:
        async with LocalServer() as server:
            for number in range(count):
                await server.post(DEFINITIONS, a_definition(f"shape{number}"))
                await wait_until_accepted(server, f"shape{number}")
            monkeypatch.setattr(custom_definitions, "with_status", counting)
            await server.post(DEFINITIONS, a_definition("late", "lt"))
            await wait_until_accepted(server, "late")
            await change_short_names(server, "late", "x")
            path = f"/apis/{GROUP}/v1"
            async with asyncio.timeout(LIMIT_SECONDS):
                while ["x"] not in [
                    each.get("shortNames") for each in (await server.get(path))["resources"]
                ]:
                    await asyncio.sleep(0.01)

    asyncio.run(run())
    # The one before it may still have been on its way.
    assert {name for name in looked_at if "late" not in name} <= {f"shape{count - 1}s.{GROUP}"}
    assert 0 < len(looked_at) < count / 2


def test_a_name_that_becomes_free_is_given_to_another_definition() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(DEFINITIONS, a_definition("circle", "c"))
            await wait_until_accepted(server, "circle")
            await server.post(DEFINITIONS, a_definition("cube", "c"))
            await wait_until_accepted(server, "cube", "False")
            await change_short_names(server, "circle", "o")
            await wait_until_accepted(server, "cube")

    asyncio.run(run())


def test_of_two_definitions_that_come_at_once_one_gets_the_name() -> None:
    async def run() -> list[str]:
        async with LocalServer() as server:
            await asyncio.gather(
                server.post(DEFINITIONS, a_definition("circle", "c")),
                server.post(DEFINITIONS, a_definition("cube", "c")),
            )
            async with asyncio.timeout(LIMIT_SECONDS):
                while True:
                    found = [await conditions(server, name) for name in ("circle", "cube")]
                    if all("NamesAccepted" in each for each in found):
                        return sorted(each["NamesAccepted"] for each in found)
                    await asyncio.sleep(0.01)

    assert asyncio.run(run()) == ["False", "True"]
