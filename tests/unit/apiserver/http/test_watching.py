"""Watches: where they begin, what they show, how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from allot.apiserver.http import rendering, watching
from allot.apiserver.watch_cache.cache import ResourceCache
from allot.apiserver.watch_cache.caches import key_prefix, resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.apiserver.watch_cache.object_changes import ObjectChange
from allot.storage.broadcast_watch import BroadcastWatch
from allot.storage.interface import Change, Put, StoreUnavailableError
from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer

MAPS = "/api/v1/namespaces/default/configmaps"


def a_map(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}


def seen(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def test_from_a_version_on_every_change_comes_once_and_in_order() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            start = (await server.get(MAPS))["metadata"]["resourceVersion"]
            await server.post(MAPS, a_map("a"))
            async with server.watch(MAPS, resourceVersion=start) as stream:
                await server.ask("PATCH", f"{MAPS}/a", {"data": {"k": "2"}}, content_type=MERGE)
                await server.ask("DELETE", f"{MAPS}/a")
                await server.post(MAPS, a_map("b"))
                events = await stream.take(4)
        assert seen(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
        assert versions == sorted(set(versions))
        assert events[2]["object"]["data"] == {"k": "2"}, "a deleted object is shown as it was last"

    asyncio.run(run())


MERGE = "application/merge-patch+json"


def test_without_a_version_the_present_comes_first() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(MAPS, a_map("a"))
            async with server.watch(MAPS) as stream:
                await server.post(MAPS, a_map("b"))
                assert seen(await stream.take(2)) == [("ADDED", "a"), ("ADDED", "b")]

    asyncio.run(run())


def test_a_streaming_list_ends_with_a_bookmark() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            await server.post(MAPS, a_map("a"))
            async with server.watch(
                MAPS,
                sendInitialEvents="true",
                resourceVersionMatch="NotOlderThan",
                allowWatchBookmarks="true",
            ) as stream:
                first, bookmark = await stream.take(2)
                revision = await server.store.revision()
                await server.post(MAPS, a_map("b"))
                assert seen([first, await stream.next() or {}]) == [("ADDED", "a"), ("ADDED", "b")]
        assert bookmark["type"] == "BOOKMARK"
        metadata = bookmark["object"]["metadata"]
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert metadata["resourceVersion"] == str(revision)
        assert bookmark["object"]["kind"] == "ConfigMap"

    asyncio.run(run())


def test_initial_events_need_a_match() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            answer = await server.ask(
                "GET", MAPS, query={"watch": "true", "sendInitialEvents": "true"}
            )
            assert (answer.code, answer.json["reason"]) == (422, "Invalid")

    asyncio.run(run())


def test_objects_that_enter_or_leave_a_selection_are_added_or_deleted() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            start = (await server.get(MAPS))["metadata"]["resourceVersion"]
            await server.post(MAPS, a_map("a"))
            for label in ("x", "y", "x"):
                body = {"metadata": {"labels": {"l": label}}}
                await server.ask("PATCH", f"{MAPS}/a", body, content_type=MERGE)
            async with server.watch(MAPS, labelSelector="l=x", resourceVersion=start) as stream:
                events = await stream.take(3)
        assert seen(events) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]
        left = events[1]["object"]["metadata"]
        assert left["labels"] == {"l": "x"}, "shown as it was when it was last selected"
        assert int(left["resourceVersion"]) > int(
            events[0]["object"]["metadata"]["resourceVersion"]
        )

    asyncio.run(run())


def test_a_watch_of_one_namespace_hears_nothing_of_others() -> None:
    async def run() -> None:
        async with (
            LocalServer() as server,
            server.watch(MAPS, resourceVersion=await now(server)) as stream,
        ):
            await server.post("/api/v1/namespaces/kube-system/configmaps", a_map("there"))
            await server.post(MAPS, a_map("here"))
            assert seen(await stream.take(1)) == [("ADDED", "here")]

    asyncio.run(run())


async def now(server: LocalServer) -> str:
    return str(await server.store.revision())


def test_compacted_history_is_expired() -> None:
    async def run() -> None:
        async with LocalServer(window=1) as server:
            start = await now(server)
            for number in range(20):
                await server.post(MAPS, a_map(f"m{number}"))
            await server.store.compact(int(await now(server)))
            async with server.watch(MAPS, resourceVersion=start) as stream:
                event = await stream.next()
                assert event is not None
                assert await stream.next() is None
        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert event["object"]["message"].startswith(f"too old resource version: {start} (")

    asyncio.run(run())


def test_events_older_than_the_window_come_from_the_store() -> None:
    async def run() -> None:
        async with LocalServer(window=2) as server:
            start = await now(server)
            for number in range(30):
                await server.post(MAPS, a_map(f"m{number:02}"))
            async with server.watch(MAPS, resourceVersion=start) as stream:
                await server.post(MAPS, a_map("last"))
                names = [name for _, name in seen(await stream.take(31))]
        assert names == [*(f"m{number:02}" for number in range(30)), "last"]

    asyncio.run(run())


def test_what_the_history_of_the_store_has_shown_does_not_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The history may be ahead of the cache, which learns of the same changes later."""
    backlog = BroadcastWatch.backlog
    extra: list[int] = []

    async def run() -> None:
        async with LocalServer(window=2) as server:

            async def more(watch: BroadcastWatch) -> list[Sequence[Change]]:
                batches = await backlog(watch)
                if batches and not extra:
                    key = batches[-1][-1].key
                    entry = await server.store.get(key)
                    assert entry is not None
                    # Nothing is awaited that lets the cache have its turn.
                    extra.append(await server.store.write(Put(key, entry.value)))
                    batches += watch.pending()
                return batches

            start = await now(server)
            for number in range(30):
                await server.post(MAPS, a_map(f"m{number:02}"))
            monkeypatch.setattr(BroadcastWatch, "backlog", more)
            async with server.watch(MAPS, resourceVersion=start) as stream:
                events = await stream.take(31)
                await server.post(MAPS, a_map("last"))
                events += await stream.take(1)
        assert extra
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
        assert versions == sorted(set(versions))
        assert seen(events)[-2:] == [("MODIFIED", "m29"), ("ADDED", "last")]

    asyncio.run(run())


