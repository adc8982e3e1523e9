"""Tolerations that every pod gets are looked for when its spec is written, not with its status or its binding."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from allot.apiserver.admission import default_toleration_seconds
from allot.apiserver.defaults.pods import tolerate_short_outages
from allot.testing.servers import LocalServer

PODS: Final = "/api/v1/namespaces/default/pods"
POD: Final = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
BINDING: Final = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
MERGE: Final = "application/merge-patch+json"


@pytest.mark.parametrize(
    ("method", "path", "body", "count"),
    [
        pytest.param("PATCH", "p", {"metadata": {"labels": {"a": "b"}}}, 1, id="pod"),
        pytest.param("PATCH", "p/status", {"status": {"message": "a"}}, 0, id="status"),
        pytest.param("POST", "p/binding", BINDING, 0, id="bind"),
    ],
)
def test_they_are_added_once(
    method: str, path: str, body: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []

    def counting(spec: Any) -> Any:
        looked.append(spec)
        return tolerate_short_outages(spec)

    async def run() -> None:
        monkeypatch.setattr(default_toleration_seconds, "tolerate_short_outages", counting)
        async with LocalServer() as server:
            await server.post(PODS, POD)
            looked.clear()
            content_type = MERGE if method == "PATCH" else "application/json"
            answer = await server.ask(method, f"{PODS}/{path}", body, content_type=content_type)
            assert answer.code in (200, 201), answer.json
            pod = await server.get(f"{PODS}/p")
        assert len(looked) == count
        assert len(pod["spec"]["tolerations"]) == 2

    asyncio.run(run())
