"""CustomResourceDefinitions and custom resources answer as kube-apiserver v1.38 did."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any
from urllib.parse import parse_qsl

import pytest

from allot.features import DEFAULTS
from allot.rules import RuleSet
from allot.testing.servers import LocalServer
from tests.custom_resources.comparing import comparable
from tests.custom_resources.recording import AGENT, RECORDED, encoded
from tests.custom_resources.scenarios import SCENARIOS
from tests.custom_resources.steps import Step

ANSWERS: dict[str, list[dict[str, Any]]] = json.loads(gzip.decompress(RECORDED.read_bytes()))
GROUP, NAMESPACE = "g.example.com", "ns-of-scenario"
WAIT_SECONDS = 60.0


async def answer_of(server: LocalServer, step: Step) -> dict[str, Any]:
    """The answer to a step; one that waits for something is asked again until it is there."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            found = await _asked(server, step)
            if not step.until or step.until in found.pop("text"):
                return found
            await asyncio.sleep(0.01)


async def _asked(server: LocalServer, step: Step) -> dict[str, Any]:
    path = step.path.replace("GRP", GROUP).replace("/NS/", f"/{NAMESPACE}/")
    path, _, query = path.partition("?")
    body = encoded(step.body)
    if body is not None:
        body = body.replace(b"GRP", GROUP.encode()).replace(b'"NS"', f'"{NAMESPACE}"'.encode())
    answer = await server.ask(
        step.method,
        path,
        body,
        query=dict(parse_qsl(query, keep_blank_values=True)),
        headers={"user-agent": AGENT, "accept": step.accept},
        content_type=step.type,
    )
    text = answer.content.decode(errors="replace").replace(GROUP, "GRP").replace(NAMESPACE, "NS")
    try:
        document = json.loads(text)
    except ValueError:
        document = text
    compact = "".join(
        json.dumps(document, separators=(",", ":"), sort_keys=order) for order in (False, True)
    )
    warnings = [each.replace(GROUP, "GRP") for each in answer.header("warning")]
    return {"code": answer.code, "body": document, "warnings": warnings, "text": compact + text}


def shown(answer: dict[str, Any]) -> dict[str, Any]:
    return comparable(answer["code"], answer["body"], answer["warnings"])


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_are_those_of_kubernetes(name: str) -> None:
    async def run() -> None:
        async with LocalServer(gates=DEFAULTS.with_rules(RuleSet.V1_38)) as server:
            await server.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            for number, (step, expected) in enumerate(
                zip(SCENARIOS[name], ANSWERS[name], strict=True)
            ):
                found = await answer_of(server, step)
                assert shown(found) == shown(expected), (
                    f"step {number}: {step.method} {step.path} {json.dumps(step.body)[:300]}"
                )

    asyncio.run(run())