def test_a_watch_outlives_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the store there are no bookmarks."""
    monkeypatch.setattr(watching, "BOOKMARK_SECONDS", 0.01)
    asked = asyncio.Event()

    async def away(store: MemoryStore) -> int:
        asked.set()
        raise StoreUnavailableError("away")

    async def run() -> None:
        async with LocalServer() as server:
            start = await now(server)
            async with server.watch(
                MAPS, resourceVersion=start, allowWatchBookmarks="true"
            ) as stream:
                assert seen(await stream.take(1)) == [("BOOKMARK", "")]
                with monkeypatch.context() as patch:
                    patch.setattr(MemoryStore, "revision", away)
                    async with asyncio.timeout(30):
                        await asked.wait()
                    await asyncio.sleep(0.05)
                await server.post(MAPS, a_map("a"))
                events = await stream.take(20)
        kinds = {event["type"] for event in events}
        assert kinds == {"ADDED", "BOOKMARK"}

    asyncio.run(run())


def test_the_stream_ends_after_its_timeout_with_a_last_bookmark() -> None:
    async def run() -> None:
        async with (
            LocalServer() as server,
            server.watch(
                MAPS,
                resourceVersion=await now(server),
                timeoutSeconds="1",
                allowWatchBookmarks="true",
            ) as stream,
        ):
            event = await stream.next()
            assert event is not None
            assert event["type"] == "BOOKMARK"
            assert await stream.next() is None

    asyncio.run(run())


def test_shutdown_ends_watches() -> None:
    async def run() -> None:
        async with LocalServer() as server, server.watch(MAPS) as stream:
            server.server.begin_shutdown()
            assert await stream.next() is None

    asyncio.run(run())


def test_a_watch_resumed_at_a_new_server_catches_up_and_can_be_ended() -> None:
    """The new server's cache begins after what they have missed, and nothing has happened since."""

    async def run() -> None:
        store = MemoryStore()
        old = LocalServer(store)
        await old.server.start()
        start = await now(old)
        await old.post(MAPS, a_map("a"))
        await old.post("/api/v1/namespaces", {"metadata": {"name": "noise"}})
        await old.server.close()
        async with LocalServer(store) as server:
            await server.get(MAPS)
            async with server.watch(MAPS, resourceVersion=start) as gone:
                assert seen(await gone.take(1)) == [("ADDED", "a")]
            assert await gone.next() is None
            async with server.watch(MAPS, resourceVersion=start) as stream:
                await stream.take(1)
                await server.post(MAPS, a_map("b"))
                assert seen(await stream.take(1)) == [("ADDED", "b")]
            async with server.watch(MAPS, resourceVersion=start) as stream:
                await stream.take(2)
                server.server.begin_shutdown()
                assert await stream.next() is None

    asyncio.run(run())


