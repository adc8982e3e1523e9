"""A PUT that creates what it names needs the permission to create it, too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from allot.apiserver.auth.authentication import AUTHENTICATED, User
from allot.testing.servers import LocalServer

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
