"""Who may do what, as kube-apiserver v1.38 answered: every verb, kind and kind of caller, and the words of refusals.

`access_steps.py` has the requests and says how they were recorded.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

from allot.client.asgi import CollectedAnswer, http_scope
from allot.testing.servers import TOKEN, LocalServer
from tests.conformance.access_steps import Seen, Step, all_steps, request_headers, seen

RECORDED = Path(__file__).parent / "data" / "access-recorded.json.gz"
NOT_COMPARED = {
    # Kubernetes asks NodeRestriction before an object is validated, we after it; these bodies are empty.
    ("matrix node", "POST", path)
    for path in (
        "/api/v1/nodes",
        "/api/v1/namespaces/a/pods",
        "/api/v1/namespaces/b/pods",
        "/apis/storage.k8s.io/v1/csinodes",
        "/apis/resource.k8s.io/v1/resourceslices",
        "/apis/certificates.k8s.io/v1/namespaces/a/podcertificaterequests",
        "/apis/certificates.k8s.io/v1/namespaces/b/podcertificaterequests",
    )
}


def test_answers_are_those_of_the_real_server() -> None:
    asyncio.run(compare())


async def compare() -> None:
    recorded = [Seen(*each) for each in json.loads(gzip.decompress(RECORDED.read_bytes()))]
    different = []
    async with LocalServer() as server:
        for step, expected in zip(all_steps(), recorded, strict=True):
            found = seen(step, *await ask(server, step))
            if found != expected and (step.label, step.method, step.path) not in NOT_COMPARED:
                different.append((step, expected, found))

    assert different == []


async def ask(server: LocalServer, step: Step) -> tuple[int, Any]:
    body = b"" if step.body is None else json.dumps(step.body).encode()
    headers = [(name.encode(), value.encode()) for name, value in request_headers(step, TOKEN)]
    path, _, query = step.path.partition("?")
    answer = CollectedAnswer(body)
    scope = http_scope(step.method, path, query.encode(), headers, body)
    await server.server.app(scope, answer.receive, answer.send)
    try:
        return answer.code, json.loads(answer.body)
    except ValueError:
        return answer.code, {"message": answer.body.decode()}
