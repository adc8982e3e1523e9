"""A patch decodes only what it touches, with the same result as if the whole object were decoded."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, Final

import pytest

from allot.apiserver.http import patch_bodies
from allot.apiserver.registry.patches import touched_parts
from allot.testing.servers import LocalServer

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON: Final = "application/json-patch+json"
POD: Final = {
    "metadata": {"name": "x", "labels": {"app": "a"}, "finalizers": ["example.com/f"]},
    "spec": {
        "containers": [{"name": "main", "image": "registry.example.com/main:1"}],
        "activeDeadlineSeconds": 60,
    },
}
CLAIM: Final = {
    "metadata": {"name": "x"},
    "spec": {
        "devices": {
            "requests": [{"name": "gpu", "exactly": {"deviceClassName": "example.com"}}],
            "config": [
                {"opaque": {"driver": "d.example.com", "parameters": {"b": 1, "a": {"c": [1]}}}}
            ],
        }
    },
}
MAP: Final = {"metadata": {"name": "x"}, "data": {"a": "b"}}
NAMESPACE: Final = {"metadata": {"name": "x"}}
EVENT: Final = {
    "metadata": {"name": "x", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "A",
}
V1: Final = "/api/v1/namespaces/default"
DRA: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
BETA: Final = "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims"

CASES: Final = [
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"metadata": {"labels": {"b": "c"}}}, id="labels"),
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"metadata": {"labels": None}}, id="no-labels"),
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"metadata": None}, id="no-metadata"),
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"metadata": {"nonsense": 1}}, id="unknown"),
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"metadata": {"labels": 1}}, id="bad-type"),
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"nonsense": {"a": 1}}, id="unknown-part"),
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"kind": "Node"}, id="another-kind"),
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"apiVersion": "v1", "kind": "Pod"}, id="type"),
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"spec": {"activeDeadlineSeconds": 9}}, id="spec"),
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"spec": {"nodeName": "n"}}, id="forbidden"),
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"metadata": {"managedFields": []}}, id="reset"),
    pytest.param(f"{V1}/pods", POD, "x", MERGE, {"metadata": {"uid": "other"}}, id="other-uid"),
    pytest.param(
        f"{V1}/pods", POD, "x", STRATEGIC,
        {"spec": {"containers": [{"name": "main", "image": "i:2"}]}}, id="strategic-spec",
    ),
    pytest.param(
        f"{V1}/pods", POD, "x", STRATEGIC,
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/f"]}}, id="directive",
    ),
    pytest.param(f"{V1}/pods", POD, "x", STRATEGIC, {"$patch": "replace"}, id="replace"),
    pytest.param(
        f"{V1}/pods", POD, "x/status", STRATEGIC,
        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
        id="status",
    ),
    pytest.param(
        f"{V1}/pods", POD, "x/status", MERGE,
        {"status": {"podIPs": [], "message": None}, "spec": {"nodeName": "n"}}, id="status-and-spec",
    ),
    pytest.param(
        f"{V1}/pods", POD, "x", JSON,
        [
            {"op": "test", "path": "/spec/activeDeadlineSeconds", "value": 60},
            {"op": "add", "path": "/metadata/annotations", "value": {"a~b": "c"}},
        ],
        id="operations",
    ),
    pytest.param(
        f"{V1}/pods", POD, "x", JSON,
        [{"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"}], id="copy",
    ),
    pytest.param(f"{V1}/pods", POD, "x", JSON, [{"op": "remove", "path": "/status/a"}], id="misfit"),
    pytest.param(f"{V1}/pods", POD, "x", JSON, [{"op": "remove", "path": ""}], id="root"),
    pytest.param(f"{V1}/configmaps", MAP, "x", MERGE, {"data": {"a": None, "c": "d"}}, id="data"),
    pytest.param(f"{V1}/configmaps", MAP, "x", MERGE, {"data": None}, id="no-data"),
    pytest.param(
        "/api/v1/namespaces", NAMESPACE, "x", MERGE, {"metadata": {"labels": None}},
        id="defaults-in-metadata",
    ),
    pytest.param(
        f"{V1}/events", EVENT, "x", MERGE, {"metadata": {"labels": {"a": "b"}}}, id="event"
    ),
    pytest.param(DRA, CLAIM, "x", MERGE, {"metadata": {"labels": {"a": "b"}}}, id="claim"),
    pytest.param(DRA, CLAIM, "x", MERGE, {"spec": {"devices": {"config": []}}}, id="claim-spec"),
    pytest.param(DRA, CLAIM, "x", MERGE, {"spec": {"nonsense": 1}}, id="claim-unknown"),
    pytest.param(
        DRA, CLAIM, "x/status", MERGE,
        {
            "status": {
                "allocation": {
                    "devices": {
                        "results": [
                            {"request": "gpu", "driver": "d", "pool": "p", "device": "d"}
                        ]
                    }
                },
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
            }
        },
        id="allocation",
    ),
    pytest.param(BETA, CLAIM, "x", MERGE, {"metadata": {"labels": {"a": "b"}}}, id="v1beta1"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "obj", "name", "content_type", "body"), CASES)
def test_same_answers(
    place: str, obj: Any, name: str, content_type: str, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answers() -> list[Any]:
        found = []
        async with LocalServer() as server:
            created = obj if place != BETA else {**obj, "spec": {"devices": {}}}
            await server.post(place, created)
            for _ in range(2):  # the second time it changes nothing, or something that was patched
                answer = await server.ask(
                    "PATCH", f"{place}/{name}", body, content_type=content_type
                )
                found += [answer.code, answer.header("warning"), _comparable(answer.json)]
            found.append(_comparable(await server.get(f"{place}/x")))
        return found

    by_parts = asyncio.run(answers())
    monkeypatch.setattr(patch_bodies, "touched_parts", lambda _format, _patch: None)
    whole = asyncio.run(answers())

    assert by_parts == whole


def _comparable(document: Any) -> Any:
    """Without what differs between two servers."""
    return json.loads(_unequal.sub("X", json.dumps(document)))


_unequal: Final = re.compile(r"[0-9a-f]{8}-[-0-9a-f]{27}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
"""uids and times."""


@pytest.mark.parametrize(
    ("format_", "patch", "parts"),
    [
        ("merge", {"metadata": {}, "status": None}, {"metadata", "status"}),
        ("strategic", {"$retainKeys": ["spec"], "spec": {}}, None),
        ("json", [{"op": "move", "from": "/spec/a", "path": "/status/a"}], {"spec", "status"}),
        ("json", [{"op": "replace", "path": "", "value": {}}], None),
        ("json", [{"op": "remove", "path": "/me~0ta"}], None),
        ("json", [{"op": "remove"}], None),
        ("merge", ["spec"], None),
    ],
)
def test_touched_parts(format_: str, patch: Any, parts: set[str] | None) -> None:
    assert touched_parts(format_, json.dumps(patch).encode()) == parts
