"""kill -9 at any moment: no answered write is lost, revisions only grow, watchers see everything once.

Writers create, change and delete objects as fast as they can; one watcher follows and always takes up where
it was. The server (or etcd under it) is killed again and again. In the end the watcher's history must be exactly what
was answered, and more only where an answer was lost on its way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from allot.testing.http_client import Connection, EndOfStream
from allot.testing.processes import ApiServerProcess
from tests.contract.conftest import NO_ETCD
from tests.contract.etcd_server import find_etcd, make_cluster

MAPS = "/api/v1/namespaces/default/configmaps"
WRITERS = 6
GONE = (OSError, ssl.SSLError, asyncio.IncompleteReadError, TimeoutError, EOFError)


class Write(NamedTuple):
    """A write that was answered."""

    revision: int
    name: str
    value: str | None
    """None for a delete."""


class Load:
    """Writers and a watcher that live through everything."""

    def __init__(self, server: ApiServerProcess, start: int) -> None:
        self._server = server
        self.answered: list[Write] = []
        self.events: list[tuple[str, Write]] = []
        self.last_seen = start
        self.stopping = asyncio.Event()

    async def write(self, number: int) -> None:
        """One writer: its own keys, each created, changed and sometimes deleted."""
        count = 0
        while not self.stopping.is_set():
            with contextlib.suppress(*GONE):
                async with Connection(self._server.address) as connection:
                    while not self.stopping.is_set():
                        count += 1
                        await self._life(connection, f"w{number}-{count}")
            await asyncio.sleep(0.02)

    async def _life(self, connection: Connection, name: str) -> None:
        body: dict[str, Any] = {"metadata": {"name": name}, "data": {"v": "1"}}
        created = await self._send(connection, "POST", MAPS, body, 201)
        if created is None:
            return
        self._note(created, "1")
        changed = await self._send(
            connection, "PUT", f"{MAPS}/{name}", created | {"data": {"v": "2"}}, 200
        )
        if changed is None:
            return
        self._note(changed, "2")
        if random.random() < 0.5:  # noqa: S311
            deleted = await self._send(connection, "DELETE", f"{MAPS}/{name}", None, 200)
            if deleted is not None:
                self.answered.append(Write(0, name, None))

    async def _send(
        self, connection: Connection, method: str, path: str, body: Any, code: int
    ) -> dict[str, Any] | None:
        content = b"" if body is None else json.dumps(body).encode()
        async with asyncio.timeout(20):
            answered, text = await connection.ask(method, path, content)
        if answered >= 500:
            return None  # unknown whether it happened
        assert answered == code, text
        found: dict[str, Any] = json.loads(text)
        return found

    def _note(self, obj: dict[str, Any], value: str) -> None:
        metadata = obj["metadata"]
        self.answered.append(Write(int(metadata["resourceVersion"]), metadata["name"], value))

    async def watch(self, until: Callable[[], bool]) -> None:
        """Follow all changes; after a break go on from what was seen last."""
        while not until():
            path = f"{MAPS}?watch=true&resourceVersion={self.last_seen}&timeoutSeconds=60"
            with contextlib.suppress(*GONE, EndOfStream):
                async with Connection(self._server.address) as connection:
                    await connection.watch(path)
                    rest = b""
                    while not until():
                        async with asyncio.timeout(0.5):
                            chunk = await connection.chunk()
                        *lines, rest = (rest + chunk).split(b"\n")
                        for line in lines:
                            self._see(json.loads(line))
            await asyncio.sleep(0.02)

    def _see(self, event: dict[str, Any]) -> None:
        assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
        metadata = event["object"]["metadata"]
        revision = int(metadata["resourceVersion"])
        assert revision > self.last_seen, "a watcher goes only forward and sees nothing twice"
        self.last_seen = revision
        value = None if event["type"] == "DELETED" else event["object"]["data"]["v"]
        self.events.append((event["type"], Write(revision, metadata["name"], value)))


def check(load: Load, final: dict[str, str]) -> None:
    """The history is gapless, holds every answered write, and leads to the final state."""
    state: dict[str, str] = {}
    for type_, (revision, name, value) in load.events:
        assert (name in state) == (type_ != "ADDED"), (
            f"{type_} {name} at {revision} does not follow"
        )
        if value is None:
            del state[name]
        else:
            state[name] = value
    assert state == final
    seen = {(write.revision, write.name, write.value) for _, write in load.events}
    deleted = {write.name for _, write in load.events if write.value is None}
    for write in load.answered:
        if write.value is None:
            assert write.name in deleted, f"the delete of {write.name} was answered and is lost"
        else:
            assert tuple(write) in seen, f"{write} was answered and is lost"


async def run(
    server: ApiServerProcess, rounds: int, kill: Callable[[], None], contiguous: bool
) -> Load:
    async with Connection(server.address) as connection:
        _, listed = await connection.ask("GET", MAPS)
    start = int(json.loads(listed)["metadata"]["resourceVersion"])
    load = Load(server, start)
    tasks = [asyncio.create_task(load.write(number)) for number in range(WRITERS)]
    done = asyncio.Event()
    watching = asyncio.create_task(load.watch(done.is_set))
    for _ in range(rounds):
        answered = len(load.answered)
        while len(load.answered) < answered + 5:  # alive again and working
            await asyncio.sleep(0.01)
            for task in (*tasks, watching):
                if task.done():
                    task.result()
        await asyncio.sleep(random.uniform(0, 0.15))  # noqa: S311
        await asyncio.to_thread(kill)
    load.stopping.set()
    await asyncio.gather(*tasks)
    final, revision = await _final(server)
    async with asyncio.timeout(30):
        while load.last_seen < revision and _last_change(load) < max(
            (write.revision for write in load.answered), default=0
        ):
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)  # whatever still comes
    done.set()
    await watching
    check(load, final)
    if contiguous:
        revisions = [write.revision for _, write in load.events]
        assert revisions == list(range(start + 1, start + 1 + len(revisions)))
    return load


def _last_change(load: Load) -> int:
    return load.events[-1][1].revision if load.events else 0


async def _final(server: ApiServerProcess) -> tuple[dict[str, str], int]:
    for _ in range(100):
        with contextlib.suppress(*GONE):
            async with Connection(server.address) as connection:
                code, content = await connection.ask("GET", MAPS)
            if code == 200:
                listed = json.loads(content)
                state = {item["metadata"]["name"]: item["data"]["v"] for item in listed["items"]}
                return state, int(listed["metadata"]["resourceVersion"])
        await asyncio.sleep(0.1)
    raise AssertionError("the server does not come back")


SQLITE_ROUNDS = [2, pytest.param(200, marks=pytest.mark.slow)]
ETCD_ROUNDS = [2, pytest.param(50, marks=pytest.mark.slow)]


@pytest.mark.parametrize("rounds", SQLITE_ROUNDS)
def test_sqlite(tmp_path: Path, rounds: int) -> None:
    with ApiServerProcess(tmp_path) as server:

        def kill() -> None:
            server.kill()
            server.start()

        load = asyncio.run(run(server, rounds, kill, contiguous=True))
    assert len(load.answered) > rounds


@pytest.mark.parametrize("rounds", ETCD_ROUNDS)
def test_etcd(tmp_path: Path, rounds: int) -> None:
    """Three members, because one alone loses writes itself in this version (docs/decisions/0007)."""
    if find_etcd() is None:
        pytest.skip(NO_ETCD)
    (tmp_path / "etcd").mkdir()
    members = make_cluster(tmp_path / "etcd", ["one", "two", "three"])
    storage = f"etcd:{','.join(member.url for member in members)}"
    try:
        for member in members:
            member.start()
        with ApiServerProcess(tmp_path / "server", "--storage", storage) as server:
            turn = iter(range(10_000))

            def kill() -> None:
                number = next(turn)
                if number % 2:
                    server.kill()
                    server.start()
                else:
                    member = members[number // 2 % 3]
                    member.kill()
                    member.start()

            load = asyncio.run(run(server, rounds, kill, contiguous=False))
        assert len(load.answered) > rounds
    finally:
        for member in members:
            member.kill()
