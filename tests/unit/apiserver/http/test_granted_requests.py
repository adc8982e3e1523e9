"""What a user is granted for all objects is decided once, and holds until roles or bindings change."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from allot.apiserver.auth.authentication import AUTHENTICATED, User
from allot.storage import sqlite_writes
from allot.storage.sqlite import SqliteStore
from allot.testing.servers import LocalServer
from tests.unit.storage.held_commits import HeldCommits

RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
USERS: Final = {"alice": User("alice", groups=(AUTHENTICATED,))}
ALICE: Final = {"authorization": "Bearer alice"}


def binding(name: str, kind: str, role: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": kind, "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
    }


async def code_of(server: LocalServer, path: str) -> int:
    return (await server.ask("GET", path, headers=ALICE)).code


def test_it_ends_with_the_binding() -> None:
    async def story() -> None:
        async with LocalServer(users=USERS) as server:
            bindings = f"{RBAC}/namespaces/default/rolebindings"
            assert await code_of(server, MAPS) == 403
            await server.post(bindings, binding("b", "ClusterRole", "view"))
            assert [await code_of(server, MAPS) for _ in range(3)] == [200] * 3
            assert await code_of(server, f"{MAPS}/kube-root-ca.crt") in (200, 404)
            assert await code_of(server, "/api/v1/configmaps") == 403
            assert await code_of(server, MAPS.replace("default", "kube-system")) == 403
            await server.ask("DELETE", f"{bindings}/b")
            assert [await code_of(server, MAPS) for _ in range(3)] == [403] * 3

    asyncio.run(story())


def test_it_ends_when_the_binding_is_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writes, "RETRY_SECONDS", 0.01)
    commits = HeldCommits(monkeypatch)
    bindings = f"{RBAC}/namespaces/default/rolebindings"

    async def story() -> None:
        store = await SqliteStore.open(tmp_path / "store.db", shows_pending_writes=True)
        async with LocalServer(store, users=USERS) as server:
            assert await code_of(server, MAPS) == 403
            commits.hold()
            body = binding("b", "ClusterRole", "view")
            creating = asyncio.create_task(server.ask("POST", bindings, body))
            for _ in range(50):
                await asyncio.sleep(0)
            reading = [asyncio.create_task(code_of(server, MAPS)) for _ in range(2)]
            for _ in range(50):
                await asyncio.sleep(0)
            assert not any(each.done() for each in reading), "they are allowed, and wait"
            commits.fail()
            assert (await creating).code == 503
            assert [await each for each in reading] == [503, 503]
            commits.release()
            while server.store.trouble is not None:
                await asyncio.sleep(0.01)
            assert await code_of(server, MAPS) == 403
            await server.post(bindings, body)
            assert await code_of(server, MAPS) == 200

    asyncio.run(story())


def test_names_and_namespaces_are_decided_for_each() -> None:
    async def story() -> None:
        async with LocalServer(users=USERS) as server:
            rules = [
                {
                    "verbs": ["get"],
                    "apiGroups": [""],
                    "resources": ["configmaps", "namespaces"],
                    "resourceNames": ["a", "default"],
                }
            ]
            role = {"metadata": {"name": "r"}, "rules": rules}
            await server.post(f"{RBAC}/namespaces/default/roles", role)
            bindings = f"{RBAC}/namespaces/default/rolebindings"
            await server.post(bindings, binding("b", "Role", "r"))
            for _ in range(2):
                assert await code_of(server, f"{MAPS}/a") == 404
                assert await code_of(server, f"{MAPS}/b") == 403
                assert await code_of(server, "/api/v1/namespaces/default") == 200
                assert await code_of(server, "/api/v1/namespaces/kube-system") == 403

    asyncio.run(story())


@pytest.mark.parametrize("method", ["PUT", "BREW"])
def test_a_method_that_is_not_allowed_is_refused_first(method: str) -> None:
    async def story() -> None:
        async with LocalServer(users=USERS) as server:
            assert (await server.ask(method, MAPS, headers=ALICE)).code == 403
            assert (await server.ask(method, MAPS)).code == 405

    asyncio.run(story())
