"""Permissions are looked up on the event loop, also for large objects, which are validated in threads."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from allot.apiserver.auth.authentication import AUTHENTICATED, User
from allot.apiserver.auth.rbac.authorizer import RbacAuthorizer
from allot.testing.servers import LocalServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
RULES = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
BINDING = {
    "metadata": {"name": "all"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
}


@pytest.mark.parametrize("reserved", [1, 256])
def test_the_status_of_a_claim(reserved: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, set[int]] = {}
    authorize = RbacAuthorizer.authorize

    def recording(self: RbacAuthorizer, user: User, attributes: Any) -> Any:
        asked.setdefault(attributes.resource, set()).add(threading.get_ident())
        return authorize(self, user, attributes)

    async def scenario() -> None:
        async with LocalServer(users={"alice": User("alice", groups=(AUTHENTICATED,))}) as server:
            await server.post(f"{RBAC}/clusterroles", {"metadata": {"name": "all"}, "rules": RULES})
            await server.post(f"{RBAC}/clusterrolebindings", BINDING)
            request = {"name": "r", "exactly": {"deviceClassName": "c"}}
            claim = await server.post(
                CLAIMS, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
            )
            result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}
            claim["status"] = {
                "allocation": {"devices": {"results": [result]}},
                "reservedFor": [
                    {"resource": "pods", "name": f"{'p' * 200}{n}", "uid": f"u{n}"}
                    for n in range(reserved)
                ],
            }
            monkeypatch.setattr(RbacAuthorizer, "authorize", recording)
            as_alice = {"authorization": "Bearer alice"}
            answer = await server.ask("PUT", f"{CLAIMS}/c/status", claim, headers=as_alice)
            assert answer.code == 200, answer.json

    asyncio.run(scenario())
    assert asked["resourceclaims/binding"] == {threading.get_ident()}


def test_on_the_event_loop_that_runs_now() -> None:
    server = LocalServer(users={"alice": User("alice", groups=(AUTHENTICATED,))})

    async def start() -> dict[str, Any]:
        await server.server.start()
        await server.post(f"{RBAC}/clusterroles", {"metadata": {"name": "all"}, "rules": RULES})
        await server.post(f"{RBAC}/clusterrolebindings", BINDING)
        request = {"name": "r", "exactly": {"deviceClassName": "c"}}
        return await server.post(
            CLAIMS, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
        )

    async def reserve(claim: dict[str, Any]) -> int:
        result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}
        claim["status"] = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [
                {"resource": "pods", "name": f"{'p' * 200}{n}", "uid": f"u{n}"} for n in range(256)
            ],
        }
        as_alice = {"authorization": "Bearer alice"}
        answer = await server.ask("PUT", f"{CLAIMS}/c/status", claim, headers=as_alice)
        return answer.code

    assert asyncio.run(reserve(asyncio.run(start()))) == 200
