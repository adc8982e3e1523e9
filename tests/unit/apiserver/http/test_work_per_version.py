"""What the server does once per version of an object, and what a write does not touch."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import uuid4

import pytest

from allot.apiserver.kinds import pod as pod_kind
from allot.apiserver.watch_cache.codecs import RawCodec, TypedCodec
from allot.testing.servers import LocalServer

PODS: Final = "/api/v1/namespaces/default/pods"
API_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
POD: Final = {
    "metadata": {"name": "p", "labels": {"app": "a"}},
    "spec": {"containers": [{"name": "main", "image": "registry.example.com/main:1"}]},
}
CLAIM: Final = {
    "metadata": {"name": "c"},
    "spec": {
        "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "example.com"}}]}
    },
}
LABEL: Final = {"metadata": {"labels": {"a": "NUMBER"}}}
PHASE: Final = {"status": {"phase": "Running", "message": "NUMBER"}}

Work = Callable[[LocalServer], Awaitable[Any]]


def counted(monkeypatch: pytest.MonkeyPatch, prepare: Work, work: Work) -> Counter[str]:
    """How often stored bytes are decoded, objects encoded and specs of pods validated, by `work`."""
    counts: Counter[str] = Counter()

    def count(owner: Any, name: str, what: str) -> None:
        original = getattr(owner, name)

        def counting(*arguments: Any) -> Any:
            counts[what] += 1
            return original(*arguments)

        monkeypatch.setattr(owner, name, counting)

    async def run() -> None:
        async with LocalServer() as server:
            await prepare(server)
            await server.get(API_SERVICES, labelSelector="app=a")  # the server looks into them, too
            for codec in (RawCodec, TypedCodec):
                count(codec, "decode_stored", "decoded")
                count(codec, "encode", "encoded")
            count(pod_kind, "validate_pod_basics", "validated")
            count(pod_kind, "pod_warnings", "warned")
            await work(server)
            monkeypatch.undo()

    asyncio.run(run())
    return counts


async def patch(server: LocalServer, path: str, body: Any, number: int) -> None:
    kind = "application/merge-patch+json"
    filled = json.loads(json.dumps(body).replace("NUMBER", str(number)))
    answer = await server.ask("PATCH", path, filled, content_type=kind)
    assert answer.code == 200, answer.json


@pytest.mark.parametrize(
    ("place", "obj", "name", "change"),
    [
        pytest.param(PODS, POD, "p", LABEL, id="pod"),
        pytest.param(PODS, POD, "p/status", PHASE, id="pod-status"),
        pytest.param(CLAIMS, CLAIM, "c", LABEL, id="claim"),
    ],
)
def test_writes_decode_nothing_that_was_just_written(
    place: str, obj: Any, name: str, change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prepare(server: LocalServer) -> None:
        await server.post(place, obj)
        await patch(
            server, f"{place}/{name}", change, 0
        )  # reads other objects, such as the namespace

    async def work(server: LocalServer) -> None:
        for number in range(1, 6):
            await patch(server, f"{place}/{name}", change, number)
            await server.get(place, labelSelector="app=a")

    counts = counted(monkeypatch, prepare, work)

    assert counts["decoded"] == 0
    assert counts["encoded"] == 5
    assert counts["validated"] == 0, "the spec of the pod was validated on create"
    assert counts["warned"] == 0, "and warned about"


def test_a_new_spec_is_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    async def prepare(server: LocalServer) -> None:
        await server.post(PODS, POD)

    async def work(server: LocalServer) -> None:
        image = [{"name": "main", "image": f"registry.example.com/main:{uuid4()}"}]
        await patch(server, f"{PODS}/p", {"spec": {"containers": image}}, 0)

    counts = counted(monkeypatch, prepare, work)
    assert counts["validated"] == 1
    assert counts["warned"] == 0, "updates of pods have no warnings"
