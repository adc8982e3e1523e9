"""What only etcd has: several processes on one store, servers that go away and come back, and limits."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from allot.proto import etcd_pb2 as pb
from allot.storage.etcd import EtcdStore
from allot.storage.etcd_client import MAX_REQUEST_BYTES, EtcdClient, TlsFiles
from allot.storage.etcd_feed import newer_than, read_history
from allot.storage.etcd_layout import Layout
from allot.storage.etcd_versions import warn_of_old_members
from allot.storage.interface import (
    Change,
    Check,
    CompactedError,
    Delete,
    Put,
    StorageError,
    StoreUnavailableError,
    Watch,
)
from tests.contract.conftest import NO_ETCD
from tests.contract.etcd_server import EtcdServer, find_etcd
from tests.contract.one_loop import run

_prefixes = (f"/etcd-{number}/" for number in itertools.count())


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    """A server for one test, which may kill it."""
    if find_etcd() is None:
        pytest.skip(NO_ETCD)
    server = EtcdServer(tmp_path)
    server.start()
    yield server
    server.kill()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def kill_in_a_quiet_moment(server: EtcdServer) -> None:
    """When its log is on disk: see `etcd_server.py`. Other moments are for `test_crashes.py`."""
    time.sleep(0.1)
    server.kill()


async def follow(watch: Watch, count: int) -> list[Change]:
    async with asyncio.timeout(20):
        return [change for _ in range(count) for change in await anext(watch)]


def test_processes_see_each_others_writes_in_one_order(etcd: EtcdServer) -> None:
    async def scenario() -> None:
        prefix = next(_prefixes)
        stores = [await EtcdStore.connect([etcd.url], prefix) for _ in range(3)]
        start = await stores[0].revision()
        watches = [store.watch("a/", start) for store in stores]

        async def write(number: int) -> None:
            store = stores[number % 3]
            for index in range(20):
                revision = await store.write(Put(f"a/{number}", b"%d" % index))
                other = await stores[index % 3].get(f"a/{number}")
                assert other is not None
                assert other.revision >= revision

        await asyncio.gather(*(write(number) for number in range(6)))
        seen = [await follow(watch, 120) for watch in watches]
        assert seen[0] == seen[1] == seen[2]
        revisions = [change.revision for change in seen[0]]
        assert revisions == sorted(set(revisions))
        for store in stores:
            await store.close()

    run(scenario())


def test_stores_with_different_prefixes_do_not_meet(etcd: EtcdServer) -> None:
    async def scenario() -> None:
        prefix = next(_prefixes)
        one = await EtcdStore.connect([etcd.url], prefix)
        two = await EtcdStore.connect([etcd.url], prefix + "two/")
        watch = one.watch("", await one.revision())
        first = await one.write(Put("a", b"one"))
        await two.write(Put("a", b"two"), Put("b", b"two"))
        assert await one.revision() == first
        assert [entry.value for entry in (await one.list("")).entries] == [b"one"]
        assert [change.revision for change in await follow(watch, 1)] == [first]
        assert watch.pending() == []
        await one.close()
        await two.close()

    run(scenario())


def test_a_watch_outlives_the_server(own_etcd: EtcdServer) -> None:
    async def scenario() -> None:
        store = await EtcdStore.connect([own_etcd.url])
        other = await EtcdStore.connect([own_etcd.url])
        start = await store.revision()
        watch = store.watch("", start)
        written = [await other.write(Put("a", b""))]
        assert [change.revision for change in await follow(watch, 1)] == written
        for end in (kill_in_a_quiet_moment, EtcdServer.stop):
            await asyncio.to_thread(end, own_etcd)
            await asyncio.to_thread(own_etcd.start)
            written = [await other.write(Put("a", b"%d" % number)) for number in range(5)]
            assert [change.revision for change in await follow(watch, 5)] == written
            assert await store.revision() == written[-1]
        assert [change.revision for change in await follow(store.watch("", start), 11)][
            -5:
        ] == written
        await store.close()
        await other.close()

    run(scenario())


def test_without_a_server_everything_says_so(own_etcd: EtcdServer) -> None:
    async def scenario() -> None:
        store = await EtcdStore.connect([own_etcd.url])
        revision = await store.write(Put("a", b""))
        store._client.timeout_seconds = 0.5
        await asyncio.to_thread(kill_in_a_quiet_moment, own_etcd)
        for attempt in (
            store.get("a"),
            store.list(""),
            store.revision(),
            store.write(Put("a", b"")),
            store.compact(revision),
        ):
            with pytest.raises(StoreUnavailableError):
                await attempt
        with pytest.raises(StoreUnavailableError):
            await EtcdStore.connect([own_etcd.url], timeout_seconds=0.5)
        watch = store.watch("", revision)
        waiting = asyncio.create_task(anext(watch, None))
        await store.close()
        assert await asyncio.wait_for(waiting, 5) is None

    run(scenario())


def test_another_endpoint_takes_over(own_etcd: EtcdServer, tmp_path: Path) -> None:
    async def scenario() -> None:
        nowhere = "http://127.0.0.1:1"
        store = await EtcdStore.connect([nowhere, own_etcd.url, nowhere], timeout_seconds=10)
        watch = store.watch("", await store.revision())
        for _ in range(3):
            revision = await store.write(Put("a", b""))
            assert [change.revision for change in await follow(watch, 1)] == [revision]
        await asyncio.to_thread(kill_in_a_quiet_moment, own_etcd)
        await asyncio.to_thread(own_etcd.start)
        revision = await store.write(Put("a", b""))
        assert [change.revision for change in await follow(watch, 1)] == [revision]
        assert await store.revision() == revision
        await store.close()

    run(scenario())


def test_compaction_during_a_lost_connection_ends_the_watch(own_etcd: EtcdServer) -> None:
    async def scenario() -> None:
        store = await EtcdStore.connect([own_etcd.url])
        other = await EtcdStore.connect([own_etcd.url])
        start = await store.write(Put("a", b""))
        watch, idle = store.watch("", start), store.watch("elsewhere", start)
        assert await store.revision() == start
        assert watch.pending() == idle.pending() == []
        feed = store._tasks[0]
        feed.cancel()
        await asyncio.wait([feed])
        for _ in range(5):
            last = await other.write(Put("a", b""), Put("b", b""))
        await other.compact(last)
        store._tasks[0] = asyncio.create_task(store._feed.run())
        for following in (watch, idle):
            with pytest.raises(CompactedError):
                await asyncio.wait_for(anext(following), 10)
        again = store.watch("", await store.revision())
        revision = await other.write(Put("a", b""))
        assert [change.revision for change in await follow(again, 1)] == [revision]
        await store.close()
        await other.close()

    run(scenario())


def test_a_delete_at_the_compacted_revision_is_not_passed_over(own_etcd: EtcdServer) -> None:
    """etcd shows a watch from there everything but the delete, and says nothing."""

    async def scenario() -> None:
        first = await EtcdStore.connect([own_etcd.url])
        before = await first.write(Put("a", b""))
        deleted = await first.write(Delete("a"))
        await first.write(Put("b", b""))
        await first.compact(deleted)
        second = await EtcdStore.connect([own_etcd.url])
        with pytest.raises(CompactedError):
            await asyncio.wait_for(anext(second.watch("", before)), 10)
        (batch,) = [await asyncio.wait_for(anext(second.watch("", deleted)), 10)]
        assert [change.key for change in batch] == ["b"]
        await first.close()
        await second.close()

    run(scenario())


def test_a_feed_that_begins_with_the_compacted_revision_cuts_its_watchers_off(
    own_etcd: EtcdServer,
) -> None:
    async def scenario() -> None:
        store = await EtcdStore.connect([own_etcd.url])
        other = await EtcdStore.connect([own_etcd.url])
        start = await store.write(Put("a", b""))
        watch = store.watch("", start)
        assert await store.revision() == start
        assert watch.pending() == []
        feed = store._tasks[0]
        feed.cancel()
        await asyncio.wait([feed])
        await other.compact(await other.write(Delete("a")))
        store._tasks[0] = asyncio.create_task(store._feed.run())
        with pytest.raises(CompactedError):
            await asyncio.wait_for(anext(watch), 10)
        await store.close()
        await other.close()

    run(scenario())


def test_compaction_by_others_beyond_the_last_write_does_no_harm(own_etcd: EtcdServer) -> None:
    async def scenario() -> None:
        store = await EtcdStore.connect([own_etcd.url], "/mine/")
        foreign = await EtcdStore.connect([own_etcd.url], "/foreign/")
        mine = await store.write(Put("a", b"1"))
        watch = store.watch("", mine)
        assert await store.revision() == mine
        assert watch.pending() == []
        for _ in range(5):
            last = await foreign.write(Put("a", b""))
        await foreign.compact(last)
        assert (await store.list("")).revision == mine
        assert (await store.list("", revision=mine)).entries == (await store.list("")).entries
        # A watch that resumes finds that nothing was missed.
        feed = store._tasks[0]
        feed.cancel()
        await asyncio.wait([feed])
        store._tasks[0] = asyncio.create_task(store._feed.run())
        revision = await store.write(Put("a", b"2"))
        assert [change.revision for change in await follow(watch, 1)] == [revision]
        await store.close()
        late = await EtcdStore.connect([own_etcd.url], "/mine/")
        watch = late.watch("", revision)
        assert watch.pending() == []
        await late.close()
        await foreign.close()

    run(scenario())


def test_a_lost_answer_is_not_repeated(
    own_etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write took effect, then the answer was lost: told as not known, and done once."""

    async def scenario() -> None:
        store = await EtcdStore.connect([own_etcd.url])
        await store.write(Put("n", b"0"))
        watch = store.watch("", await store.revision())
        endpoint = store._client._endpoints[0]
        transact = endpoint.transact

        async def lose_the_answer(request: pb.TxnRequest, timeout: float) -> pb.TxnResponse:
            await transact(request, timeout=timeout)
            await asyncio.to_thread(kill_in_a_quiet_moment, own_etcd)
            await asyncio.to_thread(own_etcd.start)
            answer: pb.TxnResponse = await transact(request, timeout=1e-6)
            return answer

        monkeypatch.setattr(endpoint, "transact", lose_the_answer)
        with pytest.raises(StoreUnavailableError):
            await store.write(Put("n", b"1"))
        monkeypatch.setattr(endpoint, "transact", transact)
        entry = await store.get("n")
        assert entry is not None
        assert entry.value == b"1"
        assert await store.revision() == entry.revision
        assert [change.revision for change in await follow(watch, 1)] == [entry.revision]
        assert watch.pending() == []
        await store.close()

    run(scenario())


