"""Saving what is intact out of a damaged file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from allot.storage import revision_log
from allot.storage.high_water_mark import mark_path
from allot.storage.interface import CompactedError, Delete, Entry, Put, StorageError
from allot.storage.rescue import Gap, examine, rescue
from allot.storage.sqlite import SqliteStore

PAGE = revision_log.PAGE_SIZE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def entries_in(path: Path) -> Sequence[Entry]:
    store = await SqliteStore.open(path)
    entries = (await store.list("")).entries
    await store.close()
    return entries


def fill(path: Path) -> Sequence[Entry]:
    """200 objects of several sizes in many pages, one of them deleted, half of the history compacted."""

    async def write() -> Sequence[Entry]:
        store = await SqliteStore.open(path, compaction_interval_seconds=0)
        for index in range(200):
            value = b"%d " % index * (3000 if index % 50 == 0 else 200)
            await store.write(Put(f"key/{index:03}", value), Put("last", b"%d" % index))
        await store.write(Delete("key/010"))
        await store.compact(100)
        await store.close()
        return await entries_in(path)

    return asyncio.run(write())


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_an_intact_file(path: Path, tmp_path: Path) -> None:
    before = fill(path)
    found = examine(path)
    assert found.problem is None
    assert (found.damaged, found.gaps, found.missing_old, found.notes) == ((), (), 0, ())
    assert found.revision == 201
    rescue(path, tmp_path / "new" / "store.db")
    assert asyncio.run(entries_in(tmp_path / "new" / "store.db")) == before


def test_damaged_records_are_named(path: Path, tmp_path: Path) -> None:
    before = fill(path)
    change(
        path,
        "UPDATE log SET value = x'00' WHERE key = 'key/150'",
        "UPDATE log SET value = x'00' WHERE key = 'key/007'",
        "UPDATE log SET value = x'00' WHERE key = 'last' AND place >> 16 = 150",
    )
    found = examine(path)
    assert "does not match its checksum" in (found.problem or "")
    assert [(each.key, each.revision, each.known, each.is_lost) for each in found.damaged] == [
        ("key/007", 8, None, True),
        ("last", 150, 200, False),
        ("key/150", 151, None, True),
    ]
    new = tmp_path / "new.db"
    rescue(path, new)
    kept = [entry for entry in before if entry.key not in {"key/007", "key/150"}]
    assert asyncio.run(entries_in(new)) == kept


def test_revisions_go_on_above_all_that_were_given_out(path: Path, tmp_path: Path) -> None:
    fill(path)
    change(path, "DELETE FROM log WHERE place >> 16 > 180")
    found = rescue(path, tmp_path / "new.db")
    assert found.gaps == (Gap(181, 201),)

    async def scenario() -> None:
        store = await SqliteStore.open(tmp_path / "new.db")
        entry = await store.get("key/150")
        assert entry is not None
        assert entry.revision == 151
        assert await store.write(Put("key/150", b"", 151)) > 201
        with pytest.raises(CompactedError):
            await store.watch("", 150).backlog()
        await store.close()
        assert await entries_in(tmp_path / "new.db")

    asyncio.run(scenario())


def test_a_damaged_root_page_costs_nothing_else(path: Path, tmp_path: Path) -> None:
    """SQLite reaches no record any more."""
    before = fill(path)
    with sqlite3.connect(path) as connection:
        root = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'log'"
        ).fetchone()[0]
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * PAGE)
        file.write(bytes(PAGE))
    found = rescue(path, tmp_path / "new.db")
    assert found.problem
    assert asyncio.run(entries_in(tmp_path / "new.db")) == before


@pytest.mark.parametrize("page_size", [4096, PAGE])
def test_a_damaged_header_costs_at_most_deletes(
    page_size: int, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revision_log, "PAGE_SIZE", page_size)  # of files of earlier versions
    before = fill(path)
    with path.open("r+b") as file:
        file.write(bytes(page_size))
    found = rescue(path, tmp_path / "new.db")
    assert any("may be back" in note for note in found.notes)
    saved = asyncio.run(entries_in(tmp_path / "new.db"))
    assert {*before} <= {*saved}


def test_what_is_missing_without_a_trace_is_counted(path: Path) -> None:
    fill(path)
    change(path, "DELETE FROM log WHERE key = 'key/020'", "DELETE FROM log WHERE place >> 16 = 120")
    found = examine(path)
    assert (found.missing_old, found.gaps) == (1, (Gap(120, 120),))


def test_writes_that_are_only_in_the_write_ahead_log(path: Path, tmp_path: Path) -> None:
    """The log is damaged in its middle: what comes after is saved too."""
    killed = tmp_path / "killed"
    killed.mkdir()

    async def scenario() -> None:
        store = await SqliteStore.open(path)
        for index in range(100):
            await store.write(Put(f"key/{index:03}", b"x" * 3000))
        for file in path.parent.glob("store.db*"):
            if not file.name.endswith(("-shm", ".lock")):
                (killed / file.name).write_bytes(file.read_bytes())
        await store.close()

    asyncio.run(scenario())
    wal = killed / "store.db-wal"
    content = bytearray(wal.read_bytes())
    content[len(content) // 2] ^= 1
    wal.write_bytes(content)
    found = rescue(killed / "store.db", tmp_path / "new.db")
    assert "store.db-wal is damaged" in (found.problem or "")
    assert len(found.current) >= 99
    assert found.revision == 100


def test_a_damaged_mark_is_not_needed(path: Path, tmp_path: Path) -> None:
    before = fill(path)
    mark_path(path).write_bytes(b"")
    found = rescue(path, tmp_path / "new.db")
    assert "store.db-mark is damaged" in (found.problem or "")
    assert asyncio.run(entries_in(tmp_path / "new.db")) == before


def test_nothing_is_overwritten(path: Path, tmp_path: Path) -> None:
    fill(path)
    (tmp_path / "new.db").write_text("mine")
    with pytest.raises(StorageError, match=r"new\.db exists already"):
        rescue(path, tmp_path / "new.db")
    assert (tmp_path / "new.db").read_text() == "mine"


def test_nothing_is_intact(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"no database " * 1000)
    with pytest.raises(StorageError, match=r"nothing in .* is intact"):
        rescue(path, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_store_in_use_is_left_alone(path: Path) -> None:
    async def scenario() -> None:
        store = await SqliteStore.open(path)
        with pytest.raises(StorageError, match="in use by another process"):
            examine(path)
        await store.close()

    asyncio.run(scenario())
