"""The mark beside a database: lost writes are noticed, and nothing else is."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from allot.storage.high_water_mark import HighWaterMark, Mark, mark_path, read_mark
from allot.storage.interface import DamagedStoreError, Put, StorageError
from allot.storage.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def write(path: Path, count: int, value: bytes = b"x") -> int:
    store = await SqliteStore.open(path, compaction_interval_seconds=0)
    for index in range(count):
        await store.write(Put(f"key/{index}", value))
    revision = await store.revision()
    await store.close()
    return revision


async def write_and_copy(path: Path, target: Path, count: int) -> None:
    """The copy is what `kill -9` would leave."""
    store = await SqliteStore.open(path, compaction_interval_seconds=0)
    for index in range(count):
        await store.write(Put(f"key/{index}", b"x" * 500))
    target.mkdir()
    for name in ("store.db", "store.db-wal", "store.db-mark"):
        shutil.copy(path.with_name(name), target)
    await store.close()


def refused(path: Path) -> str:
    before = {file: file.read_bytes() for file in path.parent.glob("store.db*") if file.is_file()}
    with pytest.raises(StorageError) as caught:
        asyncio.run(write(path, 0))
    for file, content in before.items():
        if not file.name.endswith(("-shm", ".lock")):
            assert file.read_bytes() == content, f"{file} was changed"
    return str(caught.value)


def test_it_follows_every_write_and_says_when_all_was_closed(path: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    asyncio.run(write_and_copy(path, killed, 5))
    mark = read_mark(killed / "store.db")
    assert mark is not None
    assert (mark.revision, mark.is_clean) == (5, False)
    closed = read_mark(path)
    assert closed == mark._replace(is_clean=True)
    assert asyncio.run(write(killed / "store.db", 0)) == 5


def test_a_mark_that_is_behind_is_no_alarm(path: Path) -> None:
    """After a loss of power, or when it could not be written."""
    assert asyncio.run(write(path, 5)) == 5
    old = mark_path(path).read_bytes()
    assert asyncio.run(write(path, 3)) == 8
    mark_path(path).write_bytes(old)
    assert asyncio.run(write(path, 1)) == 9
    mark = read_mark(path)
    assert mark is not None
    assert mark.revision == 9


def test_a_mark_that_cannot_be_written_does_not_stop_writes(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        store = await SqliteStore.open(path)

        def fail(*_: object) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(HighWaterMark, "_write", fail)
        for _ in range(3):
            await store.write(Put("a", b""))
        monkeypatch.undo()
        await store.close()

    asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}-mark cannot be written: Input/output error"
    ]
    assert asyncio.run(write(path, 0)) == 3


@pytest.mark.parametrize("slot", [0, 4096])
def test_a_torn_write_leaves_the_other_slot(path: Path, slot: int) -> None:
    asyncio.run(write(path, 5))
    with mark_path(path).open("r+b") as file:
        file.seek(slot + 20)
        file.write(b"\xff" * 8)
    mark = read_mark(path)
    assert mark is not None
    assert mark.revision == 5
    assert asyncio.run(write(path, 1)) == 6


@pytest.mark.parametrize("content", [b"", b"\0" * 8192, b"notes" * 2000])
def test_a_damaged_mark_is_refused(path: Path, content: bytes) -> None:
    asyncio.run(write(path, 5))
    mark_path(path).write_bytes(content)
    assert "store.db-mark is damaged" in refused(path)


def test_a_missing_mark_is_accepted(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """So that a backup can be put into a new directory."""
    asyncio.run(write(path, 5))
    mark_path(path).unlink()
    assert asyncio.run(write(path, 0)) == 5
    assert not caplog.text
    assert mark_path(path).exists()


def test_a_missing_mark_beside_a_write_ahead_log_is_said(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(write_and_copy(path, tmp_path / "killed", 5))
    killed = tmp_path / "killed" / "store.db"
    mark_path(killed).unlink()
    assert asyncio.run(write(killed, 0)) == 5
    assert "store.db-mark is missing" in caplog.text


def test_a_missing_write_ahead_log_is_noticed(path: Path, tmp_path: Path) -> None:
    asyncio.run(write_and_copy(path, tmp_path / "killed", 20))
    killed = tmp_path / "killed" / "store.db"
    killed.with_name("store.db-wal").unlink()
    error = refused(killed)
    assert f"{killed} is damaged: its last revision is 0, but store.db-mark says that 20" in error
    assert "store.db-wal, which had the last writes, is missing" in error
    assert "allot storage rescue" in error


@pytest.mark.parametrize("cut", [1, 5000, 40_000])
def test_a_write_ahead_log_that_is_cut_off_is_noticed(path: Path, tmp_path: Path, cut: int) -> None:
    asyncio.run(write_and_copy(path, tmp_path / "killed", 20))
    wal = tmp_path / "killed" / "store.db-wal"
    with wal.open("r+b") as file:
        file.truncate(wal.stat().st_size - cut)
    error = refused(wal.with_name("store.db"))
    assert "says that 20 was written; store.db-wal is damaged or cut off" in error


@pytest.mark.parametrize("state", ["empty", "missing"])
def test_a_database_that_is_gone_is_noticed(path: Path, state: str) -> None:
    asyncio.run(write(path, 5))
    path.unlink()
    if state == "empty":
        path.touch()
    assert f"it is {state}, but store.db-mark says that revision 5 was written" in refused(path)


def test_an_empty_database_beside_a_full_write_ahead_log_is_noticed(
    path: Path, tmp_path: Path
) -> None:
    asyncio.run(write_and_copy(path, tmp_path / "killed", 20))
    killed = tmp_path / "killed" / "store.db"
    mark_path(killed).unlink()
    killed.write_bytes(b"")
    assert "it is empty, but store.db-wal is not" in refused(killed)


def test_an_older_copy_is_noticed(path: Path) -> None:
    asyncio.run(write(path, 5))
    old = path.read_bytes()
    asyncio.run(write(path, 1))
    path.write_bytes(old)
    error = refused(path)
    assert "its last revision is 5, but store.db-mark says that 6 was written" in error
    assert "it is older than when it was closed" in error


def test_a_stale_write_ahead_log_is_noticed(path: Path, tmp_path: Path) -> None:
    asyncio.run(write_and_copy(path, tmp_path / "killed", 20))
    asyncio.run(write(path, 20, b"y" * 500))
    shutil.copy(tmp_path / "killed" / "store.db-wal", path.parent)
    assert "is damaged" in refused(path)


def test_another_history_is_noticed(path: Path, tmp_path: Path) -> None:
    asyncio.run(write(path, 5))
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(path, other)
    asyncio.run(write(path, 3, b"one"))
    asyncio.run(write(other / "store.db", 3, b"two"))
    shutil.copy(other / "store.db", path)
    assert "it is from another history" in refused(path)


def test_a_mark_begins_durably_and_counts_on(path: Path) -> None:
    HighWaterMark(path, Mark(3)).close(is_clean=False)
    assert read_mark(path) == Mark(3)
    mark = HighWaterMark(path, Mark(4))
    mark.advance(5, 77)
    mark.close(is_clean=True)
    assert read_mark(path) == Mark(5, 77, True)
    mark_path(path).write_bytes(b"x" * 100)
    with pytest.raises(DamagedStoreError):
        read_mark(path)
