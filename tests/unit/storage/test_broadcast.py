"""The window of recent changes: bounded, shared, and with its watchers in the right places."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from allot.storage.broadcast import SHRINK_BY, Broadcast, HistoryPage
from allot.storage.broadcast_watch import BroadcastWatch
from allot.storage.interface import Change, CompactedError, Entry, SlowWatcherError
from allot.storage.transactions import Batch


def a_batch(revision: int, *keys: str, size: int = 1) -> Batch:
    return tuple(
        Change(revision, key, Entry(key, b"x" * size, revision, revision), None) for key in keys
    )


async def no_history(prefix: str, after: int, upto: int) -> HistoryPage:
    raise CompactedError(after, upto)


def a_broadcast(max_revisions: int = 10, max_bytes: int = 1000) -> Broadcast:
    return Broadcast(0, no_history, max_revisions=max_revisions, max_bytes=max_bytes)


def revisions(watch: BroadcastWatch) -> list[int]:
    return [changes[0].revision for changes in watch.pending()]


def test_the_window_is_bounded_by_revisions() -> None:
    broadcast = a_broadcast(max_revisions=3)
    broadcast.publish([a_batch(revision, "a") for revision in range(1, 6)])
    assert (broadcast.floor, broadcast.revision) == (2, 5)
    assert [change.revision for change in broadcast.since(0)] == [5, 4, 3]


def test_the_window_is_bounded_by_bytes() -> None:
    broadcast = a_broadcast(max_bytes=100)
    broadcast.publish([a_batch(revision, "a", size=40) for revision in range(1, 6)])
    assert (broadcast.floor, broadcast.revision) == (3, 5)
    broadcast.publish([a_batch(6, "a", size=1000)])
    assert (broadcast.floor, broadcast.revision) == (6, 6)


def test_topics_let_go_of_what_the_window_has_lost() -> None:
    broadcast = a_broadcast(max_revisions=3)
    watch = BroadcastWatch(broadcast, "a", 0)
    assert watch.pending() == []
    topic = broadcast.join("a", 0)
    for revision in range(1, 5000):
        broadcast.publish([a_batch(revision, "a", "b")])
    assert topic.batches == [a_batch(revision, "a") for revision in (4997, 4998, 4999)]
    broadcast.publish([a_batch(revision, "b") for revision in range(5000, 5003)])
    assert not topic.batches


def test_a_large_window_shrinks_by_many_revisions_at_a_time() -> None:
    """It never has more than its limit, and a watcher that is not behind it loses nothing."""
    limit, at_a_time = 4 * SHRINK_BY, 4
    broadcast = a_broadcast(max_revisions=limit, max_bytes=1 << 20)
    watch, late = BroadcastWatch(broadcast, "a", 0), BroadcastWatch(broadcast, "a", 0)
    assert watch.pending() == late.pending() == []
    topic = broadcast.join("a", 0)
    floors = {0}
    for revision in range(1, 3 * limit):
        broadcast.publish([a_batch(revision, "a")])
        assert revisions(watch) == [revision]
        kept = revision - broadcast.floor
        assert len(topic.batches) == kept == len(list(broadcast.since(0)))
        assert min(revision, limit - at_a_time) <= kept <= limit
        floors.add(broadcast.floor)
    assert {after - before for before, after in pairwise(sorted(floors))} == {at_a_time + 1}
    with pytest.raises(SlowWatcherError):
        late.pending()


def test_a_key_is_shown_under_every_prefix_it_has() -> None:
    broadcast = a_broadcast()
    prefixes = ("", "a", "a/", "a/b", "a/b/", "a/b/c", "a/b/c/", "a/bc/", "b/", "/")
    watches = {prefix: BroadcastWatch(broadcast, prefix, 0) for prefix in prefixes}
    for watch in watches.values():
        assert watch.pending() == []
    for revision, key in enumerate(("a/b/c", "a/b/c/d", "a", "/", "a/b/", "a/b/c"), start=1):
        broadcast.publish([a_batch(revision, key)])
        shown = {prefix for prefix, watch in watches.items() if revisions(watch) == [revision]}
        assert shown == {prefix for prefix in prefixes if key.startswith(prefix)}

    watches["a/b/"].close()
    late = BroadcastWatch(broadcast, "a/b/c/", 6)
    assert late.pending() == []
    broadcast.publish([a_batch(7, "a/b/c/d")])
    assert revisions(late) == [7]
    assert revisions(watches["a/"]) == [7]


def test_watchers_of_one_prefix_share_what_they_are_shown() -> None:
    broadcast = a_broadcast()
    watches = [BroadcastWatch(broadcast, "a/", 0) for _ in range(3)]
    for watch in watches:
        assert watch.pending() == []
    broadcast.publish([a_batch(1, "a/1", "b/1")])
    shown = [watch.pending()[0] for watch in watches]
    assert shown[0] is shown[1] is shown[2]
    alone = a_batch(2, "a/2")
    broadcast.publish([alone])
    assert watches[0].pending()[0] is alone


def test_joining_a_topic_from_further_back() -> None:
    broadcast = a_broadcast()
    broadcast.publish([a_batch(revision, "ab"[revision % 2]) for revision in range(1, 7)])
    late, early, middle = (BroadcastWatch(broadcast, "a", after) for after in (6, 0, 3))
    assert revisions(late) == []
    broadcast.publish([a_batch(7, "a")])
    assert revisions(early) == [2, 4, 6, 7]
    assert revisions(middle) == [4, 6, 7]
    assert revisions(late) == [7]
    broadcast.publish([a_batch(8, "a")])
    assert [revisions(watch) for watch in (late, early, middle)] == [[8], [8], [8]]


def test_a_topic_without_watchers_is_forgotten() -> None:
    broadcast = a_broadcast()
    watches = [BroadcastWatch(broadcast, "a", 0) for _ in range(2)]
    for watch in watches:
        watch.pending()
    broadcast.publish([a_batch(1, "a")])
    watches[0].close()
    watches[0].close()
    assert revisions(watches[1]) == [1]
    watches[1].close()
    assert list(broadcast._topics_of("a")) == []
    assert revisions(BroadcastWatch(broadcast, "a", 0)) == [1]


def test_restarting_cuts_off_who_follows() -> None:
    async def scenario() -> None:
        broadcast = a_broadcast()
        following, waiting = (BroadcastWatch(broadcast, "a", 0) for _ in range(2))
        following.pending()
        task = asyncio.create_task(anext(waiting))
        await asyncio.sleep(0)
        broadcast.restart(50, CompactedError(1, 40))
        for _ in range(2):
            with pytest.raises(CompactedError):
                following.pending()
        with pytest.raises(CompactedError):
            await task
        new = BroadcastWatch(broadcast, "a", 50)
        assert new.pending() == []
        broadcast.publish([a_batch(51, "a")])
        assert revisions(new) == [51]
        with pytest.raises(CompactedError):
            await anext(BroadcastWatch(broadcast, "a", 49))

    asyncio.run(scenario())


def test_noise_elsewhere_does_not_cut_off_who_has_nothing_to_read() -> None:
    broadcast = a_broadcast(max_revisions=3)
    quiet, behind = BroadcastWatch(broadcast, "quiet", 0), BroadcastWatch(broadcast, "noise", 0)
    assert quiet.pending() == behind.pending() == []
    broadcast.publish([a_batch(revision, "noise") for revision in range(1, 50)])
    assert quiet.pending() == []
    with pytest.raises(SlowWatcherError):
        behind.pending()
    broadcast.publish([a_batch(50, "quiet")])
    assert revisions(quiet) == [50]


def test_history_is_read_until_the_window_covers_the_rest() -> None:
    log = [a_batch(revision, "ab"[revision % 2]) for revision in range(1, 21)]
    asked: list[tuple[int, int]] = []

    async def history(prefix: str, after: int, upto: int) -> HistoryPage:
        asked.append((after, upto))
        page = [batch for batch in log if after < batch[0].revision <= min(after + 4, upto)]
        if len(asked) == 2:  # meanwhile the window moves on
            more = [a_batch(revision, "a") for revision in range(21, 31)]
            log.extend(more)
            broadcast.publish(more)
        return HistoryPage(
            [batch for batch in page if batch[0].key == prefix], page[-1][0].revision
        )

    broadcast = Broadcast(20, history, max_revisions=5)

    async def scenario() -> None:
        watch = BroadcastWatch(broadcast, "a", 8)
        seen = [(await anext(watch))[0].revision for _ in range(16)]
        assert seen == [10, 12, 14, 16, 18, 20, *range(21, 31)]
        assert asked == [(8, 20), (12, 20), (16, 30), (20, 30), (24, 30)]

    asyncio.run(scenario())


def test_closing_while_history_is_read() -> None:
    async def endless(prefix: str, after: int, upto: int) -> HistoryPage:
        await asyncio.sleep(3600)
        raise AssertionError

    async def scenario() -> None:
        broadcast = Broadcast(20, endless)
        watch = BroadcastWatch(broadcast, "a", 8)
        task = asyncio.create_task(anext(watch, None))
        await asyncio.sleep(0)
        watch.close()
        assert await asyncio.wait_for(task, 60) is None
        other = BroadcastWatch(broadcast, "a", 8)
        task = asyncio.create_task(anext(other, None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


def test_a_listener_is_called_once_for_what_is_not_read() -> None:
    async def scenario() -> None:
        broadcast = a_broadcast()
        watch = BroadcastWatch(broadcast, "a/", after=0)
        called: list[int] = []
        watch.listener = lambda changes: called.append(len(changes or ()))
        reading = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)

        broadcast.publish([a_batch(1, "a/x"), a_batch(2, "a/y")])
        assert called == [2], "when they are published"
        broadcast.publish([a_batch(3, "b/x")])
        assert called == [2], "of another prefix"
        await asyncio.sleep(0)
        assert not reading.done(), "the listener has taken everything"

        broadcast.close()
        with pytest.raises(StopAsyncIteration):
            await reading

    asyncio.run(scenario())


def test_a_listener_that_fails_does_not_silence_others() -> None:
    async def scenario() -> None:
        broadcast = a_broadcast()
        called: list[str] = []

        def fail(_changes: Sequence[Sequence[Change]] | None) -> None:
            called.append("failing")
            raise ValueError

        watches = [BroadcastWatch(broadcast, prefix, after=0) for prefix in ("a/", "b/", "c/")]
        watches[0].listener = watches[2].listener = fail
        watches[1].listener = lambda _changes: called.append("other")
        reading = [asyncio.ensure_future(anext(watch)) for watch in watches]
        await asyncio.sleep(0)

        broadcast.publish([a_batch(1, "a/x"), a_batch(2, "b/x"), a_batch(3, "c/x")])
        assert sorted(called) == ["failing", "failing", "other"]

        broadcast.close()
        await asyncio.gather(*reading, return_exceptions=True)

    asyncio.run(scenario())


def test_a_reader_with_a_listener_gets_errors() -> None:
    async def scenario() -> None:
        broadcast = a_broadcast()
        watch = BroadcastWatch(broadcast, "a/", after=0)
        told: list[Sequence[Sequence[Change]] | None] = []
        watch.listener = told.append
        reading = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)

        broadcast.withdraw(0)
        assert told == [None], "at once"
        with pytest.raises(SlowWatcherError):
            await reading
        broadcast.publish([a_batch(5, "a/x")])
        assert told == [None]
        assert not watch.is_listening

    asyncio.run(scenario())


def test_a_listener_takes_more_than_the_window_has() -> None:
    async def scenario() -> None:
        broadcast = a_broadcast(max_revisions=2)
        watch = BroadcastWatch(broadcast, "a/", after=0)
        taken: list[int] = []
        watch.listener = lambda changes: taken.extend(each[0].revision for each in changes or ())
        assert watch.pending() == []
        broadcast.publish([a_batch(revision, "a/x") for revision in range(1, 6)])
        assert taken == [1, 2, 3, 4, 5]
        assert watch.pending() == []

    asyncio.run(scenario())


@pytest.mark.parametrize("reads", [False, True])
def test_a_listener_is_given_what_comes_after_all_that_was_delivered(reads: bool) -> None:
    """As from etcd: a list may show revisions that are not published yet."""

    async def scenario() -> None:
        broadcast = a_broadcast()
        broadcast.publish([a_batch(1, "a/x")])
        watch = BroadcastWatch(broadcast, "a/", after=3)
        taken: list[int] = []
        watch.listener = lambda changes: taken.extend(each[0].revision for each in changes or ())
        delivered: list[int] = []

        async def read() -> None:
            while (changes := await anext(watch, None)) is not None:
                delivered.append(changes[0].revision)

        async def publish(*revisions: int) -> None:
            broadcast.publish([a_batch(revision, "a/x") for revision in revisions])
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if not reads:
                delivered.extend(changes[0].revision for changes in watch.pending())

        reading = asyncio.create_task(read()) if reads else None
        await publish(2)
        await publish(3, 4)
        assert watch.is_listening
        await publish(5, 6)
        assert (delivered, taken) == ([4], [5, 6])
        broadcast.close()
        if reading is not None:
            await reading

    asyncio.run(scenario())
