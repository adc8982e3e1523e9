"""Roles of DRA: drivers report on devices of their node, pool status is for those who were granted it."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.testing.servers import LocalServer, ServerResponse

RBAC = "/apis/rbac.authorization.k8s.io/v1"
DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/namespaces/default/resourceclaims"
DRIVER = "d.example.com"


async def grant(server: LocalServer, subject: dict[str, Any], *rules: dict[str, Any]) -> None:
    await server.post(f"{RBAC}/clusterroles", {"metadata": {"name": "r"}, "rules": list(rules)})
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    binding = {"metadata": {"name": "r"}, "roleRef": ref, "subjects": [subject]}
    await server.post(f"{RBAC}/clusterrolebindings", binding)


def a_rule(verbs: str, resources: str, names: str = "") -> dict[str, Any]:
    named = {"resourceNames": names.split()} if names else {}
    return {
        "verbs": verbs.split(),
        "apiGroups": ["resource.k8s.io"],
        "resources": resources.split(),
        **named,
    }


async def an_allocated_claim(server: LocalServer, node: str) -> dict[str, Any]:
    await server.post(f"{DRA}/deviceclasses", {"metadata": {"name": "c"}, "spec": {}})
    requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
    claim = await server.post(
        CLAIMS, {"metadata": {"name": "x"}, "spec": {"devices": {"requests": requests}}}
    )
    result = {"request": "r", "driver": DRIVER, "pool": "p", "device": "d"}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    claim["status"] = {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
    }
    answer = await server.ask("PUT", f"{CLAIMS}/x/status", claim)
    assert answer.code == 200, answer
    found: dict[str, Any] = answer.json
    return found


async def token_on(server: LocalServer, node: str) -> dict[str, str]:
    bound = {"kind": "Node", "apiVersion": "v1", "name": node}
    path = "/api/v1/namespaces/default/serviceaccounts/driver/token"
    issued = await server.post(path, {"spec": {"boundObjectRef": bound}})
    return {"authorization": f"Bearer {issued['status']['token']}"}


async def report(server: LocalServer, claim: dict[str, Any], node: str) -> ServerResponse:
    device = {"driver": DRIVER, "pool": "p", "device": "d", "data": {"node": node}}
    changed = {**claim, "status": {**claim["status"], "devices": [device]}}
    headers = await token_on(server, node)
    return await server.ask("PUT", f"{CLAIMS}/x/status", changed, headers=headers)


def test_a_driver_reports_on_devices_of_its_own_node_only() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            for node in ("n1", "n2"):
                await server.post("/api/v1/nodes", {"metadata": {"name": node}})
            account = {"metadata": {"name": "driver"}}
            await server.post("/api/v1/namespaces/default/serviceaccounts", account)
            subject = {"kind": "ServiceAccount", "namespace": "default", "name": "driver"}
            await grant(
                server,
                subject,
                a_rule("get update", "resourceclaims resourceclaims/status"),
                a_rule("associated-node:update", "resourceclaims/driver", DRIVER),
            )
            claim = await an_allocated_claim(server, "n1")

            elsewhere = await report(server, claim, "n2")
            here = await report(server, claim, "n1")

            assert elsewhere.code == 422
            assert "arbitrary-node:update" in elsewhere.json["message"]
            assert here.code == 200, here

    asyncio.run(run())


def test_a_user_with_the_documented_role_sees_pool_status_and_no_claims() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            user = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ada"}
            verbs = "create get list watch delete"
            await grant(server, user, a_rule(verbs, "resourcepoolstatusrequests"))
            ada = {"impersonate-user": "ada"}
            path = "/apis/resource.k8s.io/v1alpha1/resourcepoolstatusrequests"
            body = {"metadata": {"name": "q"}, "spec": {"driver": DRIVER}}

            created = await server.ask("POST", path, body, headers=ada)
            others = await server.ask("POST", path, body, headers={"impersonate-user": "zoe"})
            claims = await server.ask("GET", CLAIMS, headers=ada)
            status = await server.ask("PUT", f"{path}/q/status", body, headers=ada)

            assert created.code == 201, created
            assert [others.code, claims.code, status.code] == [403, 403, 403]

    asyncio.run(run())