def test_limits_of_etcd_are_explained(etcd: EtcdServer) -> None:
    async def scenario() -> None:
        store = await EtcdStore.connect([etcd.url], next(_prefixes))
        await store.write(*(Put(f"{number}", b"") for number in range(127)))
        with pytest.raises(StorageError, match="128 operations in one write, etcd takes 127"):
            await store.write(*(Put(f"{number}", b"") for number in range(128)))
        with pytest.raises(StorageError, match="bytes, etcd takes 1572864"):
            await store.write(Put("large", b"x" * 1_600_000))
        frame = store._layout.transaction([Put("large", b"x" * 1_000_000)]).ByteSize() - 1_000_000
        with pytest.raises(StorageError, match="too large") as caught:
            await store.write(Put("large", b"x" * (MAX_REQUEST_BYTES - frame)))
        assert not isinstance(caught.value, StoreUnavailableError)
        assert await store.get("large") is None
        await store.write(*(Delete(f"{number}") for number in range(127)))
        assert (await store.list("")).entries == []
        await store.close()

    run(scenario())


def test_deletes_race_without_empty_revisions(etcd: EtcdServer) -> None:
    async def scenario() -> None:
        prefix = next(_prefixes)
        stores = [await EtcdStore.connect([etcd.url], prefix) for _ in range(2)]
        for _ in range(10):
            start = await stores[0].write(Put("a", b""), Put("b", b""))
            watch = stores[0].watch("", start)
            revisions = await asyncio.gather(
                *(store.write(Delete("a"), Check("b", start)) for store in stores * 4)
            )
            assert len(set(revisions)) == 1
            (change,) = await follow(watch, 1)
            assert (change.key, change.revision) == ("a", revisions[0])
            assert await stores[0].revision() == revisions[0]
            assert watch.pending() == []
        for store in stores:
            await store.close()

    run(scenario())


