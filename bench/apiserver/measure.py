"""How fast the API server is: one server process, one client process, TLS between them.

Run it with `./scripts/bench apiserver [--storage sqlite|memory|etcd:URL]`. Figures are in
bench/RESULTS.md. The yardsticks in the same run: the server's cheapest answer (/livez), and what
SQLite alone commits durably, one row at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from allot.testing.http_client import Address, Connection
from allot.testing.processes import ApiServerProcess

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
MAPS = "/api/v1/namespaces/default/configmaps"
SECONDS = 4.0
CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"generateName": "bench-", "labels": {"app": "bench"}},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": "gpu.example.com",
                        "selectors": [
                            {
                                "cel": {
                                    "expression": 'device.attributes["gpu.example.com"].model == "a"'
                                }
                            }
                        ],
                    },
                }
            ]
        }
    },
}


class Rate(NamedTuple):
    """Answers per second and how long they took."""

    per_second: float
    p50_ms: float
    p99_ms: float

    @staticmethod
    def of(durations: list[float], seconds: float) -> Rate:
        ordered = sorted(durations)
        at = [ordered[int(len(ordered) * part)] * 1000 for part in (0.5, 0.99)]
        return Rate(len(ordered) / seconds, *at)

    def __str__(self) -> str:
        return f"{self.per_second:9.0f}/s   p50 {self.p50_ms:7.2f} ms   p99 {self.p99_ms:7.2f} ms"


async def rate(
    address: Address, connections: int, ask: Callable[[Connection], Awaitable[None]]
) -> Rate:
    """How often `ask` succeeds with so many connections at once."""
    opened = [await Connection(address).open() for _ in range(connections)]
    durations: list[float] = []
    end = time.perf_counter() + SECONDS

    async def work(connection: Connection) -> None:
        while (start := time.perf_counter()) < end:
            await ask(connection)
            durations.append(time.perf_counter() - start)

    begun = time.perf_counter()
    await asyncio.gather(*map(work, opened))
    took = time.perf_counter() - begun
    for connection in opened:
        await connection.close()
    return Rate.of(durations, took)


def asking(
    method: str, path: str, body: bytes = b"", code: int = 200
) -> Callable[..., Awaitable[None]]:
    async def ask(connection: Connection) -> None:
        answered, content = await connection.ask(method, path, body)
        assert answered == code, content

    return ask


async def list_claims(address: Address, count: int) -> tuple[float, float, float]:
    """Seconds for the first and for the best list of `count` claims, and its size in MB."""
    opened = [await Connection(address).open() for _ in range(16)]
    bodies = [
        json.dumps({**CLAIM, "metadata": {"name": f"c{n:05}", "namespace": "default"}})
        for n in range(count)
    ]
    waiting = iter(bodies)

    async def create(connection: Connection) -> None:
        for body in waiting:
            code, content = await connection.ask("POST", CLAIMS, body.encode())
            assert code == 201, content

    await asyncio.gather(*map(create, opened))
    durations = []
    for _ in range(10):
        start = time.perf_counter()
        _, content = await opened[0].ask("GET", CLAIMS + "?limit=5000")
        durations.append(time.perf_counter() - start)
    assert len(json.loads(content)["items"]) == count
    return durations[0], min(durations), len(content) / 1e6


async def watchers(address: Address, count: int, events: int) -> tuple[float, float]:
    """Events per second that reach all of `count` watchers together, and milliseconds p99 of one event."""
    writer = await Connection(address).open()
    _, listed = await writer.ask("GET", f"{MAPS}?limit=1")
    version = json.loads(listed)["metadata"]["resourceVersion"]
    watching = [await Connection(address).open() for _ in range(count)]
    for connection in watching:
        await connection.watch(f"{MAPS}?watch=true&resourceVersion={version}")
    written: dict[str, float] = {}
    delays: list[float] = []

    async def follow(connection: Connection) -> None:
        seen, rest = 0, b""
        while seen < events:
            *lines, rest = (rest + await connection.chunk()).split(b"\n")
            now = time.perf_counter()
            seen += len(lines)
            if connection is watching[0]:
                names = (json.loads(line)["object"]["metadata"]["name"] for line in lines)
                delays.extend(now - written[name] for name in names)

    following = [asyncio.create_task(follow(connection)) for connection in watching]
    opened = [await Connection(address).open() for _ in range(8)]
    numbers = iter(range(events))

    async def write(connection: Connection) -> None:
        for number in numbers:
            name = f"w{number}"
            body = {"metadata": {"name": name}, "data": {"k": "v" * 500}}
            written[name] = time.perf_counter()
            code, content = await connection.ask("POST", MAPS, json.dumps(body).encode())
            assert code == 201, content

    start = time.perf_counter()
    await asyncio.gather(*map(write, opened))
    await asyncio.gather(*following)
    took = time.perf_counter() - start
    for connection in (*watching, *opened, writer):
        await connection.close()
    return count * events / took, sorted(delays)[int(len(delays) * 0.99)] * 1000


def raw_commits(directory: Path) -> float:
    """Durable commits per second of SQLite alone, one row of 1 KB each."""
    connection = sqlite3.connect(directory / "raw.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)")
    end, count = time.perf_counter() + 1, 0
    while time.perf_counter() < end:
        connection.execute("INSERT INTO t (v) VALUES (?)", (bytes(1024),))
        count += 1
    connection.close()
    return float(count)


def memory_mb(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measure(server: ApiServerProcess) -> None:
    address, directory, process = server.address, server.directory, server.pid
    create = asking("POST", CLAIMS, json.dumps(CLAIM).encode(), 201)
    print(f"SQLite alone, one durable commit after the other    {raw_commits(directory):9.0f}/s")
    print(f"memory of the server when it starts                 {memory_mb(process):9.0f} MB")
    print(f"/livez, 1 connection        {await rate(address, 1, asking('GET', '/livez'))}")
    print(f"/livez, 32 connections      {await rate(address, 32, asking('GET', '/livez'))}")
    first, best, size = await list_claims(address, 5000)
    print(
        f"list of 5,000 claims        first {first * 1000:.0f} ms, then {best * 1000:.0f} ms, {size:.1f} MB"
    )
    print(f"memory with 5,000 claims                            {memory_mb(process):9.0f} MB")
    get = asking("GET", f"{CLAIMS}/c00042")
    print(f"gets, 1 connection          {await rate(address, 1, get)}")
    print(f"gets, 32 connections        {await rate(address, 32, get)}")
    print(f"creates, 1 connection       {await rate(address, 1, create)}")
    print(f"creates, 32 connections     {await rate(address, 32, create)}")
    events, delay = await watchers(address, 100, 2000)
    print(
        f"events to 100 watchers      {events:9.0f}/s   p99 {delay:.1f} ms after the write was sent"
    )
    print(f"memory at the end                                   {memory_mb(process):9.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storage", default="sqlite")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as place,
        ApiServerProcess(Path(place), "--storage", options.storage) as server,
    ):
        print(server.first_line.strip())
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(measure(server))
        server.stop()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    import uvloop

    return uvloop.new_event_loop


if __name__ == "__main__":
    main()