def test_a_slow_watcher_is_cut_off() -> None:
    """It holds one piece of the stream and a place in the window; when the window has moved on, it is out."""

    async def run() -> list[dict[str, Any]]:
        async with (
            LocalServer(window=10) as server,
            server.watch(MAPS, resourceVersion=await now(server)) as stream,
        ):
            stream.reading.clear()
            for number in range(60):
                await server.post(MAPS, a_map(f"m{number}"))
            stream.reading.set()
            events = []
            while event := await stream.next():
                events.append(event)
            return events

    *events, last = asyncio.run(run())
    assert len(events) < 60
    assert [event["type"] for event in events] == ["ADDED"] * len(events)
    assert (last["type"], last["object"]["code"]) == ("ERROR", 410)


def test_the_window_is_bounded_in_bytes_too() -> None:
    async def run() -> None:
        store = MemoryStore()
        resource = resource_named("", "configmaps")
        cache = ResourceCache(
            store, key_prefix(resource), codec_for(resource), window=100, window_bytes=1000
        )
        await cache.start()
        for number in range(50):
            await store.write(Put(f"{cache.prefix}default/{number}", b"x" * 100))
            await cache.refresh()
        start = cache.window_start
        kept = [change.revision for change in cache.changes_from(start, 100) or ()]
        assert kept == list(range(start + 1, 51))
        assert 10 <= len(kept) <= 20
        assert cache.changes_from(start - 1, 100) is None
        await cache.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("sizes", "selectors", "fit"),
    [
        pytest.param([100], "", True, id="one"),
        pytest.param([200_000], "", True, id="one-large"),
        pytest.param([200_000], "a=b", False, id="one-large-to-look-into"),
        pytest.param([100, 100], "", True, id="two"),
        pytest.param([100, 100], "a=b", True, id="two-to-look-into"),
        pytest.param([20_000], "a=b", True, id="one-small-enough-to-look-into"),
        pytest.param([20_000, 20_000], "a=b", False, id="two-large-to-look-into"),
        pytest.param([40_000, 40_000], "", False, id="two-large"),
    ],
)
def test_small_events_fit_together(
    sizes: list[int], selectors: str, fit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[int, bool]] = []
    plain = watching.Watcher._fit_together

    def noticing(watcher: watching.Watcher, changes: Sequence[ObjectChange]) -> bool:
        found.append((len(changes), plain(watcher, changes)))
        return found[-1][1]

    monkeypatch.setattr(watching.Watcher, "_fit_together", noticing)

    async def run() -> None:
        async with LocalServer() as server:
            store, version = server.store, await now(server)
            prefix = key_prefix(resource_named("", "configmaps"), "default")
            async with server.watch(
                MAPS, resourceVersion=version, labelSelector=selectors
            ) as stream:
                await asyncio.sleep(0.01)
                values = [
                    msgspec.json.encode(
                        {
                            "metadata": {"name": f"m{number}", "uid": "u", "labels": {"a": "b"}},
                            "data": {"k": "x" * size},
                        }
                    )
                    for number, size in enumerate(sizes)
                ]
                puts = [Put(f"{prefix}m{number}", value) for number, value in enumerate(values)]
                await store.write(*puts)
                for number in range(len(sizes)):
                    event = await stream.next()
                    assert event is not None
                    assert event["object"]["metadata"]["name"] == f"m{number}"

    asyncio.run(run())
    assert found == [(len(sizes), fit)]


