"""Damaged copies of a database: each is noticed, or the damage changes nothing. Never other data, never an earlier revision.

What can be saved from a copy that is refused was written at some time, and new revisions are above all old ones.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from allot.storage import revision_log
from allot.storage.interface import Change, Delete, Entry, Operation, Put, StorageError
from allot.storage.rescue import rescue
from allot.storage.sqlite import SqliteStore
from tests.contract.one_loop import run

SEED = 20_380
PAGE = revision_log.PAGE_SIZE
NAME = "store.db"


class State(NamedTuple):
    """What a store shows."""

    entries: Sequence[Entry]
    revision: int
    history: Sequence[Sequence[Change]]


class Original(NamedTuple):
    """A database, and what it must show."""

    directory: Path
    state: State


class Originals(NamedTuple):
    """The same store at four moments. Each is whole."""

    early: Original
    """In the middle, as if it had been killed there."""
    late: Original
    """At the end, as if it had been killed."""
    closed: Original
    """Closed after that."""
    written: dict[tuple[str, int], bytes]
    """Every value that a key ever had, by key and revision."""


def copy(source: Path, target: Path) -> None:
    target.mkdir()
    for file in source.iterdir():
        if not file.name.endswith(("-shm", ".lock")):
            shutil.copy(file, target / file.name)


async def show(store: SqliteStore) -> State:
    oldest = await store.oldest()
    revision = await store.revision()
    watch = store.watch("", oldest)
    history: list[Sequence[Change]] = []
    while not history or history[-1][0].revision < revision:
        found = await watch.backlog()
        if not found:
            break
        history += found
    return State((await store.list("")).entries, revision, history)


async def show_file(path: Path) -> State:
    store = await SqliteStore.open(path, compaction_interval_seconds=0, window_revisions=10)
    try:
        return await show(store)
    finally:
        await store.close()


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Originals:
    """Puts, deletes, writes of several keys, values of many pages, compaction, and a log that is partly in its place."""
    place = tmp_path_factory.mktemp("originals")
    chance = random.Random(SEED)  # noqa: S311
    written: dict[tuple[str, int], bytes] = {}

    async def write(store: SqliteStore, count: int) -> None:
        for _ in range(count):
            keys = chance.sample(range(60), chance.choice((1, 1, 1, 3)))
            operations: list[Operation] = []
            for key in keys:
                value = chance.randbytes(chance.choice((10, 300, 300, 900, 9000)))
                operations.append(
                    Delete(f"key/{key}") if chance.random() < 0.2 else Put(f"key/{key}", value)
                )
            revision = await store.write(*operations)
            for operation in operations:
                if isinstance(operation, Put):
                    written[operation.key, revision] = operation.value

    async def make() -> Originals:
        live = place / "live"
        live.mkdir()
        path = live / NAME
        store = await SqliteStore.open(path, compaction_interval_seconds=0)
        await write(store, 120)
        await store.compact(70)
        await write(store, 30)
        copy(live, place / "early")
        early = await show(store)
        await write(store, 60)
        await store.compact(140)
        await write(store, 60)
        copy(live, place / "late")
        late = await show(store)
        await store.close()
        copy(live, place / "closed")
        return Originals(
            Original(place / "early", early),
            Original(place / "late", late),
            Original(place / "closed", late),
            written,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revision_log, "CHECKPOINT_BYTES", 40 * PAGE)
        return run(make())


def flip_bits(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def flip_header_bits(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    content[chance.randrange(min(100, len(content)))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def cut(file: Path, chance: random.Random) -> None:
    with file.open("r+b") as opened:
        opened.truncate(chance.randrange(file.stat().st_size))


def zero_pages(file: Path, chance: random.Random) -> None:
    overwrite(file, chance, bytes(PAGE * chance.choice((1, 1, 3))))


def garble_pages(file: Path, chance: random.Random) -> None:
    overwrite(file, chance, chance.randbytes(PAGE))


def overwrite(file: Path, chance: random.Random, content: bytes) -> None:
    start = chance.randrange(file.stat().st_size) // PAGE * PAGE
    with file.open("r+b") as opened:
        opened.seek(start)
        opened.write(content[: file.stat().st_size - start])


def swap_pages(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    pages = max(len(content) // PAGE, 1)
    one, other = (chance.randrange(pages) * PAGE for _ in range(2))
    content[one : one + PAGE], content[other : other + PAGE] = (
        content[other : other + PAGE],
        content[one : one + PAGE],
    )
    file.write_bytes(content)


def empty(file: Path, _: random.Random) -> None:
    file.write_bytes(b"")


def remove(file: Path, _: random.Random) -> None:
    file.unlink()


IN_A_FILE: Sequence[Callable[[Path, random.Random], None]] = (
    flip_bits,
    flip_bits,
    flip_bits,
    flip_header_bits,
    cut,
    zero_pages,
    zero_pages,
    garble_pages,
    swap_pages,
    empty,
    remove,
)


def damage(copy_: Path, originals: Originals, chance: random.Random) -> str:
    """Something happens to one file, or one is replaced by an older one. What it was."""
    if chance.random() < 0.15:
        name = chance.choice((NAME, f"{NAME}-wal"))
        shutil.copy(originals.early.directory / name, copy_ / name)
        return f"an older {name}"
    file = chance.choice(sorted(copy_.iterdir()))
    if f"{NAME}-wal" != file.name and chance.random() < 0.5:
        file = copy_ / NAME
    act = chance.choice(IN_A_FILE)
    act(file, chance)
    return f"{act.__name__} in {file.name}"


def try_one(number: int, originals: Originals, directory: Path) -> str:
    """Whether the damage was noticed or harmless. If neither, it fails."""
    chance = random.Random(SEED + number)  # noqa: S311
    original = chance.choice((originals.late, originals.closed))
    copy_ = directory / str(number)
    copy(original.directory, copy_)
    what = f"copy {number}: {damage(copy_, originals, chance)} of {original.directory.name}"
    path = copy_ / NAME
    try:
        state = run(show_file(path))
    except StorageError as error:
        must_say(error, (NAME,), what)
        check_rescue(path, directory / f"{number}-saved" / NAME, originals, what)
        return "noticed"
    assert state.revision == original.state.revision, what
    assert state.entries == original.state.entries, what
    # No client has relied on a compaction that was lost: there is more history, not less.
    assert list(state.history[-len(original.state.history) :]) == original.state.history, what
    return "harmless"


def must_say(error: StorageError, texts: Sequence[str], what: str) -> None:
    assert any(text in str(error) for text in texts), (what, error)


def check_rescue(path: Path, target: Path, originals: Originals, what: str) -> None:
    try:
        rescue(path, target)
    except StorageError as error:
        must_say(error, ("nothing in", "no such file", "newer version"), what)
        return
    state = run(show_file(target))
    for entry in state.entries:
        assert originals.written.get((entry.key, entry.revision)) == entry.value, (what, entry.key)
    assert state.revision > originals.late.state.revision, what


def test_the_originals_are_whole(originals: Originals, tmp_path: Path) -> None:
    for original in originals[:3]:
        copy_ = tmp_path / original.directory.name
        copy(original.directory, copy_)
        assert run(show_file(copy_ / NAME)) == original.state


@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_damage_is_noticed_or_harmless(originals: Originals, tmp_path: Path, count: int) -> None:
    outcomes = [try_one(number, originals, tmp_path) for number in range(count)]
    assert outcomes.count("noticed") > count // 2
    assert outcomes.count("harmless") > count // 100
