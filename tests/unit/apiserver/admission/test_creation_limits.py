"""One user cannot create ResourcePoolStatusRequests faster than the limit; other users are not affected."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from allot.apiserver.admission.creation_limits import CreationLimit
from allot.apiserver.auth.authentication import MASTERS, User
from allot.testing.servers import LocalServer, ServerResponse
from allot.testing.virtual_time import run_in_virtual_time

PATHS = [
    f"/apis/resource.k8s.io/{version}/resourcepoolstatusrequests"
    for version in ("v1alpha3", "v1alpha1")
]
USERS = {f"{name}-token": User(name, groups=(MASTERS,)) for name in ("ann", "ben")}


async def create(
    server: LocalServer,
    user: str,
    name: str,
    query: Mapping[str, str] | None = None,
    path: str = "",
) -> ServerResponse:
    body: dict[str, Any] = {"metadata": {"name": name}, "spec": {"driver": "d.example.com"}}
    headers = {"authorization": f"Bearer {user}-token"}
    return await server.ask("POST", path or PATHS[0], body, headers=headers, query=query)


def a_server(limit: CreationLimit = CreationLimit()) -> LocalServer:  # noqa: B008 - a value
    return LocalServer(users=USERS, pool_status_limit=limit)


def test_creations_above_the_limit_are_429_with_retry_after() -> None:
    async def story() -> None:
        async with a_server(CreationLimit(0.5, 3)) as server:
            codes = [
                (await create(server, "ann", f"a-{number}", path=PATHS[number % 2])).code
                for number in range(3)
            ]
            assert codes == [201, 201, 201]
            refused = await create(server, "ann", "a-4")
            assert (refused.code, refused.header("retry-after")) == (429, ["2"])
            assert refused.json["reason"] == "TooManyRequests"
            assert refused.json["details"] == {"retryAfterSeconds": 2}
            assert "'ann'" in refused.json["message"]

            assert (await create(server, "ben", "b-0")).code == 201
            await asyncio.sleep(2)
            assert (await create(server, "ann", "a-4")).code == 201
            assert (await create(server, "ann", "a-5")).code == 429

    run_in_virtual_time(story())


def test_of_a_flood_only_the_burst_is_accepted() -> None:
    async def story() -> None:
        async with a_server() as server:
            codes = [(await create(server, "ann", f"a-{number}")).code for number in range(500)]
            assert codes == [201] * 50 + [429] * 450

    run_in_virtual_time(story())


def test_dry_runs_and_other_kinds_are_free() -> None:
    async def story() -> None:
        async with a_server(CreationLimit(0.001, 1)) as server:
            for number in range(5):
                answer = await create(server, "ann", f"a-{number}", {"dryRun": "All"})
                assert answer.code == 201
            assert (await create(server, "ann", "a")).code == 201
            assert (await create(server, "ann", "b")).code == 429
            await server.post("/api/v1/namespaces", {"metadata": {"name": "n"}})

    run_in_virtual_time(story())


def test_without_a_limit_all_are_accepted() -> None:
    async def story() -> None:
        async with a_server(CreationLimit(0, 1)) as server:
            for number in range(100):
                assert (await create(server, "ann", f"a-{number}")).code == 201

    run_in_virtual_time(story())