def test_processes_agree_on_compaction(own_etcd: EtcdServer) -> None:
    async def scenario() -> None:
        clock = Clock()
        one, two = [
            await EtcdStore.connect(
                [own_etcd.url], clock=clock, compaction_interval_seconds=0, history_seconds=300
            )
            for _ in range(2)
        ]
        revision_at: dict[float, int] = {}
        while clock.now < 1500:
            revision_at[clock.now] = await one.write(Put("a", b""))
            clock.now += 60
            await one.compact_old()
            if clock.now < 1000:  # one of them goes away
                await two.compact_old()
            oldest = await two.oldest()
            assert oldest <= revision_at[max(0.0, clock.now - 300)]
            if clock.now > 720:
                assert oldest >= revision_at[clock.now - 720]
        await one.close()
        await two.close()

    run(scenario())


def test_before_the_first_write_there_was_nothing(own_etcd: EtcdServer) -> None:
    async def scenario() -> None:
        store = await EtcdStore.connect([own_etcd.url])
        await store.write(Put("a", b""))
        assert await store.oldest() == 0
        for revision in (0, 1):
            assert await store.list("", revision=revision) == ([], revision, 0)
        watch = store.watch("", 0)
        assert [change.key for change in await follow(watch, 1)] == ["a"]
        await store.close()

    run(scenario())


