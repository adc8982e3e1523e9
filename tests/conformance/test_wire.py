"""Kinds without objects, media types, patches and quantities, as kube-apiserver v1.38 answered.

`wire_steps.py` has the requests and says how they were recorded.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

from allot.client.asgi import CollectedAnswer, http_scope
from allot.features import DEFAULTS
from allot.rules import RuleSet
from allot.testing.servers import TOKEN, LocalServer
from tests.conformance.wire_steps import Names, Seen, Step, all_steps, headers_of, seen

RECORDED = Path(__file__).parent / "data" / "wire-recorded.json.gz"


def test_answers_are_those_of_the_real_server() -> None:
    asyncio.run(compare())


async def compare() -> None:
    recorded = [Seen(*each) for each in json.loads(gzip.decompress(RECORDED.read_bytes()))]
    different = []
    async with LocalServer(gates=DEFAULTS.with_rules(RuleSet.V1_38)) as server:
        for step, expected in zip(all_steps(), recorded, strict=True):
            found = await ask(server, step)
            if found != expected:
                different.append((step, expected, found))

    assert different == []


async def ask(server: LocalServer, step: Step, names: Names | None = None) -> Seen:
    names = names or Names()
    body = names.body(step) or b""
    headers = [(name.encode(), value.encode()) for name, value in headers_of(step, TOKEN).items()]
    path, _, query = step.path.partition("?")
    answer = CollectedAnswer(body)
    scope = http_scope(step.method, path, query.encode(), headers, body)
    await server.server.app(scope, answer.receive, answer.send)
    shown = [(name.decode(), value.decode()) for name, value in answer.headers]
    names.learn(answer.body)
    return seen(answer.code, shown, answer.body)
