"""Files of earlier versions: they open, nothing is lost, and a migration may be interrupted anywhere."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import tarfile
from pathlib import Path
from typing import Any

import pytest

from allot.storage import sqlite_schema
from allot.storage.interface import Entry, Put, StorageError
from allot.storage.sqlite import SqliteStore

DATA = Path(__file__).parent / "data"
EARLIER = ["schema-1"]
"""Written by the versions before, and not closed: part of it is in the write-ahead log."""


def unpack(name: str, directory: Path) -> tuple[Path, dict[str, Any]]:
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4
        archive.extractall(directory)  # noqa: S202 - of this repository
    expected: dict[str, Any] = json.loads((directory / "expected.json").read_text())
    return directory / "store.db", expected


def entries(rows: list[list[Any]]) -> list[Entry]:
    return [Entry(key, value.encode(), *revisions) for key, value, *revisions in rows]


async def check(path: Path, expected: dict[str, Any]) -> None:
    store = await SqliteStore.open(path, compaction_interval_seconds=0)
    assert await store.revision() == expected["revision"]
    assert await store.oldest() == expected["oldest"]
    assert (await store.list("")).entries == entries(expected["entries"])
    assert (await store.list("", revision=90)).entries == entries(expected["entries_at_90"])
    await store.close()


@pytest.mark.parametrize("name", EARLIER)
def test_nothing_is_lost(tmp_path: Path, name: str) -> None:
    path, expected = unpack(name, tmp_path)

    async def scenario() -> None:
        await check(path, expected)
        await check(path, expected)
        store = await SqliteStore.open(path, compaction_interval_seconds=0)
        assert await store.write(Put("new", b"")) == expected["revision"] + 1
        await store.compact(expected["revision"])
        await store.close()
        store = await SqliteStore.open(path)
        assert len((await store.list("")).entries) == len(expected["entries"]) + 1
        await store.close()

    asyncio.run(scenario())
    with sqlite3.connect(path) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    assert version == len(sqlite_schema.MIGRATIONS)


@pytest.mark.parametrize("name", EARLIER)
def test_an_interrupted_migration_starts_over(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are copied before every statement, as `kill -9` would leave them."""
    path, expected = unpack(name, tmp_path)
    copies: list[Path] = []
    migrate = sqlite_schema.migrate

    def copy(_: str) -> None:
        target = tmp_path / f"copy-{len(copies)}"
        target.mkdir()
        for file in path.parent.glob("store.db*"):
            if not file.name.endswith(("-shm", ".lock")):
                shutil.copy(file, target)
        copies.append(target / path.name)

    def migrate_and_copy(connection: sqlite3.Connection, version: int) -> None:
        connection.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        connection.set_trace_callback(copy)
        migrate(connection, version)
        connection.set_trace_callback(None)

    monkeypatch.setattr("allot.storage.revision_log.migrate", migrate_and_copy)
    asyncio.run(check(path, expected))
    monkeypatch.undo()
    assert len(copies) > len(sqlite_schema.MIGRATIONS[-1])
    assert len({copy.with_name("store.db-wal").stat().st_size for copy in copies}) > 2
    for each in copies:
        asyncio.run(check(each, expected))


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, expected = unpack(EARLIER[0], tmp_path)
    ours = sqlite_schema.MIGRATIONS
    broken = (*ours[:-1], (*ours[-1][:-1], "DROP TABLE missing"))
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_schema, "MIGRATIONS", broken)
        with pytest.raises(StorageError, match="no such table: missing"):
            asyncio.run(check(path, expected))
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()
    asyncio.run(check(path, expected))
