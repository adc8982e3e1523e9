"""Writes that are shown while they are committed: what is seen when, and what remains of them when the commit fails."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from allot.storage import sqlite_writes
from allot.storage.interface import (
    MISSING,
    Put,
    RevisionConflictError,
    SlowWatcherError,
    StoreUnavailableError,
)
from allot.storage.pending_commit import WITHDRAWN
from allot.storage.revision_log import RevisionLog
from allot.storage.sqlite import SqliteStore
from allot.storage.transactions import Batch
from tests.unit.storage.held_commits import HeldCommits

Scenario = Callable[[SqliteStore], Awaitable[None]]


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> HeldCommits:
    return HeldCommits(monkeypatch)


@asynccontextmanager
async def opened(
    path: Path, window_revisions: int = 10_000, *, pending: bool = True
) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(
        path,
        window_revisions=window_revisions,
        compaction_interval_seconds=0,
        shows_pending_writes=pending,
    )
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Scenario], None]:
    def run(scenario: Scenario, window_revisions: int = 10_000) -> None:
        async def in_time() -> None:
            async with (
                asyncio.timeout(60),
                opened(tmp_path / "store.db", window_revisions) as store,
            ):
                await scenario(store)

        asyncio.run(in_time())

    return run


Play = Callable[..., None]


async def value_of(store: SqliteStore, key: str) -> bytes | None:
    entry = await store.get(key)
    return None if entry is None else entry.value


async def begin_commit(store: SqliteStore, commits: HeldCommits) -> None:
    """Returns during the commit of a write, which is held."""
    commits.hold()
    await store.submit(Put("a", b"1"))
    while not commits.begun:
        await asyncio.sleep(0.001)


async def is_waiting(task: asyncio.Task[object]) -> bool:
    """Whether it waits for something other than the event loop."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not task.done()


def test_a_submitted_write_is_shown_before_it_is_durable(play: Play, commits: HeldCommits) -> None:
    async def scenario(store: SqliteStore) -> None:
        await store.write(Put("a", b"1"))
        watch = store.watch("", 1)
        assert watch.pending() == []
        commits.hold()
        assert await store.submit(Put("a", b"2")) == 2

        assert (await store.revision(), store.announced, store.durable) == (2, 2, 1)
        assert await value_of(store, "a") == b"2"
        assert [changes[0].revision for changes in watch.pending()] == [2]
        confirmed = asyncio.create_task(store.until_durable(2))
        assert await is_waiting(confirmed)
        await store.until_durable(1)
        assert commits.count == 1

        commits.release()
        await confirmed
        assert (commits.count, store.durable) == (2, 2)

    play(scenario)


def test_a_write_that_is_not_submitted_returns_when_it_is_durable(
    play: Play, commits: HeldCommits
) -> None:
    async def scenario(store: SqliteStore) -> None:
        commits.hold()
        writing = asyncio.create_task(store.write(Put("a", b"1")))
        assert await is_waiting(writing)
        assert await value_of(store, "a") == b"1"
        commits.release()
        assert await writing == 1
        assert store.durable == 1

    play(scenario)


def test_without_the_option_nothing_is_shown_before_it_is_durable(
    tmp_path: Path, commits: HeldCommits
) -> None:
    async def scenario() -> None:
        async with opened(tmp_path / "store.db", pending=False) as store:
            commits.hold()
            writing = asyncio.create_task(store.submit(Put("a", b"1")))
            assert await is_waiting(writing)
            assert await value_of(store, "a") is None
            assert store.announced == 0
            commits.release()
            assert await writing == 1

    asyncio.run(scenario())


def test_writes_during_a_commit_are_shown_and_share_the_next_one(
    play: Play, commits: HeldCommits
) -> None:
    async def scenario(store: SqliteStore) -> None:
        await begin_commit(store, commits)
        others = [store.submit(Put(f"b{n}", b"")) for n in range(10)]
        assert await asyncio.gather(*others) == list(range(2, 12))
        assert await value_of(store, "b9") == b""
        durable = asyncio.create_task(store.write(Put("c", b"")))
        first, last = (asyncio.create_task(store.until_durable(n)) for n in (1, 11))
        assert await is_waiting(durable)
        assert (store.announced, store.durable) == (12, 0)
        commits.release()
        await first
        await last
        assert await durable == 12
        assert commits.count == 2

    play(scenario)


