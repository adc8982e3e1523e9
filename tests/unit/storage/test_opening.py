"""Stores by their names on the command line."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from allot.storage.interface import Put, StorageError
from allot.storage.memory import MemoryStore
from allot.storage.opening import open_store
from allot.storage.sqlite import SqliteStore


def opened(spec: str, data_dir: Path | None) -> type:
    async def attempt() -> type:
        store = await open_store(spec, data_dir)
        await store.write(Put("a", b""))
        await store.close()
        return type(store)

    return asyncio.run(attempt())


def test_memory() -> None:
    assert opened("memory", None) is MemoryStore


def test_etcd_without_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "allot.storage.etcd", raising=False)
    monkeypatch.setitem(sys.modules, "allot.storage.etcd_client", None)

    with pytest.raises(StorageError) as raised:
        opened("etcd:http://127.0.0.1:1", None)

    assert str(raised.value).endswith("needs the packages grpcio and protobuf: install allot[etcd]")


def test_sqlite_with_a_path(tmp_path: Path) -> None:
    assert opened(f"sqlite:{tmp_path / 'x.db'}", None) is SqliteStore
    assert (tmp_path / "x.db").exists()


def test_sqlite_in_the_data_directory(tmp_path: Path) -> None:
    assert opened("sqlite", tmp_path / "new" / "data") is SqliteStore
    assert (tmp_path / "new" / "data" / "allot.db").exists()


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param("", "is not one of: sqlite", id="empty"),
        pytest.param("postgres:x", "is not one of: sqlite", id="unknown"),
        pytest.param("memory:x", "is not one of: sqlite", id="memory-with-place"),
        pytest.param("sqlite:", "has no path", id="sqlite-without-path"),
        pytest.param("sqlite", "needs a path or a data directory", id="no-data-directory"),
        pytest.param("etcd", "no etcd server is given", id="etcd-without-url"),
        pytest.param("etcd:", "no etcd server is given", id="etcd-with-empty-url"),
        pytest.param("etcd:localhost:2379", "is not the URL of an etcd", id="etcd-without-scheme"),
        pytest.param("etcd:http://h:99999", "is not the URL of an etcd", id="etcd-bad-port"),
        pytest.param("etcd:http://h/path", "is not the URL of an etcd", id="etcd-with-path"),
    ],
)
def test_what_cannot_be_opened_is_explained(spec: str, problem: str) -> None:
    with pytest.raises(StorageError, match=problem):
        opened(spec, None)


def test_a_data_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be made"):
        opened("sqlite", tmp_path / "file" / "data")
