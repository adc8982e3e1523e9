"""Every store: watchers see every change once, in order, whole revision by whole revision."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from allot.storage.interface import (
    Change,
    Check,
    CompactedError,
    Delete,
    Entry,
    Put,
    SlowWatcherError,
    Store,
    Watch,
)
from tests.contract.homes import SMALL_WINDOW, Home
from tests.contract.one_loop import run


async def take(watch: Watch, count: int) -> list[Sequence[Change]]:
    """The next `count` items."""
    async with asyncio.timeout(120):
        return [await anext(watch) for _ in range(count)]


async def write_some(store: Store, count: int, prefix: str = "a/") -> list[int]:
    revisions = []
    for index in range(count):
        revisions.append(await store.write(Put(f"{prefix}{index % 5}", b"%d" % index)))
        await asyncio.sleep(0)
    return revisions


def revisions_of(items: Sequence[Sequence[Change]]) -> list[int]:
    for changes in items:
        assert len({change.revision for change in changes}) == 1
    return [changes[0].revision for changes in items]


def test_a_watcher_sees_what_happens_next(home: Home) -> None:
    async def scenario(store: Store) -> None:
        start = await store.write(Put("a/1", b"old"))
        async with store.watch("a/", start) as watch:
            assert watch.pending() == []
            first = await store.write(Put("a/1", b"new"))
            second = await store.write(Delete("a/1"))
            third = await store.write(Put("a/1", b"again"))
            old = Entry("a/1", b"old", start, start)
            new = Entry("a/1", b"new", first, start)
            again = Entry("a/1", b"again", third, third)
            assert [list(changes) for changes in await take(watch, 3)] == [
                [Change(first, "a/1", new, old)],
                [Change(second, "a/1", None, new)],
                [Change(third, "a/1", again, None)],
            ]

    home.run(scenario)


def test_a_watcher_sees_only_its_prefix(home: Home) -> None:
    async def scenario(store: Store) -> None:
        start = await store.revision()
        watches = {prefix: store.watch(prefix, start) for prefix in ("", "a/", "a/1", "b", "c")}
        written = {
            key: await store.write(Put(key, b""))
            for key in ("a/1", "a/2", "a", "a/1/x", "b/1", "bb")
        }
        await store.revision()
        for prefix, watch in watches.items():
            expected = [revision for key, revision in written.items() if key.startswith(prefix)]
            assert revisions_of(watch.pending()) == expected

    home.run(scenario)


def test_one_write_is_one_item_with_what_concerns_the_prefix(home: Home) -> None:
    async def scenario(store: Store) -> None:
        start = await store.write(Put("a/1", b""), Put("b/1", b""))
        everything, some = store.watch("", start), store.watch("a/", start)
        await store.write(
            Put("a/2", b""), Put("b/2", b""), Delete("a/1"), Delete("a/9"), Check("b/1", start)
        )
        await store.write(Put("b/3", b""))
        last = await store.write(Put("a/3", b""))
        assert [{change.key for change in changes} for changes in await take(everything, 3)] == [
            {"a/1", "a/2", "b/2"},
            {"b/3"},
            {"a/3"},
        ]
        first, second = await take(some, 2)
        assert {change.key: change.entry is not None for change in first} == {
            "a/1": False,
            "a/2": True,
        }
        assert [change.revision for change in second] == [last]

    home.run(scenario)


@pytest.mark.parametrize("window_revisions", [10_000, SMALL_WINDOW], ids=["window", "history"])
@pytest.mark.parametrize("is_reopened", [False, True], ids=["same", "reopened"])
def test_the_past_and_the_future_join_without_a_seam(
    home: Home, window_revisions: int, is_reopened: bool
) -> None:
    async def past(store: Store) -> list[int]:
        return [await store.revision(), *await write_some(store, 40)]

    async def check(store: Store, written: list[int]) -> None:
        watches = [store.watch("a/", after) for after in written]
        counts = [len(written) + 3 - index for index in range(1, len(written) + 1)]
        taking = [
            asyncio.create_task(take(watch, count))
            for watch, count in zip(watches, counts, strict=True)
        ]
        await asyncio.sleep(0)
        written = written + await write_some(store, 3)
        await write_some(store, 3, "b/")
        for index, taken in enumerate(taking):
            assert revisions_of(await taken) == written[index + 1 :]
        last = await store.write(Put("a/x", b""))
        for watch in watches:
            assert revisions_of(await take(watch, 1)) == [last]
            assert watch.pending() == []

    async def both(store: Store) -> None:
        await check(store, await past(store))

    if not is_reopened:
        home.run(both, window_revisions)
    elif type(home).__name__ != "MemoryHome":
        written = home.run(past, window_revisions)
        home.run(lambda store: check(store, written), window_revisions)


@pytest.mark.parametrize("window_revisions", [10_000, SMALL_WINDOW], ids=["window", "history"])
def test_the_past_has_previous_values_too(home: Home, window_revisions: int) -> None:
    async def scenario(store: Store) -> None:
        start = await store.revision()
        first = await store.write(Put("a", b"1"), Put("b", b"1"))
        second = await store.write(Put("b", b"2"), Put("a", b"2"))
        third = await store.write(Delete("b"))
        await store.write(Put("b", b"4"))
        await write_some(store, 20, "z/")
        items = await take(store.watch("b", start), 4)
        assert [(change.previous, change.entry and change.entry.value) for (change,) in items] == [
            (None, b"1"),
            (Entry("b", b"1", first, first), b"2"),
            (Entry("b", b"2", second, first), None),
            (None, b"4"),
        ]
        assert revisions_of(items)[:3] == [first, second, third]

    home.run(scenario, window_revisions)


def test_a_watcher_from_the_future_waits_for_it(home: Home) -> None:
    async def scenario(store: Store) -> None:
        start = await store.revision()
        watch = store.watch("a/", start + 5)
        beside = store.watch("a/", start)
        written = await write_some(store, 10)
        assert (
            revisions_of(await take(watch, 3))
            == [revision for revision in written if revision > start + 5][:3]
        )
        assert revisions_of(await take(beside, 10)) == written

    home.run(scenario)


def test_what_is_pending_comes_at_once(home: Home) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch("a/", await store.revision())
        written = await write_some(store, 5)
        assert await store.revision() == written[-1]
        assert revisions_of(await take(watch, 2)) == written[:2]
        assert revisions_of(watch.pending()) == written[2:]
        assert watch.pending() == []
        last = await store.write(Put("a/1", b""))
        assert revisions_of(await take(watch, 1)) == [last]

    home.run(scenario)


@pytest.mark.parametrize("window_revisions", [10_000, SMALL_WINDOW], ids=["window", "history"])
def test_the_backlog_ends_without_waiting_for_a_write(home: Home, window_revisions: int) -> None:
    async def scenario(store: Store) -> None:
        start = await store.revision()
        written = await write_some(store, 40)
        await write_some(store, 20, "b/")
        await store.revision()
        async with asyncio.timeout(120), store.watch("a/", start) as watch:
            found: list[int] = []
            while batches := await watch.backlog():
                found += revisions_of(batches)
            assert found == written
            last = await store.write(Put("a/x", b""))
            await store.revision()
            assert revisions_of(await watch.backlog()) == [last]

    home.run(scenario, window_revisions)


def test_waiting_watchers_have_all_up_to_the_revision(home: Home) -> None:
    async def scenario(store: Store) -> None:
        seen: list[int] = []

        async def follow(watch: Watch) -> None:
            nonlocal seen
            async for changes in watch:
                seen += revisions_of([changes])

        watch = store.watch("a/", await store.revision())
        following = asyncio.create_task(follow(watch))
        for _ in range(20):
            last = await store.write(Put("a/1", b""))
            await store.write(Put("b/1", b""))
            assert await store.revision() >= last
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert seen[-1] == last
        watch.close()
        await following

    home.run(scenario)


def test_closing_a_watch_ends_it(home: Home) -> None:
    async def scenario(store: Store) -> None:
        start = await store.revision()
        watch, other = store.watch("a/", start), store.watch("a/", start)
        waiting = asyncio.create_task(anext(watch, None))
        await asyncio.sleep(0.01)
        watch.close()
        assert await asyncio.wait_for(waiting, 60) is None
        watch.close()
        written = await write_some(store, 1)
        assert watch.pending() == []
        with pytest.raises(StopAsyncIteration):
            await anext(watch)
        assert revisions_of(await take(other, 1)) == written

    home.run(scenario)


def test_cancelling_who_waits_does_not_end_the_watch(home: Home) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch("a/", await store.revision())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(watch)
        written = await write_some(store, 1)
        assert revisions_of(await take(watch, 1)) == written

    home.run(scenario)


def test_closing_the_store_ends_all_watches(home: Home) -> None:
    async def scenario() -> None:
        async with home.open(SMALL_WINDOW) as store:
            start = await store.revision()
            await write_some(store, 20)
            watches = [store.watch("a/", start), store.watch("b/", await store.revision())]
            waiting = asyncio.create_task(anext(watches[1], None))
            await asyncio.sleep(0.01)
        assert await asyncio.wait_for(waiting, 60) is None
        with pytest.raises(StopAsyncIteration):
            await anext(watches[0])
        assert [changes async for changes in store.watch("a/", start)] == []

    run(scenario())


def test_a_watcher_that_is_too_slow_is_cut_off(home: Home) -> None:
    async def scenario(store: Store) -> None:
        start = await store.revision()
        slow, quick, elsewhere = (store.watch(prefix, start) for prefix in ("a/", "a/", "b/"))
        assert slow.pending() == elsewhere.pending() == []
        unread = store.watch("a/", start)
        seen = []
        for _ in range(SMALL_WINDOW + 2):
            seen += [await store.write(Put("a/1", b""))]
            assert revisions_of(await take(quick, 1)) == seen[-1:]
        for _ in range(2):
            with pytest.raises(SlowWatcherError):
                await anext(slow)
            with pytest.raises(SlowWatcherError):
                slow.pending()
        # Who is cut off may come back and read what it missed.
        again = store.watch("a/", start)
        assert revisions_of(await take(again, len(seen))) == seen
        # Who has not begun is not slow.
        assert revisions_of(await take(unread, len(seen))) == seen
        # Who waits for something else is not slow.
        last = await store.write(Put("b/1", b""))
        assert revisions_of(await take(elsewhere, 1)) == [last]

    home.run(scenario, SMALL_WINDOW)


def test_who_reads_history_is_not_cut_off(home: Home) -> None:
    async def scenario(store: Store) -> None:
        start = await store.revision()
        written = await write_some(store, 30)
        assert await store.revision() == written[-1]
        watch = store.watch("a/", start)
        seen = revisions_of(await take(watch, 1))
        written += await write_some(store, 30)
        seen += revisions_of(await take(watch, 59))
        assert seen == written

    home.run(scenario, SMALL_WINDOW)


def test_watching_from_what_was_compacted_is_refused(home: Home) -> None:
    async def scenario(store: Store) -> None:
        start = await store.revision()
        written = await write_some(store, 10)
        following = store.watch("a/", start)
        assert revisions_of(await take(following, 1)) == written[:1]
        await store.compact(written[4])
        for after in (start, written[3]):
            watch = store.watch("a/", after)
            for _ in range(2):
                with pytest.raises(CompactedError) as caught:
                    await anext(watch)
                assert caught.value.oldest == written[4]
        watch = store.watch("a/", written[4])
        items = await take(watch, 5)
        assert revisions_of(items) == written[5:]
        assert all(change.previous is not None for (change,) in items)

    home.run(scenario)


def test_a_watch_overtaken_by_compaction_ends_with_an_error(home: Home) -> None:
    async def scenario(store: Store) -> None:
        start = await store.revision()
        await asyncio.gather(*(store.write(Put(f"a/{index}", b"")) for index in range(1500)))
        await store.revision()
        watch = store.watch("a/", start)
        await take(watch, 1)
        await store.compact(await store.revision())
        with pytest.raises(CompactedError):
            async for _ in watch:
                pass

    home.run(scenario, SMALL_WINDOW)


def test_order_and_exactly_once_under_concurrent_writers(home: Home) -> None:
    async def scenario(store: Store) -> None:
        start = await store.revision()
        written: dict[int, str] = {}

        async def write(writer: int) -> None:
            for number in range(25):
                key = f"{'ab'[writer % 2]}/{writer}"
                revision = await store.write(Put(key, b"%d" % number), Put(f"x/{writer}", b""))
                assert revision not in written
                written[revision] = key

        async def follow(prefix: str, after: int) -> list[int]:
            seen: list[int] = []
            async for changes in store.watch(prefix, after):
                seen += revisions_of([changes])
                await asyncio.sleep(0)
                if len(seen) == sum(1 for key in finished if key.startswith(prefix)):
                    break
            return seen

        finished = [f"{'ab'[writer % 2]}/" for writer in range(8) for _ in range(25)]
        followers = [asyncio.create_task(follow(prefix, start)) for prefix in ("", "a/", "b/") * 3]
        await asyncio.gather(*(write(writer) for writer in range(8)))
        late = [asyncio.create_task(follow(prefix, start)) for prefix in ("", "a/", "b/")]
        for prefix, task in zip(("", "a/", "b/") * 4, followers + late, strict=True):
            expected = sorted(rev for rev, key in written.items() if key.startswith(prefix))
            assert await asyncio.wait_for(task, 120) == expected

    home.run(scenario)


def test_replaying_a_watch_gives_what_a_list_shows(home: Home) -> None:
    async def scenario(store: Store) -> None:
        start = await store.revision()
        watch = store.watch("a/", start)

        async def write(writer: int) -> None:
            for number in range(20):
                key = f"a/{(writer + number) % 7}"
                if number % 3:
                    await store.write(Put(key, b"%d" % number))
                else:
                    await store.write(Delete(key))

        writing = asyncio.gather(*(write(writer) for writer in range(5)))
        state: dict[str, Entry] = {}
        revision = start
        while True:
            await asyncio.sleep(0)
            done = writing.done()
            page = await store.list("a/")
            while revision < page.revision:
                for change in await anext(watch):
                    revision = change.revision
                    assert state.get(change.key) == change.previous
                    if change.entry is None:
                        del state[change.key]
                    else:
                        state[change.key] = change.entry
                if revision == page.revision:
                    assert [state[key] for key in sorted(state)] == list(page.entries)
            if done:
                break
        await writing

    home.run(scenario)
