"""What a request costs in calls of functions, with RBAC, managedFields and the audit log on.

Before the server had any of these a get took 173 calls, a create 538 to 1,060. Seconds are measured by
bench/apiserver/request_costs.py.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from types import FrameType
from typing import Any, Final

import msgspec
import pytest

from allot.apiserver.audit.auditor import Auditor
from allot.apiserver.audit.policy import AuditPolicy, AuditRule, Level
from allot.apiserver.auth.authentication import AUTHENTICATED, User
from allot.apiserver.watch_cache.representations import REPRESENTATIONS
from allot.client.asgi import CollectedAnswer, http_scope
from allot.client.transport import WITH_STATUS
from allot.testing.servers import LocalServer

MAPS: Final = "/api/v1/namespaces/default/configmaps"
CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PODS: Final = "/api/v1/namespaces/default/pods"
BINDING: Final = {
    "metadata": {"name": "alice"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "cluster-admin",
    },
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
}
SPECS: Final[Mapping[str, Mapping[str, Any]]] = {
    MAPS: {"data": {"key": "value"}},
    CLAIMS: {
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {
                            "deviceClassName": "gpu.example.com",
                            "selectors": [{"cel": {"expression": "device.driver == 'a'"}}],
                        },
                    }
                ]
            }
        }
    },
    PODS: {
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/main:1",
                    "env": [{"name": "A", "value": "b"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                }
            ]
        }
    },
}
HEADERS: Final = [
    (b"authorization", b"Bearer alice"),
    (b"user-agent", b"test/1.0"),
    (b"accept", b"application/json"),
]


class Lines:
    """A log in memory."""

    def __init__(self) -> None:
        self.text = b""

    def write(self, lines: bytes) -> None:
        self.text += lines

    def close(self) -> None:
        pass


def calls_of(
    method: str,
    path: str,
    body: Any = None,
    content_type: str = "json",
    query: bytes = b"",
    more: tuple[tuple[bytes, bytes], ...] = (),
) -> int:
    """The calls that a request takes: the least of a few equal ones after the first.

    The first fills caches and may find less to compare; background tasks of the server may run during any.
    """

    REPRESENTATIONS.discard(lambda _: True)  # of other tests: a full budget takes more calls

    async def run() -> int:
        lines = Lines()
        auditor = Auditor(
            AuditPolicy((AuditRule(Level.METADATA),)), lines, lambda: datetime.now(UTC)
        )
        users = {"alice": User("alice", groups=(AUTHENTICATED,))}
        async with LocalServer(users=users, auditor=auditor) as server:
            await server.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING)
            for place, spec in SPECS.items():
                for name in ("first", "p0", "p1", "p2", "p3"):
                    await server.post(place, {"metadata": {"name": name}, **spec})
            _, *counts = [await ask(server, number) for number in range(4)]
            auditor.close()
        assert lines.text.count(b"\n") >= 2 * 4
        return min(counts)

    async def ask(server: LocalServer, number: int) -> int:
        count = 0

        def profile(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal count
            if event in ("call", "c_call"):
                count += 1

        content = (
            b"" if body is None else msgspec.json.encode(body).replace(b"NUMBER", b"%d" % number)
        )
        headers = [*HEADERS, (b"content-type", f"application/{content_type}".encode()), *more]
        place = path.replace("NUMBER", str(number))
        scope = http_scope(method, place, query, headers, content)
        answer = CollectedAnswer(content)
        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            await server.server.app(scope, answer.receive, answer.send)
        finally:
            sys.setprofile(before)
        assert answer.code in (200, 201), answer.body
        return count

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "bound"),
    [pytest.param(MAPS, 103, id="ConfigMap"), pytest.param(CLAIMS, 103, id="claim")],
)
def test_a_get(path: str, bound: int) -> None:
    assert calls_of("GET", f"{path}/first") <= bound


@pytest.mark.parametrize(
    ("path", "bound"),
    [
        pytest.param(MAPS, 293, id="ConfigMap"),
        pytest.param(CLAIMS, 261, id="claim"),
        pytest.param(PODS, 341, id="pod"),
    ],
)
def test_a_create(path: str, bound: int) -> None:
    body = {"metadata": {"generateName": "a-", "labels": {"app": "a"}}, **SPECS[path]}
    assert calls_of("POST", path, body) <= bound


@pytest.mark.parametrize(
    ("path", "bound"),
    [
        pytest.param(MAPS, 525, id="ConfigMap"),
        pytest.param(CLAIMS, 538, id="claim"),
        pytest.param(PODS, 574, id="pod"),
    ],
)
def test_a_merge_patch(path: str, bound: int) -> None:
    """Who owns what is compared here, which nothing did before."""
    body = {"metadata": {"annotations": {"number": "NUMBER"}}}
    assert calls_of("PATCH", f"{path}/first", body, "merge-patch+json") <= bound


ALLOCATION: Final = {
    "devices": {
        "results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "n", "device": "d"}]
    }
}
EVENT: Final = {
    "metadata": {"name": "e.NUMBER", "namespace": "default"},
    "type": "Normal",
    "reason": "Scheduled",
    "eventTime": "2026-01-01T00:00:00.123456Z",
    "action": "Binding",
    "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "pNUMBER"},
    "note": "Successfully assigned default/pNUMBER to n",
    "reportingController": "default-scheduler",
    "reportingInstance": "default-scheduler-vm",
}


@pytest.mark.parametrize(
    ("method", "path", "body", "bound"),
    [
        pytest.param(
            "PUT",
            f"{CLAIMS}/first",
            {"metadata": {"name": "first", "finalizers": ["example.com/NUMBER"]}, **SPECS[CLAIMS]},
            527,
            id="update-claim",
        ),
        pytest.param(
            "PUT",
            f"{CLAIMS}/first/status",
            {
                "metadata": {"name": "first"},
                **SPECS[CLAIMS],
                "status": {
                    "allocation": ALLOCATION,
                    "reservedFor": [{"resource": "pods", "name": "p", "uid": "NUMBER"}],
                },
            },
            561,
            id="update-claim-status",
        ),
        pytest.param(
            "POST",
            f"{PODS}/pNUMBER/binding",
            {"metadata": {"name": "pNUMBER"}, "target": {"kind": "Node", "name": "n"}},
            263,
            id="bind-pod",
        ),
        pytest.param(
            "POST",
            "/apis/events.k8s.io/v1/namespaces/default/events",
            EVENT,
            294,
            id="create-event",
        ),
    ],
)
def test_the_writes_of_a_scheduler(method: str, path: str, body: Any, bound: int) -> None:
    assert calls_of(method, path, body) <= bound


def test_an_allocation() -> None:
    """Of another claim each time, with its finalizer, as the scheduler does it."""
    name = "pNUMBER"
    result = {**ALLOCATION["devices"]["results"][0], "device": name}
    body = {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": name, "namespace": "default", "finalizers": ["example.com/a"]},
        **SPECS[CLAIMS],
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
        },
    }
    more = ((WITH_STATUS.encode(), b"true"),)
    assert calls_of("PUT", f"{CLAIMS}/{name}", body, more=more) <= 620


def test_names_of_claims_that_are_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the controller does it that makes the claims."""
    spec = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}
    monkeypatch.setitem(SPECS, PODS, {"spec": {**SPECS[PODS]["spec"], **spec}})
    claims = [{"name": "c", "resourceClaimName": "c-NUMBER"}]
    body = {
        "metadata": {"name": "pNUMBER", "namespace": "default"},
        "status": {"resourceClaimStatuses": claims},
        "apiVersion": "v1",
        "kind": "Pod",
    }
    path, query = f"{PODS}/pNUMBER/status", b"fieldManager=test&force=true"
    assert calls_of("PATCH", path, body, "apply-patch+yaml", query) <= 346


def test_a_status_patch_of_a_pod() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "NUMBER"}
    body = {"status": {"conditions": [condition]}}
    path = f"{PODS}/first/status"
    assert calls_of("PATCH", path, body, "strategic-merge-patch+json") <= 864


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        pytest.param("pNUMBER", 476, id="once"),  # as the names of its claims, for each pod
        pytest.param("first", 1519, id="again"),
    ],
)
def test_a_status_of_a_pod_that_is_applied(name: str, bound: int) -> None:
    condition = {"type": "example.com/Ready", "status": "False", "message": "NUMBER"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "status": {"conditions": [condition]},
    }
    query = b"fieldManager=test&force=true"
    assert calls_of("PATCH", f"{PODS}/{name}/status", body, "apply-patch+yaml", query) <= bound