def test_tls_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"ca\.pem cannot be read"):
        EtcdClient(["https://localhost:2379"], TlsFiles(authority=tmp_path / "ca.pem"), 1)


@pytest.mark.parametrize(
    ("version", "is_old"),
    [("3.4.30", True), ("3.5.1", True), ("3.5.4", True), ("3.5.5", False), ("3.6.0-rc.1", False)],
)
def test_old_members_are_named(
    version: str, is_old: bool, caplog: pytest.LogCaptureFixture
) -> None:
    class Client(EtcdClient):
        async def versions(self) -> dict[str, str]:
            return {"http://one:2379": version}

    async def scenario() -> None:
        client = Client(["http://one:2379"], TlsFiles(), 1)
        await warn_of_old_members(client)
        await client.close()

    run(scenario())
    said = f"http://one:2379 runs etcd {version}, which can lose acknowledged writes"
    assert (said in caplog.text) == is_old


def test_members_say_their_version(own_etcd: EtcdServer) -> None:
    async def scenario() -> dict[str, str]:
        client = EtcdClient([own_etcd.url, "http://127.0.0.1:1"], TlsFiles(), 2)
        versions = await client.versions()
        await client.close()
        return versions

    versions = run(scenario())
    assert [*versions] == [own_etcd.url]
    assert versions[own_etcd.url].startswith("3.")


def an_event(revision: int, key: bytes = b"a") -> pb.Event:
    return pb.Event(kv=pb.KeyValue(key=key, mod_revision=revision))


@pytest.mark.parametrize(
    ("revisions", "shown"),
    [
        pytest.param([6, 6, 7], [6, 6, 7], id="whole-revisions"),
        pytest.param([3, 5, 5, 6], [6], id="seen-already"),
        pytest.param([6, 7, 6, 7, 8], [6, 7, 8], id="again"),
        pytest.param([4, 5], [], id="nothing-new"),
    ],
)
def test_a_watch_goes_only_forward(revisions: list[int], shown: list[int]) -> None:
    events = newer_than(5, [an_event(revision) for revision in revisions])
    assert [event.kv.mod_revision for event in events] == shown


def test_what_a_member_sends_again_is_published_once(
    own_etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members that were killed replay their log, with the watch already there."""

    class Repeating(EtcdClient):
        @asynccontextmanager
        async def watch(
            self, request: pb.WatchCreateRequest
        ) -> AsyncIterator[AsyncIterator[pb.WatchResponse]]:
            async with super().watch(request) as responses:

                async def twice() -> AsyncIterator[pb.WatchResponse]:
                    async for response in responses:
                        yield response
                        yield response

                yield twice()

    async def scenario() -> None:
        store = await EtcdStore.connect([own_etcd.url])
        start = await store.revision()
        watch = store.watch("", start)
        for index in range(5):
            await store.write(Put("a", b"%d" % index))
        last = await store.revision()
        client = Repeating([own_etcd.url], TlsFiles(), 5)
        history = await read_history(client, Layout("/allot/"), "", start, last, 100)
        live = await follow(watch, 5)
        await store.write(Put("b", b""))
        live += await follow(watch, 1)
        await client.close()
        await store.close()
        assert [change.key for change in live] == [*"aaaaab"]
        assert [change for batch in history.batches for change in batch] == live[:5]

    monkeypatch.setattr("allot.storage.etcd.EtcdClient", Repeating)
    run(scenario())


def test_a_broken_watch_of_the_past_is_tried_again(own_etcd: EtcdServer) -> None:
    attempts = []

    class Breaking(EtcdClient):
        @asynccontextmanager
        async def watch(
            self, request: pb.WatchCreateRequest
        ) -> AsyncIterator[AsyncIterator[pb.WatchResponse]]:
            attempts.append(request.start_revision)
            if len(attempts) < 3:
                raise StoreUnavailableError("the member is away")
            async with super().watch(request) as responses:
                yield responses

    async def scenario() -> None:
        store = await EtcdStore.connect([own_etcd.url])
        start = await store.write(Put("a", b""))
        last = await store.write(Put("b", b""))
        client = Breaking([own_etcd.url], TlsFiles(), 5)
        page = await read_history(client, Layout("/allot/"), "", start, last, 100)
        assert [batch[0].key for batch in page.batches] == ["b"]
        assert len(attempts) == 3
        await client.close()
        await store.close()

    run(scenario())
