"""Laws: whatever is sent as a definition or as an object, the server answers, and never by mistake."""

from __future__ import annotations

import asyncio
import copy
import random
from typing import Any

from allot.testing.servers import LocalServer
from tests.custom_resources.definitions import REQUESTS
from tests.custom_resources.scenarios import KITCHEN, RULED
from tests.custom_resources.steps import CRDS
from tests.custom_resources.test_stories import GROUP, WIDGETS, define, widget, widgets

STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**70, 1.5, "", "x", "é\x00", [], {}, [None], [[]], {"": None}, {"a": {"b": []}},
)  # fmt: skip


def mutated(document: Any, chooser: random.Random) -> Any:
    """A copy with a few values that do not belong there."""
    changed = copy.deepcopy(document)
    for _ in range(chooser.randint(1, 3)):
        place = changed
        while isinstance(place, dict | list) and place:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = chooser.choice(list(keys))
            inner = place[key]
            if not isinstance(inner, dict | list) or not inner or chooser.random() < 0.2:
                place[key] = copy.deepcopy(chooser.choice(STRANGE))
                break
            place = inner
    return changed


def test_no_definition_is_answered_with_a_mistake() -> None:
    async def run() -> None:
        chooser = random.Random(1)  # noqa: S311 - the same in every run
        async with LocalServer() as server:
            for document in list(REQUESTS.values()) * 3:
                body = mutated(document, chooser)
                answer = await server.ask("POST", CRDS, body)

                assert answer.code in (201, 400, 409, 422), (answer, body)
            await server.get("/openapi/v3")
            await server.get("/apis")
            answer = await server.ask("DELETE", CRDS)

            assert answer.code == 200

    asyncio.run(run())


def test_no_object_is_answered_with_a_mistake() -> None:
    async def run() -> None:
        chooser = random.Random(2)  # noqa: S311 - the same in every run
        schema = copy.deepcopy(KITCHEN)
        schema["properties"]["spec"]["properties"] |= RULED["properties"]["spec"]["properties"]
        names = list(schema["properties"]["spec"]["properties"])
        async with LocalServer() as server:
            await define(server, widgets(schema, subresources={"status": {}}))
            made = await server.ask("POST", WIDGETS, widget("first"))
            assert made.code == 201, made
            for number in range(400):
                spec = {
                    name: copy.deepcopy(chooser.choice(STRANGE))
                    for name in chooser.sample(names, chooser.randint(0, 5))
                }
                body = mutated({**widget(f"w{number}"), "spec": spec}, chooser)
                created = await server.ask("POST", WIDGETS, body, query={"dryRun": "All"})
                patched = await server.ask(
                    "PATCH",
                    f"{WIDGETS}/first",
                    {"spec": spec, "status": chooser.choice(STRANGE)},
                    content_type="application/merge-patch+json",
                )
                applied = await server.ask(
                    "PATCH",
                    f"{WIDGETS}/first",
                    {**widget("first"), "spec": spec, "apiVersion": f"{GROUP}/v1"},
                    content_type="application/apply-patch+yaml",
                    query={"fieldManager": "m", "force": "true"},
                )

                assert created.code in (201, 400, 422), (created, body)
                assert patched.code in (200, 400, 422), (patched, spec)
                assert applied.code in (200, 400, 422), (applied, spec)

    asyncio.run(run())


def test_two_servers_of_one_store_serve_the_same_kinds() -> None:
    async def run() -> None:
        async with LocalServer() as one, LocalServer(one.store) as other:
            await define(one, widgets())
            made = await one.post(WIDGETS, widget("w"))
            async with asyncio.timeout(60):
                while (await other.ask("GET", f"{WIDGETS}/w")).code != 200:
                    await asyncio.sleep(0.01)
            found = await other.get(f"{WIDGETS}/w")
            await other.ask("DELETE", f"{CRDS}/widgets.{GROUP}")
            async with asyncio.timeout(60):
                while (await one.ask("GET", WIDGETS)).code != 404:
                    await asyncio.sleep(0.01)

        assert found == made

    asyncio.run(run())