def test_writes_that_no_client_waits_for_share_a_commit(
    play: Play, commits: HeldCommits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writes, "MAX_DELAY_SECONDS", 1000.0)

    async def scenario(store: SqliteStore) -> None:
        for revision in range(1, 6):
            assert await store.submit(Put(f"{revision}", b"")) == revision
            await asyncio.sleep(0.001)
        assert (commits.count, store.durable) == (0, 0)
        await store.until_durable(3)
        assert (commits.count, store.durable) == (1, 5)
        await store.submit(Put("a", b""))
        assert await store.write(Put("b", b"")) == 7
        assert (commits.count, store.durable) == (2, 7)
        await store.submit(Put("c", b""))

    play(scenario)
    assert commits.count == 3  # closing waits for the last one


def test_writes_that_no_client_waits_for_are_committed_soon(
    play: Play, commits: HeldCommits
) -> None:
    async def scenario(store: SqliteStore) -> None:
        await store.submit(Put("a", b""))
        while store.durable < 1:
            await asyncio.sleep(0.001)
        assert commits.count == 1

    play(scenario)


def test_what_is_shown_is_bounded(
    play: Play, commits: HeldCommits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writes, "MAX_WRITES_PER_COMMIT", 3)

    async def scenario(store: SqliteStore) -> None:
        await begin_commit(store, commits)
        others = [asyncio.create_task(store.submit(Put(f"b{n}", b""))) for n in range(5)]
        assert await is_waiting(others[3])
        assert store.announced == 4
        commits.release()
        assert await asyncio.gather(*others) == list(range(2, 7))
        await store.until_durable(6)
        assert commits.count == 3

    play(scenario)


def test_a_conflict_is_answered_when_what_it_shows_is_durable(
    play: Play, commits: HeldCommits
) -> None:
    async def scenario(store: SqliteStore) -> None:
        commits.hold()
        await store.submit(Put("a", b"1"))
        refused = asyncio.create_task(store.write(Put("a", b"2", MISSING)))
        assert await is_waiting(refused)
        commits.release()
        with pytest.raises(RevisionConflictError):
            await refused
        assert store.durable == 1

    play(scenario)


def test_conflicts_are_decided_on_what_is_shown(play: Play, commits: HeldCommits) -> None:
    async def scenario(store: SqliteStore) -> None:
        commits.hold()
        first = asyncio.create_task(store.submit(Put("a", b"1", MISSING)))
        second = asyncio.create_task(store.submit(Put("a", b"2", MISSING)))
        assert await first == 1
        with pytest.raises(RevisionConflictError):
            await second
        commits.release()

    play(scenario)


@pytest.mark.parametrize("window", [1, 100])
def test_the_past_can_be_read_during_a_commit(
    window: int, play: Play, commits: HeldCommits
) -> None:
    async def scenario(store: SqliteStore) -> None:
        for number in range(1, 6):
            await store.write(Put("a", b"%d" % number))
        commits.hold()
        await store.submit(Put("a", b"6"), Put("b", b"6"))
        listing = asyncio.create_task(store.list("", revision=3))
        watch = store.watch("", 2)
        reading = asyncio.create_task(watch.backlog())
        await is_waiting(listing)
        commits.release()

        page = await listing
        assert [(entry.key, entry.value) for entry in page.entries] == [("a", b"3")]
        found = [changes[0].revision for changes in await reading]
        while found[-1] < 6:
            found += [changes[0].revision for changes in await watch.backlog()]
        assert found == [3, 4, 5, 6]

    play(scenario, window)


def test_compaction_waits_for_the_commit(play: Play, commits: HeldCommits) -> None:
    async def scenario(store: SqliteStore) -> None:
        await store.write(Put("a", b"1"))
        commits.hold()
        await store.submit(Put("a", b"2"))
        compacting = asyncio.create_task(store.compact(2))
        assert await is_waiting(compacting)
        commits.fail()
        with pytest.raises(StoreUnavailableError):
            await compacting
        assert await store.oldest() == 0

    play(scenario)


def test_a_failed_commit_is_withdrawn(
    play: Play, commits: HeldCommits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writes, "RETRY_SECONDS", 0.01)
    withdrawn: list[int] = []

    async def scenario(store: SqliteStore) -> None:
        await store.write(Put("a", b"1"), Put("b", b"1"))
        watch, not_begun = store.watch("", 1), store.watch("", 2)
        assert watch.pending() == []
        store.on_withdrawal(lambda: withdrawn.append(store.durable))
        commits.hold()
        both = [store.submit(Put("a", b"2")), store.submit(Put("c", b"3"))]
        assert await asyncio.gather(*both) == [2, 3]
        confirmed = asyncio.create_task(store.until_durable(3))
        assert await is_waiting(confirmed)
        # These may have been written because of what was shown.
        assert await store.submit(Put("a", b"4")) == 4
        follower = asyncio.create_task(store.write(Put("d", b"5")))
        assert await is_waiting(follower)

        commits.fail()
        with pytest.raises(StoreUnavailableError):
            await confirmed
        with pytest.raises(StoreUnavailableError):
            await follower
        assert withdrawn == [1]
        assert store.withdrawals == 1
        assert (store.announced, store.durable) == (1, 1)
        entries = (await store.list("")).entries
        assert [(entry.key, entry.value) for entry in entries] == [("a", b"1"), ("b", b"1")]
        for each in (watch, not_begun):
            with pytest.raises(SlowWatcherError):
                each.pending()

        commits.release()
        while store.trouble is not None:
            await asyncio.sleep(0.01)
        # 2 to 5 stood for something else.
        assert await store.write(Put("a", b"6")) == 6
        with pytest.raises(RevisionConflictError):
            await store.write(Put("a", b"7", 2))
        history = [
            (change.revision, change.key)
            for changes in await store.watch("", 1).backlog()
            for change in changes
        ]
        assert history == [*((revision, WITHDRAWN) for revision in (2, 3, 4, 5)), (6, "a")]

    play(scenario)


