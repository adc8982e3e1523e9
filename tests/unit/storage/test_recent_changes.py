"""Recent changes that are kept when a store is opened: read once, with everything else."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from allot.storage.interface import Change, Delete, Entry, Put
from allot.storage.log_verification import Contents, load
from allot.storage.revision_log import RevisionLog
from allot.storage.sqlite import SqliteStore


def written(path: Path, write: Callable[[SqliteStore], Awaitable[None]]) -> None:
    async def story() -> None:
        store = await SqliteStore.open(path, compaction_interval_seconds=0)
        await write(store)
        await store.close()

    asyncio.run(story())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Revisions 1 to 4: a and b, a again, b deleted, c."""
    path = tmp_path / "store.db"

    async def write(store: SqliteStore) -> None:
        await store.write(Put("a", b"1"), Put("b", b"1"))
        await store.write(Put("a", b"22"))
        await store.write(Delete("b"))
        await store.write(Put("c", b"4"))

    written(path, write)
    return path


def revisions(contents: Contents) -> list[int]:
    return [batch[0].revision for batch in contents.recent]


def test_changes_have_what_was_before_them(path: Path) -> None:
    a, b = Entry("a", b"1", 1, 1), Entry("b", b"1", 1, 1)
    assert load(path, None, 10, 1000).recent == [
        (Change(1, "a", a, None), Change(1, "b", b, None)),
        (Change(2, "a", Entry("a", b"22", 2, 1), a),),
        (Change(3, "b", None, b),),
        (Change(4, "c", Entry("c", b"4", 4, 4), None),),
    ]


@pytest.mark.parametrize(
    ("max_recent", "max_bytes", "kept"),
    [
        (0, 1000, []),
        (2, 1000, [3, 4]),
        (100, 1000, [1, 2, 3, 4]),
        (100, 0, []),
        (100, 2, [3, 4]),
        (100, 4, [3, 4]),
        (100, 5, [2, 3, 4]),
    ],
)
def test_only_so_many_revisions_and_bytes_are_kept(
    path: Path, max_recent: int, max_bytes: int, kept: list[int]
) -> None:
    assert revisions(load(path, None, max_recent, max_bytes)) == kept


def test_compacted_revisions_are_not_kept(path: Path) -> None:
    async def compact(store: SqliteStore) -> None:
        await store.compact(2)

    written(path, compact)
    contents = load(path, None, 10, 1000)
    assert revisions(contents) == [3, 4]
    assert contents.recent[0][0].previous == Entry("b", b"1", 1, 1)


def test_a_watch_that_comes_back_does_not_read_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise AssertionError("the file was read again")

    monkeypatch.setattr(RevisionLog, "history", read)

    async def watch(store: SqliteStore) -> None:
        async with asyncio.timeout(60), store.watch("", after=1) as changes:
            found = [(await anext(changes))[0].revision for _ in range(3)]
        assert found == [2, 3, 4]

    written(path, watch)
