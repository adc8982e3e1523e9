"""Policies and webhooks, as kube-apiserver v1.38 answered: allowed, denied, warned, mutated, and bad configurations.

`admission_cases.py` and its neighbours have the cases, `admission_steps.py` says how they were recorded.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

from allot.client.asgi import CollectedAnswer, http_scope
from allot.testing.servers import TOKEN, LocalServer
from tests.conformance.admission_cases import Request
from tests.conformance.admission_steps import Answer, headers_of, play
from tests.conformance.admission_webhook import webhook_server

RECORDED = Path(__file__).parent / "data" / "admission-recorded.json.gz"


def test_answers_are_those_of_the_real_server() -> None:
    asyncio.run(compare())


async def compare() -> None:
    recorded = [Answer(*each) for each in json.loads(gzip.decompress(RECORDED.read_bytes()))]
    async with LocalServer() as server:
        with webhook_server() as hooks:
            found = await play(lambda request: ask(server, request), hooks, lambda: None)

    different = [
        (number, expected, ours)
        for number, (expected, ours) in enumerate(zip(recorded, found, strict=True))
        if expected != ours
    ]
    assert different == []


async def ask(server: LocalServer, request: Request) -> tuple[int, Any, list[str]]:
    body = b"" if request.body is None else json.dumps(request.body).encode()
    headers = [(name.encode(), value.encode()) for name, value in headers_of(request, TOKEN)]
    path, _, query = request.path.partition("?")
    answer = CollectedAnswer(body)
    scope = http_scope(request.method, path, query.encode(), headers, body)
    await server.server.app(scope, answer.receive, answer.send)
    warnings = [value.decode() for name, value in answer.headers if name == b"warning"]
    try:
        return answer.code, json.loads(answer.body), warnings
    except ValueError:
        return answer.code, answer.body.decode(), warnings
