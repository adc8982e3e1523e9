"""What can go wrong with a file, and what does not even then."""

from __future__ import annotations

import asyncio
import re
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from allot.storage import revision_log, sqlite_schema, sqlite_writes
from allot.storage.interface import (
    Change,
    CompactedError,
    DamagedStoreError,
    Delete,
    Entry,
    Put,
    StorageError,
    Store,
    StoreFullError,
    StoreUnavailableError,
)
from allot.storage.revision_log import RevisionLog
from allot.storage.sqlite import SqliteStore
from allot.storage.sqlite_writes import MAX_TURNS
from allot.storage.transactions import Batch


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def fill(path: Path, count: int = 3) -> None:
    async def write() -> None:
        store = await SqliteStore.open(path)
        for index in range(count):
            await store.write(Put(f"a/{index % 100}", b"x" * 1000))
        await store.close()

    asyncio.run(write())


def opening_error(path: Path) -> str:
    async def attempt() -> None:
        await (await SqliteStore.open(path)).close()

    with pytest.raises(StorageError) as caught:
        asyncio.run(attempt())
    return str(caught.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    fill(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    assert "newer version of allot (schema 99" in opening_error(path)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
    assert "another program" in opening_error(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 1")
    assert "another program" in opening_error(path)
    with sqlite3.connect(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("notes",)]


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.write_text("these are my notes\n" * 1000)
    assert "damaged or not a database" in opening_error(path)
    assert path.read_text().startswith("these are my notes")


def test_a_damaged_file_is_noticed(path: Path) -> None:
    fill(path, 200)
    with path.open("r+b") as file:
        file.seek(5 * 4096)  # not all of some page
        file.write(b"\xa5" * 4096 * 10)
    assert "damaged" in opening_error(path)


def test_a_cut_off_file_is_noticed(path: Path) -> None:
    fill(path, 200)
    with path.open("r+b") as file:
        file.truncate(20 * 4096)
    assert "damaged" in opening_error(path)


def change(path: Path, *statements: str) -> None:
    """As damage would that SQLite cannot see."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        pytest.param(
            "UPDATE log SET value = x'00' WHERE place = 7 << 16",
            r"record of 'a/6' at revision 7 does not match its checksum",
            id="value",
        ),
        pytest.param("UPDATE log SET key = 'b' WHERE place = 7 << 16", "checksum", id="key"),
        pytest.param("UPDATE log SET created = 3 WHERE place = 7 << 16", "checksum", id="created"),
        pytest.param("UPDATE log SET created = 'x' WHERE place = 7 << 16", "type", id="type"),
        pytest.param("UPDATE log SET place = 999 << 16 WHERE place = 7 << 16", "", id="place"),
        pytest.param("DELETE FROM log WHERE place = 150 << 16", "revision 149 are m", id="lost"),
        pytest.param("DELETE FROM log WHERE place >> 16 > 100", "says that 203", id="lost-end"),
        pytest.param(
            "DELETE FROM log WHERE place = 202 << 16 | 2", "revision 202 are m", id="lost-part"
        ),
        pytest.param("DELETE FROM log WHERE place = 1 << 16", "up to revision 5", id="lost-old"),
        pytest.param("DELETE FROM progress", "what was compacted", id="no-progress"),
        pytest.param("UPDATE progress SET compacted = 6", "what was compacted", id="progress"),
        pytest.param("UPDATE times SET time = 7", "time of revision", id="times"),
        pytest.param("UPDATE times SET time = 'x'", "another type", id="type-of-time"),
        pytest.param("UPDATE progress SET kept = 'x'", "another type", id="type-of-progress"),
        pytest.param("DROP TABLE times", "not those of schema 2", id="table"),
        pytest.param("PRAGMA user_version = 1", "not those of schema 1", id="version"),
        pytest.param("PRAGMA user_version = 0", "not those of schema 0", id="version-0"),
    ],
)
def test_a_changed_record_is_noticed(path: Path, statement: str, problem: str) -> None:
    clock = Clock()

    async def write() -> None:
        store = await SqliteStore.open(path, clock=clock, compaction_interval_seconds=0)
        for index in range(201):
            await store.write(Put(f"a/{index % 100}" if index else "old", b"x" * 1000))
            clock.now += 10
        await store.write(Put("x", b""), Put("y", b""), Put("z", b""))
        await store.write(Delete("x"))
        await store.compact(5)
        await store.close()

    asyncio.run(write())
    change(path, statement)
    before = path.read_bytes()
    error = opening_error(path)
    assert f"{path} is damaged: " in error
    assert re.search(problem, error), error
    assert f"`allot storage rescue {path} --to NEW`" in error
    assert path.read_bytes() == before


def test_damage_that_comes_while_it_is_open_is_noticed(path: Path) -> None:
    async def scenario() -> None:
        store = await SqliteStore.open(path, window_revisions=1)
        for index in range(10):
            await store.write(Put("a", b"%d" % index))
        change(path, "UPDATE log SET value = x'00' WHERE place = 3 << 16")
        with pytest.raises(DamagedStoreError, match="'a' at revision 3"):
            await store.watch("", 1).backlog()
        with pytest.raises(DamagedStoreError, match="'a' at revision 3"):
            await store.list("", revision=3)
        change(path, "DELETE FROM log WHERE place = 3 << 16")
        with pytest.raises(DamagedStoreError, match="'a' at revision 3 is missing"):
            await store.compact(5)
        await store.close()

    asyncio.run(scenario())


def test_a_place_that_does_not_exist(tmp_path: Path) -> None:
    assert "No such file or directory" in opening_error(tmp_path / "nowhere" / "store.db")
    assert "cannot be opened" in opening_error(tmp_path)


def test_a_file_that_failed_to_open_is_not_locked(path: Path) -> None:
    path.write_text("no database" * 1000)
    opening_error(path)
    path.unlink()
    fill(path)


def test_a_second_process_cannot_open_the_file(path: Path) -> None:
    program = f"""
import asyncio
from pathlib import Path
from allot.storage.sqlite import SqliteStore
asyncio.run(SqliteStore.open(Path({str(path)!r})))
"""

    async def scenario() -> None:
        store = await SqliteStore.open(path)
        await store.write(Put("a", b""))
        with pytest.raises(StorageError, match="in use by another process"):
            await SqliteStore.open(path)
        other = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert other.returncode != 0
        assert "is in use by another process (pid" in other.stderr
        assert await store.write(Put("b", b"")) == 2
        await store.close()
        store = await SqliteStore.open(path)
        assert await store.revision() == 2
        await store.close()

    asyncio.run(scenario())


def test_others_cannot_read_the_file(path: Path) -> None:
    fill(path)
    for file in path.parent.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


def test_a_migration_keeps_what_there_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, 5)
    ours = sqlite_schema.MIGRATIONS
    newer = (*ours, ("CREATE TABLE extra (note TEXT)", "INSERT INTO extra VALUES ('hello')"))
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", newer)
    fill(path, 1)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT note FROM extra").fetchall() == [("hello",)]
        assert connection.execute("SELECT count(*) FROM log").fetchone() == (6,)
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", ours)
    assert "newer version" in opening_error(path)


@contextmanager
def files_may_not_grow(size: int) -> Iterator[None]:
    """What writing beyond `size` fails with is an I/O error, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_refuses_writes_and_loses_nothing(path: Path) -> None:
    async def scenario() -> None:
        store = await SqliteStore.open(path)
        watch = store.watch("", 0)
        answered: dict[str, int] = {}

        async def write(key: str) -> None:
            answered[key] = await store.write(Put(key, b"x" * 10_000))

        await asyncio.gather(*(write(f"before/{index}") for index in range(50)))
        wal = path.with_name(path.name + "-wal")
        with files_may_not_grow(wal.stat().st_size + 20_000):
            outcomes = await asyncio.gather(
                *(write(f"during/{index}") for index in range(50)), return_exceptions=True
            )
            assert any(isinstance(outcome, StoreUnavailableError) for outcome in outcomes)
            assert {type(each) for each in outcomes} <= {StoreUnavailableError, type(None)}
            # What is there can still be read.
            assert len((await store.list("before/")).entries) == 50
            with pytest.raises(StoreUnavailableError):
                await write("during/alone")
        await asyncio.gather(*(write(f"after/{index}") for index in range(50)))

        assert len(set(answered.values())) == len(answered)
        entries = (await store.list("")).entries
        assert {entry.key: entry.revision for entry in entries} == answered
        seen = [changes[0].revision for changes in watch.pending()]
        assert seen == sorted(answered.values())
        await store.close()

        store = await SqliteStore.open(path)
        assert (await store.list("")).entries == entries
        assert await store.revision() == max(answered.values())
        await store.close()

    asyncio.run(scenario())


def trouble_of(store: Store) -> str | None:
    return store.trouble


def test_a_full_disk_is_said_and_over_when_there_is_space(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite answers the same to a limit of pages as to a disk without space."""
    ours = revision_log.PRAGMAS
    monkeypatch.setattr(sqlite_writes, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(revision_log, "PRAGMAS", (*ours, "max_page_count=30"))

    async def scenario() -> None:
        store = await SqliteStore.open(path)
        await store.write(Put("small", b"x" * 1000))
        assert trouble_of(store) is None
        for _ in range(2):
            with pytest.raises(StoreFullError, match=r"store\.db") as caught:
                await store.write(Put("large", b"x" * 1_000_000))
            assert "no space left" in str(caught.value)
        assert "no space left" in (trouble_of(store) or "")
        assert await store.get("large") is None
        assert await store.revision() == 1
        monkeypatch.setattr(revision_log, "PRAGMAS", ours)
        async with asyncio.timeout(30):
            while trouble_of(store) is not None:  # without any write
                await asyncio.sleep(0.01)
        assert await store.write(Put("large", b"x" * 1_000_000)) == 2
        await store.close()

    asyncio.run(scenario())


def test_a_commit_that_only_seemed_to_fail_is_shown_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome was unknown to the writer. Later reads see what was written, in order."""
    append = RevisionLog.append

    def append_and_fail(log: RevisionLog, batches: Sequence[Batch], last: int, time: float) -> None:
        append(log, batches, last, time)
        raise sqlite3.OperationalError("disk I/O error")

    async def scenario() -> None:
        store = await SqliteStore.open(path)
        watch = store.watch("", 0)
        await store.write(Put("a", b"1"))
        monkeypatch.setattr(RevisionLog, "append", append_and_fail)
        with pytest.raises(StoreUnavailableError, match="disk I/O error"):
            await store.write(Put("a", b"2"), Put("b", b"2"))
        monkeypatch.setattr(RevisionLog, "append", append)
        assert await store.write(Put("c", b"3")) == 3
        shown = [[(change.key, change.revision) for change in each] for each in watch.pending()]
        assert shown == [[("a", 1)], [("a", 2), ("b", 2)], [("c", 3)]]
        entry = await store.get("a")
        assert entry is not None
        assert entry.value == b"2"
        await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("count", [1, 64, 65, 150])
def test_the_rows_of_a_commit_are_stored_together_or_not_at_all(path: Path, count: int) -> None:
    def batches(first: int) -> list[Batch]:
        return [
            (Change(revision, f"{revision}", Entry(f"{revision}", b"v", revision, revision), None),)
            for revision in range(first, first + count)
        ]

    log = RevisionLog(path)
    try:
        log.append(batches(1), 0, 1.0)
        log.append(batches(count + 1), count, 1.0)
        again = [*batches(2 * count + 1), *batches(2 * count)]
        with pytest.raises(sqlite3.IntegrityError):
            log.append(again, 2 * count, 1.0)
        assert log.revision() == 2 * count
        stored = log.history("", 0, 2 * count, 1000).batches
        assert stored == [*batches(1), *batches(count + 1)]
    finally:
        log.close()


def test_writes_that_wait_are_committed_together(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    append = RevisionLog.append

    def count(log: RevisionLog, batches: Sequence[Batch], last: int, time: float) -> None:
        sizes.append(len(batches))
        append(log, batches, last, time)

    monkeypatch.setattr(RevisionLog, "append", count)

    async def scenario() -> None:
        store = await SqliteStore.open(path)
        first = asyncio.create_task(store.write(Put("first", b"")))
        while not sizes:
            await asyncio.sleep(0)
        rest = [store.write(Put(f"{index}", b"")) for index in range(100)]
        revisions = await asyncio.gather(first, *rest)
        assert revisions == list(range(1, 102))
        assert sizes == [1, 100]
        await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("turns", [2, 10 * MAX_TURNS])
def test_writes_of_successive_turns_of_the_event_loop_share_a_commit(
    turns: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But the first one does not wait for all that may come."""
    sizes: list[int] = []
    append = RevisionLog.append

    def count(log: RevisionLog, batches: Sequence[Batch], last: int, time: float) -> None:
        sizes.append(len(batches))
        append(log, batches, last, time)

    monkeypatch.setattr(RevisionLog, "append", count)

    async def write_after(store: SqliteStore, waits: int) -> int:
        for _ in range(waits):
            await asyncio.sleep(0)
        return await store.write(Put(f"{waits}", b""))

    async def scenario() -> None:
        store = await SqliteStore.open(path)
        writes = [write_after(store, waits) for waits in range(turns + 1)]
        assert await asyncio.gather(*writes) == list(range(1, turns + 2))
        assert sum(sizes) == turns + 1
        assert 2 < sizes[0] <= MAX_TURNS + 2
        await store.close()

    asyncio.run(scenario())


def test_a_closed_store_says_so(path: Path) -> None:
    async def scenario() -> None:
        store = await SqliteStore.open(path)
        revision = await store.write(Put("a", b""))
        await store.close()
        with pytest.raises(StoreUnavailableError):
            await store.compact(revision)
        with pytest.raises(StoreUnavailableError):
            await store.compact_old()
        await store.close()

    asyncio.run(scenario())


def test_a_clock_that_is_set_back_does_not_stop_compaction(path: Path) -> None:
    clock = Clock()

    async def scenario() -> None:
        store = await SqliteStore.open(path, clock=clock, compaction_interval_seconds=0)
        await store.write(Put("a", b""))
        clock.now += 1e6
        await store.write(Put("a", b""))
        clock.now -= 1e6
        for _ in range(100):
            await store.write(Put("a", b""))
            clock.now += 10
        await store.compact_old()
        assert 60 < await store.oldest() <= 102 - 30
        await store.close()

    asyncio.run(scenario())


def test_five_minutes_of_history_are_kept(path: Path) -> None:
    clock = Clock()

    async def scenario() -> None:
        store = await SqliteStore.open(path, clock=clock, compaction_interval_seconds=0)
        revision_at: dict[float, int] = {}
        start = clock.now
        while clock.now < start + 1200:
            revision_at[clock.now] = await store.write(Put(f"{clock.now % 7}", b""), Delete("none"))
            clock.now += 3
            if clock.now == start + 600:  # the times outlive the process
                await store.close()
                store = await SqliteStore.open(path, clock=clock, compaction_interval_seconds=0)
            await store.compact_old()
            kept = revision_at[max(start, clock.now - 300)]
            oldest = await store.oldest()
            assert oldest <= kept
            await store.list("", revision=kept)
            if clock.now > start + 330:
                assert oldest >= revision_at[clock.now - 330]
                with pytest.raises(CompactedError):
                    await store.list("", revision=revision_at[clock.now - 330] - 1)
        await store.close()
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT count(*) FROM log").fetchone()[0] < 120
            assert connection.execute("SELECT count(*) FROM times").fetchone()[0] <= 120

    asyncio.run(scenario())


def test_compaction_happens_by_itself(path: Path) -> None:
    clock = Clock()

    async def scenario() -> None:
        store = await SqliteStore.open(path, clock=clock, compaction_interval_seconds=0.01)
        for _ in range(5):
            await store.write(Put("a", b""))
            clock.now += 100
        async with asyncio.timeout(10):
            while await store.oldest() < 1:
                await asyncio.sleep(0.01)
        await store.close()

    asyncio.run(scenario())
