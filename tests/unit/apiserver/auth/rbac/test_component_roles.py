"""The roles of allot's own components are in force without being listed among the stored ones."""

from __future__ import annotations

import asyncio

from allot.testing.servers import LocalServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
DRIVER = {"impersonate-user": "allot:driver"}
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def test_components_may_work_and_their_roles_are_not_listed() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            for plural in ("clusterroles", "clusterrolebindings"):
                names = [
                    each["metadata"]["name"]
                    for each in (await server.get(f"{RBAC}/{plural}"))["items"]
                ]
                assert names
                assert not [name for name in names if name.startswith("allot:")]

            assert (await server.ask("GET", SLICES, headers=DRIVER)).code == 200
            assert (await server.ask("GET", "/api/v1/secrets", headers=DRIVER)).code == 403

    asyncio.run(run())


def test_a_stored_role_takes_precedence_until_it_is_deleted() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            rule = {"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"]}
            role = {"metadata": {"name": "allot:driver"}, "rules": [rule]}
            await server.post(f"{RBAC}/clusterroles", role)
            replaced = [
                (await server.ask("GET", path, headers=DRIVER)).code
                for path in (SLICES, "/api/v1/secrets")
            ]
            await server.ask("DELETE", f"{RBAC}/clusterroles/allot:driver")
            restored = [
                (await server.ask("GET", path, headers=DRIVER)).code
                for path in (SLICES, "/api/v1/secrets")
            ]

            assert replaced == [403, 200]
            assert restored == [200, 403]

    asyncio.run(run())
