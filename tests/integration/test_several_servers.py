"""Several API server processes on one etcd are one API: one order of writes, one answer to every race."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from allot.testing.http_client import Connection
from allot.testing.processes import ApiServerProcess
from tests.contract.conftest import NO_ETCD
from tests.contract.etcd_server import EtcdServer, find_etcd

MAPS = "/api/v1/namespaces/default/configmaps"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ApiServerProcess]]:
    if find_etcd() is None:
        pytest.skip(NO_ETCD)
    place: Path = tmp_path_factory.mktemp("several")
    (place / "etcd").mkdir()
    etcd = EtcdServer(place / "etcd")
    etcd.start()
    storage = ("--storage", f"etcd:{etcd.url}")
    try:
        with (
            ApiServerProcess(place / "one", *storage) as one,
            ApiServerProcess(place / "two", *storage) as two,
        ):
            yield [one, two]
    finally:
        etcd.kill()


async def ask(
    connection: Connection, method: str, path: str, body: Any = None
) -> tuple[int, dict[str, Any]]:
    content = b"" if body is None else json.dumps(body).encode()
    code, answer = await connection.ask(method, path, content)
    return code, json.loads(answer)


async def events(server: ApiServerProcess, path: str, count: int) -> list[tuple[str, str, str]]:
    """What a watcher sees first: type, name and version."""
    seen: list[tuple[str, str, str]] = []
    async with Connection(server.address) as connection:
        await connection.watch(path)
        rest = b""
        while len(seen) < count:
            async with asyncio.timeout(120):
                *lines, rest = (rest + await connection.chunk()).split(b"\n")
            for event in map(json.loads, lines):
                metadata = event["object"]["metadata"]
                seen.append((event["type"], metadata["name"], metadata["resourceVersion"]))
    return seen


def test_all_watchers_of_all_servers_see_one_order(servers: list[ApiServerProcess]) -> None:
    async def run() -> None:
        async with Connection(servers[0].address) as connection:
            _, listed = await ask(connection, "GET", MAPS)
        path = f"{MAPS}?watch=true&resourceVersion={listed['metadata']['resourceVersion']}"
        count = 120
        watching = [asyncio.create_task(events(server, path, count)) for server in servers * 2]

        async def write(server: ApiServerProcess, writer: int) -> None:
            async with Connection(server.address) as connection:
                for number in range(count // 6):
                    body = {"metadata": {"name": f"order-{writer}-{number}"}}
                    code, answer = await ask(connection, "POST", MAPS, body)
                    assert code == 201, answer

        await asyncio.gather(*(write(servers[n % 2], n) for n in range(6)))
        histories = await asyncio.gather(*watching)
        assert all(history == histories[0] for history in histories)
        versions = [int(version) for _, _, version in histories[0]]
        assert versions == sorted(set(versions))

    asyncio.run(run())


def test_what_one_server_wrote_another_reads_at_once(servers: list[ApiServerProcess]) -> None:
    async def run() -> None:
        async with (
            Connection(servers[0].address) as one,
            Connection(servers[1].address) as two,
        ):
            await ask(one, "POST", MAPS, {"metadata": {"name": "shared"}, "data": {"n": "0"}})
            for number in range(1, 30):
                writer, reader = (one, two) if number % 2 else (two, one)
                code, found = await ask(reader, "GET", f"{MAPS}/shared")
                assert (code, found["data"]["n"]) == (200, str(number - 1))
                code, _ = await ask(
                    writer, "PUT", f"{MAPS}/shared", found | {"data": {"n": str(number)}}
                )
                assert code == 200
                _, listed = await ask(reader, "GET", MAPS)
                values = {item["metadata"]["name"]: item.get("data") for item in listed["items"]}
                assert values["shared"] == {"n": str(number)}

    asyncio.run(run())


def test_of_two_updates_of_one_version_one_wins(servers: list[ApiServerProcess]) -> None:
    async def run() -> None:
        async with (
            Connection(servers[0].address) as one,
            Connection(servers[1].address) as two,
        ):
            _, found = await ask(
                one, "POST", MAPS, {"metadata": {"name": "race"}, "data": {"n": "x"}}
            )
            for number in range(20):
                answers = await asyncio.gather(
                    ask(one, "PUT", f"{MAPS}/race", found | {"data": {"n": f"one {number}"}}),
                    ask(two, "PUT", f"{MAPS}/race", found | {"data": {"n": f"two {number}"}}),
                )
                assert sorted(code for code, _ in answers) == [200, 409]
                (found,) = (answer for code, answer in answers if code == 200)

    asyncio.run(run())


def test_a_device_is_given_away_once(servers: list[ApiServerProcess]) -> None:
    async def run() -> None:
        request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
        claims = []
        async with Connection(servers[0].address) as connection:
            for number in range(8):
                body = {
                    "metadata": {"name": f"c{number}"},
                    "spec": {"devices": {"requests": [request]}},
                }
                code, claim = await ask(connection, "POST", CLAIMS, body)
                assert code == 201
                claims.append(claim)
        result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "gpu-0"}
        status = {"allocation": {"devices": {"results": [result]}}}

        async def allocate(number: int, claim: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            async with Connection(servers[number % 2].address) as connection:
                path = f"{CLAIMS}/{claim['metadata']['name']}/status"
                return await ask(connection, "PUT", path, claim | {"status": status})

        answers = await asyncio.gather(*(allocate(n, claim) for n, claim in enumerate(claims)))
        assert sorted(code for code, _ in answers) == [200] + [409] * 7

    asyncio.run(run())