@pytest.mark.parametrize("watchers", [200])
def test_an_event_is_encoded_at_most_twice_for_all_watchers(
    watchers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from allot.apiserver.watch_cache import object_changes, stored_objects

    rendered: list[int] = []
    plain = stored_objects.with_revision

    def counting(body: bytes, revision: int, head: bytes, tail: bytes) -> bytes:
        rendered.append(revision)
        return plain(body, revision, head, tail)

    monkeypatch.setattr(object_changes, "with_revision", counting)

    async def run() -> None:
        async with LocalServer() as server:
            version = await now(server)
            tasks = [asyncio.create_task(_take(server, version, 3)) for _ in range(watchers)]
            await asyncio.sleep(0.05)
            for number in range(3):
                await server.post(MAPS, a_map(f"m{number}"))
            for task in tasks:
                assert [name for _, name in seen(await task)] == ["m0", "m1", "m2"]

    asyncio.run(run())
    assert len(rendered) == 2 * len(set(rendered)) == 2 * 3


async def _take(server: LocalServer, version: str, count: int) -> list[dict[str, Any]]:
    async with server.watch(MAPS, resourceVersion=version) as stream:
        return await stream.take(count)


def test_tables_and_metadata_can_be_watched() -> None:
    async def run() -> None:
        async with LocalServer() as server:
            version = await now(server)
            await server.post(MAPS, a_map("a"))
            table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
            async with server.watch(MAPS, table, resourceVersion=version) as stream:
                await server.post(MAPS, a_map("b"))
                first, second = await stream.take(2)
            partial = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
            async with server.watch(MAPS, partial, resourceVersion=version) as stream:
                metadata = await stream.next()
        assert first["object"]["rows"][0]["cells"][:2] == ["a", 1]
        assert first["object"]["columnDefinitions"]
        assert not second["object"]["columnDefinitions"], "columns are described once"
        assert metadata is not None
        assert metadata["object"]["kind"] == "PartialObjectMetadata"
        assert "data" not in metadata["object"]

    asyncio.run(run())


def test_events_need_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch has one, for its next bookmark or its end."""
    timers: list[asyncio.TimerHandle] = []
    set_alarm = watching.Watcher._set_alarm

    def counting(watcher: watching.Watcher, loop: asyncio.AbstractEventLoop) -> asyncio.TimerHandle:
        timers.append(set_alarm(watcher, loop))
        return timers[-1]

    monkeypatch.setattr(watching.Watcher, "_set_alarm", counting)

    async def run() -> None:
        async with LocalServer() as server:
            start = await now(server)
            async with server.watch(MAPS, resourceVersion=start) as stream:
                for number in range(10):
                    await server.post(MAPS, a_map(f"m{number}"))
                    await stream.take(1)
        assert len(timers) == 1
        assert timers[0].cancelled()

    asyncio.run(run())


def test_metadata_of_events_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        async with LocalServer() as server:
            start = await now(server)
            async with (
                server.watch(MAPS, resourceVersion=start) as whole,
                server.watch(MAPS, {"accept": accept}, resourceVersion=start) as partial,
            ):
                monkeypatch.setattr(rendering, "metadata_of", None)
                await server.post(MAPS, a_map("a", app="b"))
                await server.ask("DELETE", f"{MAPS}/a")
                for event, expected in zip(await partial.take(2), await whole.take(2), strict=True):
                    assert event["type"] == expected["type"]
                    assert event["object"] == {
                        "kind": "PartialObjectMetadata",
                        "apiVersion": "meta.k8s.io/v1",
                        "metadata": expected["object"]["metadata"],
                    }

    asyncio.run(run())
