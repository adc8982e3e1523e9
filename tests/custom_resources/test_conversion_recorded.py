"""Definitions with a conversion webhook, compared with what a kube-apiserver answers."""

from __future__ import annotations

import asyncio
import json
import re
from functools import cache
from typing import Any

import pytest

from allot.testing.servers import LocalServer
from tests.custom_resources.conversion_recording import (
    CONVERSIONS,
    PATHS,
    RECORDED,
    plain,
    told,
    validated,
)
from tests.custom_resources.conversion_webhook import STEPS, ConversionServer, in_v1
from tests.custom_resources.steps import CRDS
from tests.custom_resources.test_conversion_webhooks import GROUP, V1, V2, ask, here, play

LOCATED = ' (spec.conversion.webhook.clientConfig.caBundle: "!!")'
"""What allot adds to an error (rule LocatedErrors)."""


@cache
def recorded() -> dict[str, Any]:
    """What a kube-apiserver answers."""
    answers: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return answers


def test_the_review_is_what_kubernetes_sends() -> None:
    async def story(server: LocalServer, hook: ConversionServer) -> None:
        await server.post(V1, here(in_v1()))
        await server.get(f"{V2}/w")
        found = json.loads(json.dumps(plain(hook.reviews[0])).replace(GROUP, "GRP"))
        wanted = recorded()["review"]
        for each in (found, wanted):
            (sent,) = each["review"]["request"]["objects"]
            del sent["metadata"]["managedFields"], sent["metadata"]["namespace"]

        assert found == wanted

    play(story)


@pytest.mark.parametrize("name", CONVERSIONS)
def test_a_definition_is_validated_as_by_kubernetes(name: str) -> None:
    async def run() -> None:
        async with LocalServer() as server:
            body = here(validated(name))
            answer = await server.ask("POST", CRDS, body, query={"dryRun": "All"})
            message = answer.json.get("message", "").replace(GROUP, "GRP")
            found = [answer.code, message.removesuffix(LOCATED)]

        assert found == recorded()["validation"][name]

    asyncio.run(run())


@pytest.mark.parametrize("path", PATHS)
def test_answers_of_a_webhook_are_checked_as_by_kubernetes(path: str) -> None:
    async def story(server: LocalServer, hook: ConversionServer) -> None:
        await server.post(V1, here(in_v1()))
        for name in STEPS:
            answer = await ask(server, name)
            wanted = recorded()["answers"][path].get(name)
            if wanted is not None:
                found = told({"code": answer.code, "body": answer.json})
                assert _comparable(found) == _comparable(wanted), name

    play(story, path)


_STORAGE_ERROR = re.compile(
    r"((Internal error occurred|failed to read one or more \S+ from the storage): "
    r"StorageError: .* AdditionalErrorMsg: )?"
    r"object not decodable revision=\d+: "
)


def _comparable(answer: Any) -> Any:
    """An answer without managed fields, and without the words of another store."""
    code, shown = answer
    if isinstance(shown, str):
        text = _STORAGE_ERROR.sub("", shown)
        return [code, text.replace(GROUP, "GRP").replace("default !=", "NS !=")]
    for each in (shown, *shown.get("items", ())):
        each.get("metadata", {}).pop("managedFields", None)
    text = json.dumps(shown).replace(GROUP, "GRP")
    return [code, json.loads(text.replace('"namespace": "default"', '"namespace": "NS"'))]
