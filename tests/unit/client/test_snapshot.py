"""A cluster at one moment: only lists, and whatever can be read of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from allot.api.identities import ObjectKey
from allot.client import resources
from allot.client.client import Client
from allot.client.errors import ApiStatusError, TransportError
from allot.client.retries import NEVER
from allot.client.snapshot import Snapshot
from allot.client.snapshot_lists import take_snapshot
from allot.client.transport import JSON, Query, Response
from tests.unit.client.fakes import ScriptedTransport, answer, status

POD = {"metadata": {"name": "p", "namespace": "default", "uid": "1"}}
CLAIM = {"metadata": {"name": "c", "namespace": "default", "uid": "2"}}


class Paths(ScriptedTransport):
    """Answers by path."""

    def __init__(self, answers: Mapping[str, Response | Exception]) -> None:
        super().__init__()
        self._answers = answers

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        self.answers = [self._answers.get(path, answer(404))]
        return await super().request(method, path, query, body, content_type, headers)


def listed(*items: dict[str, Any]) -> Response:
    return answer(200, {"metadata": {"resourceVersion": "7"}, "items": list(items)})


FORBIDDEN = answer(403, status(403, "Forbidden"))
PODS = "/api/v1/pods"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"


def taken(
    answers: Mapping[str, Response | Exception],
    *wanted: resources.Resource[Any],
    namespace: str = "",
) -> tuple[Snapshot, list[str]]:
    """The snapshot, and what was asked for."""
    transport = Paths(answers)
    client = Client(transport, retry=NEVER)
    snapshot = asyncio.run(take_snapshot(client, wanted, namespace))
    return snapshot, [f"{request.method} {request.path}" for request in transport.requests]


def test_only_lists_are_asked_for() -> None:
    snapshot, asked = taken(
        {PODS: listed(POD), CLAIMS: listed(CLAIM)}, resources.PODS, resources.RESOURCE_CLAIMS
    )

    assert sorted(asked) == [f"GET {PODS}", f"GET {CLAIMS}"]
    assert [pod.key for pod in snapshot.of(resources.PODS)] == [ObjectKey("default", "p")]
    found = snapshot.get(resources.RESOURCE_CLAIMS, ObjectKey("default", "c"))
    assert found is not None
    assert found.metadata.uid == "2"
    assert snapshot.unread == {}


def test_an_older_version_is_as_good() -> None:
    older = CLAIMS.replace("/v1/", "/v1beta1/")
    snapshot, _ = taken({older: listed(CLAIM)}, resources.RESOURCE_CLAIMS)

    assert len(snapshot.of(resources.RESOURCE_CLAIMS)) == 1
    assert snapshot.unread == {}


def test_kinds_the_server_does_not_serve_are_noted() -> None:
    snapshot, _ = taken({PODS: listed(POD)}, resources.PODS, resources.DEVICE_TAINT_RULES)

    assert snapshot.unread == {resources.DEVICE_TAINT_RULES: "the server does not have them"}
    assert len(snapshot.of(resources.PODS)) == 1


def test_lists_forbidden_cluster_wide_are_tried_in_the_namespace() -> None:
    answers = {
        PODS: FORBIDDEN,
        "/api/v1/namespaces/default/pods": listed(POD),
        CLAIMS: FORBIDDEN,
        "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims": FORBIDDEN,
        "/api/v1/nodes": FORBIDDEN,
    }
    snapshot, _ = taken(
        answers,
        resources.PODS,
        resources.RESOURCE_CLAIMS,
        resources.NODES,
        namespace="default",
    )

    assert len(snapshot.of(resources.PODS)) == 1
    assert snapshot.unread == {
        resources.PODS: "only those in namespace default: 403 Forbidden",
        resources.RESOURCE_CLAIMS: "403 Forbidden",
        resources.NODES: "403 Forbidden",
    }


@pytest.mark.parametrize(
    "trouble", [TransportError("connection refused", was_sent=False), answer(401, status(401))]
)
def test_a_server_that_does_not_answer_is_an_error(trouble: Response | Exception) -> None:
    with pytest.raises((TransportError, ApiStatusError)):
        taken({PODS: trouble, CLAIMS: listed()}, resources.PODS, resources.RESOURCE_CLAIMS)
