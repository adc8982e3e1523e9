"""managedFields and server-side apply answer as kube-apiserver v1.38 did."""

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
from tests.apply.comparing import comparable
from tests.apply.recording import RECORDED, encoded
from tests.apply.scenarios import SCENARIOS, Step

ANSWERS: dict[str, list[dict[str, Any]]] = json.loads(gzip.decompress(RECORDED.read_bytes()))
NAMESPACE = "ns-of-scenario"


async def ask(server: LocalServer, step: Step) -> tuple[int, Any]:
    path, _, query = step.path.replace("/NS/", f"/{NAMESPACE}/").partition("?")
    body = encoded(step.body)
    if body is not None:
        body = body.replace(b'"NS"', f'"{NAMESPACE}"'.encode())
    answer = await server.ask(
        step.method,
        path,
        body,
        query=dict(parse_qsl(query)),
        headers={"user-agent": step.agent},
        content_type=step.type,
    )
    return answer.code, json.loads(answer.content.decode().replace(NAMESPACE, "NS"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_are_those_of_kubernetes(name: str) -> None:
    async def run() -> None:
        async with LocalServer(gates=DEFAULTS.with_rules(RuleSet.V1_38)) as server:
            body = {"metadata": {"name": NAMESPACE}}
            await server.post("/api/v1/namespaces", body)
            for number, (step, expected) in enumerate(
                zip(SCENARIOS[name], ANSWERS[name], strict=True)
            ):
                found = comparable(*await ask(server, step))
                wanted = comparable(expected["code"], expected["body"])
                if step.method == "DELETE" or wanted == {"code": 422}:
                    continue  # tested elsewhere
                assert found == wanted, f"step {number}: {step.method} {step.path}"

    asyncio.run(run())
