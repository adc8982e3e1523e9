"""Event expiry: events are deleted an hour after they were last written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.apiserver.registry.event_expiry import BATCH, EventExpiry, last_written
from allot.apiserver.watch_cache.caches import Caches
from allot.storage.interface import Delete, Entry, Operation, Put
from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer
from allot.testing.virtual_time import VirtualClock, run_in_virtual_time

EVENTS = "/api/v1/namespaces/default/events"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PREFIX = "registry/events/default/"


def an_event(name: str, **more: Any) -> dict[str, Any]:
    involved = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"metadata": {"name": name}, "involvedObject": involved, "reason": "R", **more}


def at(hour: int, minute: int = 0) -> str:
    return f"2026-01-01T{hour:02}:{minute:02}:00Z"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param({"metadata": {"creationTimestamp": at(9)}}, at(9), id="created"),
        pytest.param(
            {"metadata": {"creationTimestamp": at(9)}, "lastTimestamp": at(11)}, at(11), id="again"
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": at(9)}, "series": {"lastObservedTime": at(10, 30)}},
            at(10, 30),
            id="series",
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": at(9)}, "eventTime": at(13)}, at(9), id="to-come"
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": at(9)}, "lastTimestamp": "x", "series": 7},
            at(9),
            id="nonsense",
        ),
        pytest.param({"metadata": {}}, None, id="unknown"),
        pytest.param({"metadata": {"creationTimestamp": 7}}, None, id="wrong"),
    ],
)
def test_when_an_event_was_written(event: dict[str, Any], expected: str | None) -> None:
    import msgspec

    found = last_written(msgspec.json.encode(event), NOW)

    assert found == (expected and datetime.fromisoformat(expected))


def test_in_virtual_time() -> None:
    async def run() -> None:
        clock = VirtualClock()
        async with LocalServer(clock=clock.whole_seconds) as server:
            for number in range(3 * BATCH):
                await server.post(EVENTS, an_event(f"old-{number}"))
            await server.post(EVENTS, an_event("counted"))
            await server.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}})
            await asyncio.sleep(1800)
            await server.post(EVENTS, an_event("new"))
            shown = clock.whole_seconds().isoformat().replace("+00:00", "Z")
            patched = await server.ask(
                "PATCH",
                f"{EVENTS}/counted",
                {"count": 2, "lastTimestamp": shown},
                content_type="application/merge-patch+json",
            )
            assert patched.code == 200
            assert len((await server.get(EVENTS))["items"]) == 3 * BATCH + 2
            await asyncio.sleep(1900)
            left = [item["metadata"]["name"] for item in (await server.get(EVENTS))["items"]]
            assert left == ["counted", "new"]
            await asyncio.sleep(1900)
            assert (await server.get(EVENTS))["items"] == []
            assert len((await server.get("/api/v1/configmaps"))["items"]) == 1

    run_in_virtual_time(run())


class _Counting(MemoryStore):
    """A store that counts writes, and in which another writer is quicker."""

    def __init__(self) -> None:
        super().__init__()
        self.deletes: list[int] = []
        self.meanwhile: Callable[[], Operation] | None = None

    async def write(self, *operations: Operation) -> int:
        if isinstance(operations[0], Delete):
            self.deletes.append(len(operations))
            if self.meanwhile is not None:
                other, self.meanwhile = self.meanwhile(), None
                await super().write(other)
        return await super().write(*operations)


async def _filled(count: int) -> tuple[_Counting, EventExpiry]:
    store = _Counting()
    value = b'{"metadata":{"creationTimestamp":"2026-01-01T09:00:00Z"}}'
    for number in range(count):
        await store.write(Put(f"{PREFIX}{number:03}", value))
    return store, EventExpiry(store, Caches(store), lambda: NOW)


def test_in_batches_also_what_was_stored_before() -> None:
    async def run() -> None:
        store, expiry = await _filled(BATCH + 7)
        assert await expiry.sweep() == BATCH + 7
        assert store.deletes == [BATCH, 7]
        assert await expiry.sweep() == 0

    asyncio.run(run())


def test_another_server_may_be_quicker(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> list[Entry]:
        store, expiry = await _filled(5)
        store.meanwhile = lambda: Put(f"{PREFIX}003", b'{"metadata":{}}')
        assert await expiry.sweep() == 4
        return list((await store.list(PREFIX)).entries)

    assert [entry.key for entry in asyncio.run(run())] == [f"{PREFIX}003"]
    assert caplog.records == []


def test_a_ttl_of_zero_keeps_events() -> None:
    async def run() -> None:
        store, _ = await _filled(1)
        await EventExpiry(store, Caches(store), lambda: NOW, timedelta(0)).run()
        assert store.deletes == []

    asyncio.run(run())
