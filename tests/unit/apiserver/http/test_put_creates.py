"""A PUT that creates what it names needs the permission to create it, too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.apiserver.auth.authentication import AUTHENTICATED, User
from allot.testing.servers import LocalServer

BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/x"


def role(verbs: list[str]) -> dict[str, Any]:
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}
    return {"metadata": {"name": "leases"}, "rules": [rule]}


BINDING = {
    "metadata": {"name": "leases"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "leases"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
}


@pytest.mark.parametrize(
    ("verbs", "code"),
    [
        pytest.param(["update"], 403, id="update"),
        pytest.param(["create"], 403, id="create"),
        pytest.param(["create", "update"], 201, id="both"),
    ],
)
def test_permissions(verbs: list[str], code: int) -> None:
    async def scenario() -> None:
        users = {"alice": User("alice", groups=(AUTHENTICATED,))}
        async with LocalServer(users=users) as server:
            await server.post(f"{RBAC}/clusterroles", role(verbs))
            await server.post(f"{RBAC}/clusterrolebindings", BINDING)
            lease = {"metadata": {"name": "x", "namespace": "default"}, "spec": {}}
            as_alice = {"authorization": "Bearer alice"}
            answer = await server.ask("PUT", LEASE, lease, headers=as_alice)
            assert answer.code == code
            stored = await server.ask("GET", LEASE)
            assert stored.code == (200 if code == 201 else 404)

    asyncio.run(scenario())


def test_a_refusal_with_404_creates_nothing() -> None:
    """The role of an existing binding is gone: what is not found is not the binding."""

    async def scenario() -> None:
        users = {"alice": User("alice", groups=(AUTHENTICATED,))}
        async with LocalServer(users=users) as server:
            rules = [{"apiGroups": ["*"], "resources": ["rolebindings"], "verbs": ["update"]}]
            await server.post(
                f"{RBAC}/clusterroles", {"metadata": {"name": "leases"}, "rules": rules}
            )
            await server.post(f"{RBAC}/clusterrolebindings", BINDING)
            gone = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "gone"}
            binding = {"metadata": {"name": "x"}, "roleRef": gone}
            stored = await server.post(BINDINGS, binding)
            changed = stored | {"subjects": BINDING["subjects"]}
            as_alice = {"authorization": "Bearer alice"}
            for body in (changed, changed | {"metadata": {"name": "x"}}):
                answer = await server.ask("PUT", f"{BINDINGS}/x", body, headers=as_alice)
                assert answer.code == 404
                assert '"gone" not found' in answer.json["message"]

    asyncio.run(scenario())


@pytest.mark.parametrize("version", ["x", "-1", "9" * 30])
def test_a_version_that_is_none_is_a_mistake_of_the_client(version: str) -> None:
    async def scenario() -> None:
        async with LocalServer() as server:
            metadata = {"name": "x", "namespace": "default", "resourceVersion": version}
            answer = await server.ask("PUT", LEASE, {"metadata": metadata, "spec": {}})
            assert answer.code == 422
            assert answer.json["message"].startswith("strconv.ParseUint")

    asyncio.run(scenario())


def test_a_job_without_a_name_is_refused() -> None:
    async def scenario() -> None:
        async with LocalServer() as server:
            path = "/apis/batch/v1/namespaces/default/jobs"
            answer = await server.ask("POST", path, {"spec": {}})
            assert answer.code == 422
            assert "name or generateName is required" in answer.json["message"]

    asyncio.run(scenario())
