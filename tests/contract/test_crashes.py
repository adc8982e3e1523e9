"""Killed at random moments, a store loses nothing that was answered or shown, and repeats nothing."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from allot.storage.etcd import EtcdStore
from allot.storage.interface import Change, Store
from allot.storage.sqlite import SqliteStore
from tests.contract.conftest import NO_ETCD
from tests.contract.etcd_server import EtcdServer, find_etcd, make_cluster
from tests.contract.one_loop import run

WRITERS = 16
ROOT = Path(__file__).parents[2]


class Answer(NamedTuple):
    writer: int
    counted: int
    revision: int


class Writer:
    """The process of `crash_writer.py`, and what it said."""

    def __init__(self, store: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.crash_writer", store, str(WRITERS)],
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        self.start = 0
        self.answers: list[Answer] = []
        self.seen: list[int] = []
        self._has_written = threading.Event()
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith(b"\n"):
                break  # it was killed while it said this
            match line.split():
                case [b"start", revision]:
                    self.start = int(revision)
                case [b"done", writer, count, revision]:
                    self.answers.append(Answer(int(writer), int(count), int(revision)))
                    self._has_written.set()
                case [b"seen", revision]:
                    self.seen.append(int(revision))

    def wait_until_it_writes(self) -> None:
        assert self._has_written.wait(30)

    def wait_for_answers(self, count: int) -> None:
        deadline = time.monotonic() + 30
        while len(self.answers) < count:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def writing(store: str) -> Iterator[Writer]:
    writer = Writer(store)
    try:
        writer.wait_until_it_writes()
        yield writer
    finally:
        writer.kill()


async def history_after(store: Store, revision: int) -> list[Change]:
    """All changes of the counts after `revision`, by watching."""
    last = await store.revision()
    found: list[Change] = []
    async with asyncio.timeout(60), store.watch("count/", revision) as watch:
        while (found[-1].revision if found else revision) < last:
            found += await anext(watch)
            for changes in watch.pending():
                found += changes
    return found


async def check_store(store: Store, writer: Writer, last_round: int, chance: random.Random) -> int:
    """What a store must be like after a crash. Its revision comes back."""
    revision = await store.revision()
    assert writer.start >= last_round
    assert revision >= max(answer.revision for answer in writer.answers)
    history = await history_after(store, writer.start)

    # Revisions only increase, and each is there once.
    revisions = [change.revision for change in history]
    assert revisions == sorted(set(revisions))
    # What was answered is there, as it was answered.
    written = set()
    counts: dict[str, int] = {}
    for change in history:
        assert change.entry is not None
        count = int(change.entry.value)
        written.add(Answer(int(change.key.partition("/")[2]), count, change.revision))
        # Nothing is missing in between, and nothing came twice.
        before = int(change.previous.value) if change.previous else 0
        assert before == counts.get(change.key, before)
        assert count == before + 1
        counts[change.key] = count
    assert set(writer.answers) <= written
    # What the watcher was shown is there, and it was shown everything, in order.
    assert writer.seen == revisions[: len(writer.seen)]
    # It may resume from wherever it was.
    for place in chance.sample(range(len(writer.seen)), min(5, len(writer.seen))):
        resumed = await history_after(store, writer.seen[place])
        assert resumed == history[place + 1 :]
    # Writes are whole.
    entries = (await store.list("")).entries
    values = {entry.key: (entry.value, entry.revision) for entry in entries}
    for number in range(WRITERS):
        assert values.get(f"count/{number}") == values.get(f"copy/{number}")
    return revision


def crash_sqlite(path: Path, rounds: int, seed: int, kind: str = "sqlite") -> int:
    """How many answered writes were checked."""
    chance = random.Random(seed)  # noqa: S311
    last = answered = 0

    async def check(writer: Writer) -> int:
        store = await SqliteStore.open(path, compaction_interval_seconds=0)
        try:
            return await check_store(store, writer, last, chance)
        finally:
            await store.close()

    for _ in range(rounds):
        with writing(f"{kind}:{path}") as writer:
            time.sleep(chance.uniform(0, 0.25))
        last = run(check(writer))
        answered += len(writer.answers)
    return answered


def crash_etcd(servers: Sequence[EtcdServer], rounds: int, seed: int) -> int:
    """How many answered writes were checked."""
    chance = random.Random(seed)  # noqa: S311
    urls = [server.url for server in servers]
    last = answered = 0

    async def check(writer: Writer) -> int:
        store = await EtcdStore.connect(urls, timeout_seconds=30, compaction_interval_seconds=0)
        try:
            return await check_store(store, writer, last, chance)
        finally:
            await store.close()

    for number in range(rounds):
        with writing(f"etcd:{','.join(urls)}") as writer:
            time.sleep(chance.uniform(0, 0.3))
            match number % 5:
                case 0:  # all of them; the writer and its watch go on when they are back
                    killed = list(servers)
                    is_survived = True
                case 1 | 2:  # one of them; the writer and its watch go on with the others
                    killed = [chance.choice(servers)]
                    is_survived = True
                case 3:  # one of them, and soon the writer too
                    killed = [chance.choice(servers)]
                    is_survived = False
                case _:  # only the writer
                    killed = []
                    is_survived = False
            for server in killed:
                server.kill()
            before = len(writer.answers)
            if len(killed) == len(servers):
                start(killed)
            if is_survived:
                writer.wait_for_answers(before + 20)
        if len(killed) == 1:
            start(killed)
        last = run(check(writer))
        answered += len(writer.answers)
    return answered


def start(servers: Sequence[EtcdServer]) -> None:
    for server in servers:
        server.start()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[EtcdServer]]:
    if find_etcd() is None:
        pytest.skip(NO_ETCD)
    servers = make_cluster(tmp_path, ["one", "two", "three"])
    try:
        start(servers)
        yield servers
    finally:
        for server in servers:
            server.kill()


@pytest.mark.parametrize("kind", ["sqlite", "sqlite-pending"])
def test_a_few_crashes_of_sqlite(kind: str, tmp_path: Path) -> None:
    assert crash_sqlite(tmp_path / "store.db", rounds=4, seed=1, kind=kind) > 0


def test_a_few_crashes_of_etcd(cluster: list[EtcdServer]) -> None:
    assert crash_etcd(cluster, rounds=3, seed=1) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "sqlite-pending"])
def test_many_crashes_of_sqlite(kind: str, tmp_path: Path) -> None:
    answered = crash_sqlite(tmp_path / "store.db", rounds=200, seed=2, kind=kind)
    assert answered > 10_000


@pytest.mark.slow
def test_many_crashes_of_etcd(cluster: list[EtcdServer]) -> None:
    answered = crash_etcd(cluster, rounds=50, seed=2)
    assert answered > 1000