def test_after_a_failure_writes_are_shown_when_they_are_durable(
    play: Play, commits: HeldCommits
) -> None:
    """Until one succeeds: watchers are not cut off again and again while a disk is full."""

    async def scenario(store: SqliteStore) -> None:
        commits.fail()
        await store.submit(Put("a", b"1"))
        with pytest.raises(StoreUnavailableError):
            await store.until_durable(1)
        for _ in range(3):
            with pytest.raises(StoreUnavailableError):
                await store.submit(Put("a", b"1"))
        assert store.withdrawals == 1
        commits.release()
        assert await store.submit(Put("a", b"1")) == 2
        assert store.durable == 2
        commits.hold()
        assert await store.submit(Put("a", b"1")) == 3
        assert store.durable == 2
        commits.release()

    play(scenario)


def test_a_withdrawn_store_opens_again(tmp_path: Path, commits: HeldCommits) -> None:
    """The revisions that took the place of withdrawn ones are whole."""

    async def scenario() -> None:
        async with opened(tmp_path / "store.db") as store:
            commits.fail()
            await asyncio.gather(*(store.submit(Put(f"{n}", b"")) for n in range(5)))
            with pytest.raises(StoreUnavailableError):
                await store.until_durable(5)
            commits.release()
            assert await store.write(Put("a", b"")) == 6
        async with opened(tmp_path / "store.db") as store:
            assert await store.revision() == 6
            keys = [entry.key for entry in (await store.list("")).entries]
            assert keys == ["a", WITHDRAWN]

    asyncio.run(scenario())


def test_a_commit_that_only_seemed_to_fail_is_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = RevisionLog.append

    def append_and_fail(log: RevisionLog, batches: Sequence[Batch], last: int, time: float) -> None:
        append(log, batches, last, time)
        raise sqlite3.OperationalError("disk I/O error")

    async def scenario() -> None:
        async with opened(tmp_path / "store.db") as store:
            monkeypatch.setattr(RevisionLog, "append", append_and_fail)
            await store.submit(Put("a", b"1"))
            with pytest.raises(StoreUnavailableError):
                await store.until_durable(1)
            assert await value_of(store, "a") is None
            monkeypatch.setattr(RevisionLog, "append", append)
            assert await store.write(Put("b", b"2")) == 2
            assert await value_of(store, "a") == b"1"
            await store.until_durable(1)

    asyncio.run(scenario())


def test_what_followed_a_commit_that_only_seemed_to_fail_is_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, is_written, may_end = RevisionLog.append, threading.Event(), threading.Event()

    def append_and_fail(log: RevisionLog, batches: Sequence[Batch], last: int, time: float) -> None:
        append(log, batches, last, time)
        is_written.set()
        assert may_end.wait(60)
        raise sqlite3.OperationalError("disk I/O error")

    async def scenario() -> None:
        async with opened(tmp_path / "store.db") as store:
            monkeypatch.setattr(RevisionLog, "append", append_and_fail)
            await store.submit(Put("a", b"1"))
            while not is_written.is_set():
                await asyncio.sleep(0.001)
            assert await store.submit(Put("a", b"2")) == 2
            assert await store.submit(Put("a", b"3")) == 3
            may_end.set()
            with pytest.raises(StoreUnavailableError):
                await store.until_durable(3)
            monkeypatch.setattr(RevisionLog, "append", append)
            assert await store.write(Put("b", b"")) == 4
            assert await value_of(store, "a") == b"1"
            await store.until_durable(1)
            for revision in (2, 3):
                with pytest.raises(StoreUnavailableError):
                    await store.until_durable(revision)
        async with opened(tmp_path / "store.db") as store:
            keys = [entry.key for entry in (await store.list("")).entries]
            assert keys == ["a", "b", WITHDRAWN]

    asyncio.run(scenario())
