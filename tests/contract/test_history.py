"""Every store: the states of the past, and forgetting them."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from allot.storage.interface import (
    CompactedError,
    Delete,
    Entry,
    FutureRevisionError,
    Put,
    Store,
    UnknownTimeError,
)
from tests.contract.homes import SMALL_WINDOW, Home

States = dict[int, list[Entry]]


async def make_history(store: Store, count: int, seed: int = 1) -> States:
    """Write at random; all states by revision."""
    chance = random.Random(seed)  # noqa: S311
    states: States = {}
    for number in range(count):
        key = f"a/{chance.randrange(12):02}"
        if chance.random() < 0.3:
            await store.write(Delete(key), Put("b", b"%d" % number))
        else:
            await store.write(Put(key, b"%d" % number))
        page = await store.list("a/")
        states[page.revision] = list(page.entries)
    return states


@pytest.mark.parametrize("window_revisions", [10_000, SMALL_WINDOW], ids=["window", "history"])
def test_past_states_can_be_listed(home: Home, window_revisions: int) -> None:
    async def scenario(store: Store) -> None:
        states = await make_history(store, 50)
        for revision, entries in states.items():
            page = await store.list("a/", revision=revision)
            assert (list(page.entries), page.revision, page.remaining) == (entries, revision, 0)
            part = await store.list("a/", revision=revision, after="a/03", limit=2)
            rest = [entry for entry in entries if entry.key > "a/03"]
            assert list(part.entries) == rest[:2]
            assert part.remaining == max(0, len(rest) - 2)

    home.run(scenario, window_revisions)


def test_past_states_can_be_listed_while_others_write(home: Home) -> None:
    async def scenario(store: Store) -> None:
        states = await make_history(store, 30)
        is_over = False

        async def disturb() -> None:
            number = 0
            while not is_over:
                number += 1
                put, deleted = f"a/{number % 6:02}", f"a/{6 + number % 7:02}"
                await store.write(Put(put, b"later"), Delete(deleted))
                await asyncio.sleep(0)

        disturbing = asyncio.create_task(disturb())
        for revision, entries in states.items():
            assert list((await store.list("a/", revision=revision)).entries) == entries
        is_over = True
        await disturbing

    home.run(scenario, SMALL_WINDOW)


def test_the_future_cannot_be_listed(home: Home) -> None:
    async def scenario(store: Store) -> None:
        revision = await store.write(Put("a", b""))
        with pytest.raises(FutureRevisionError) as caught:
            await store.list("", revision=revision + 1)
        assert (caught.value.revision, caught.value.current) == (revision + 1, revision)
        with pytest.raises(FutureRevisionError):
            await store.compact(revision + 1)
        assert (await store.list("", revision=revision)).revision == revision

    home.run(scenario)


@pytest.mark.parametrize("window_revisions", [10_000, SMALL_WINDOW], ids=["window", "history"])
def test_compaction_forgets_what_is_before_and_nothing_else(
    home: Home, window_revisions: int
) -> None:
    async def scenario(store: Store) -> None:
        states = await make_history(store, 60)
        revisions = list(states)
        for place in (0, 20, 20, 10, 45, 59):
            await store.compact(revisions[place])
            oldest = await store.oldest()
            assert oldest == max(revisions[place], revisions[20] if place == 10 else 0)
            for revision, entries in states.items():
                if revision < oldest:
                    with pytest.raises(CompactedError) as caught:
                        await store.list("a/", revision=revision)
                    assert (caught.value.revision, caught.value.oldest) == (revision, oldest)
                else:
                    page = await store.list("a/", revision=revision)
                    assert list(page.entries) == entries
            assert list((await store.list("a/")).entries) == states[revisions[-1]]

    home.run(scenario, window_revisions)


def test_compaction_lasts(lasting_home: Home) -> None:
    async def first(store: Store) -> States:
        states = await make_history(store, 40)
        await store.compact(list(states)[20])
        return states

    async def second(store: Store) -> None:
        revisions = list(states)
        assert await store.oldest() == revisions[20]
        with pytest.raises(CompactedError):
            await store.list("a/", revision=revisions[19])
        for revision in revisions[20:]:
            assert list((await store.list("a/", revision=revision)).entries) == states[revision]
        watch = store.watch("a/", revisions[20])
        state = {entry.key: entry for entry in states[revisions[20]]}
        revision = revisions[20]
        while revision < revisions[-1]:
            for change in await anext(watch):
                revision = change.revision
                assert change.previous == state.pop(change.key, None)
                if change.entry:
                    state[change.key] = change.entry
            assert [state[key] for key in sorted(state)] == states[revision]

    states = lasting_home.run(first, SMALL_WINDOW)
    lasting_home.run(second, SMALL_WINDOW)


def test_writes_go_on_while_history_is_compacted(home: Home) -> None:
    async def scenario(store: Store) -> None:
        await make_history(store, 30)

        async def write(writer: int) -> None:
            for number in range(50):
                await store.write(Put(f"w/{writer}", b"%d" % number))

        async def compact() -> None:
            while not writing.done():
                await store.compact(await store.revision())
                await asyncio.sleep(0)

        writing = asyncio.gather(*(write(writer) for writer in range(5)))
        await compact()
        await writing
        assert [entry.value for entry in (await store.list("w/")).entries] == [b"49"] * 5

    home.run(scenario)


def test_the_revision_of_a_time_can_be_listed(home: Home) -> None:
    async def scenario(store: Store) -> None:
        before = time.time()
        await asyncio.sleep(1.1)  # marks are a second apart
        last = await store.write(Put("a/1", b"1"))
        assert await store.revision_at(time.time() + 1) == last
        now = time.time()
        await asyncio.sleep(1.1)
        await store.write(Put("a/2", b"2"))
        assert await store.revision_at(now) == last
        assert len((await store.list("a/", revision=last)).entries) == 1
        with pytest.raises(UnknownTimeError):
            await store.revision_at(before - 3600)

    home.run(scenario)
