"""Long work in short stretches: rests between many things, threads for large ones."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from allot.apiserver.http import list_options
from allot.apiserver.http.endpoints import NonResourceEndpoints
from allot.apiserver.http.object_bodies import ObjectBodies
from allot.apiserver.pacing import HUGE, LARGE, SLOW, Pacer, Workers
from allot.apiserver.selectors import parse_label_selector
from allot.apiserver.watch_cache.cache import WAKE_AT_ONCE, ResourceCache
from allot.apiserver.watch_cache.caches import key_prefix, resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer
from allot.testing.virtual_time import run_in_virtual_time

MAPS = "/api/v1/namespaces/default/configmaps"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def test_others_have_their_turn_when_a_stretch_is_over() -> None:
    times = iter(range(1000))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def run() -> list[int]:
        task = asyncio.create_task(others())
        pacer = Pacer(clock=lambda: float(next(times)), stretch=5.0)
        items = [item async for item in pacer.each(range(60))]
        task.cancel()
        return items

    assert asyncio.run(run()) == list(range(60))
    assert turns == 60 // 6


def test_large_work_is_done_in_threads() -> None:
    async def run() -> list[bool]:
        workers = Workers()
        here = threading.get_ident()
        elsewhere = [
            await workers.run(size, threading.get_ident) != here
            for size in (0, LARGE, LARGE + 1, HUGE + 1)
        ]
        workers.close()
        return elsewhere

    assert asyncio.run(run()) == [False, False, True, True]


def test_huge_work_does_not_keep_large_work_waiting() -> None:
    async def run() -> None:
        workers, end = Workers(), threading.Event()
        huge = [asyncio.create_task(workers.run(HUGE + 1, end.wait)) for _ in range(5)]
        await asyncio.sleep(0)
        assert await workers.run(LARGE + 1, lambda: "done") == "done"
        end.set()
        await asyncio.gather(*huge)
        workers.close()

    asyncio.run(run())


def test_errors_come_back_from_threads() -> None:
    async def run() -> None:
        workers = Workers()

        def fail() -> None:
            raise KeyError("a")

        with pytest.raises(KeyError):
            await workers.run(LARGE + 1, fail)
        workers.close()
        with pytest.raises(asyncio.CancelledError):
            await workers.run(LARGE + 1, fail)

    asyncio.run(run())


def test_in_virtual_time_threads_take_no_time() -> None:
    async def run() -> float:
        workers = Workers()
        timer = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        await workers.run(LARGE + 1, lambda: time.sleep(0.01))
        timer.cancel()
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(run()) == 0.0


@pytest.mark.parametrize(
    ("path", "document", "content_type", "in_thread"),
    [
        pytest.param(MAPS, {"data": {"k": "v"}}, "json", False, id="small"),
        pytest.param(MAPS, {"data": {"k": "v" * (LARGE + 1)}}, "json", True, id="large"),
        pytest.param(CLAIMS, {"spec": {"zz": "v" * (LARGE // SLOW)}}, "json", False, id="claim"),
        pytest.param(
            CLAIMS, {"spec": {"expression": "v" * (LARGE // SLOW)}}, "json", True, id="expression"
        ),
        pytest.param(f"{ADMISSION}/validatingadmissionpolicies", {}, "json", True, id="policy"),
        pytest.param(f"{ADMISSION}/mutatingwebhookconfigurations", {}, "json", True, id="webhooks"),
    ],
)
def test_objects_are_read_where_they_belong(
    path: str,
    document: dict[str, Any],
    content_type: str,
    in_thread: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[int] = []
    plain = ObjectBodies.read_json

    def noticing(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return plain(*arguments)

    monkeypatch.setattr(ObjectBodies, "read_json", noticing)

    async def run() -> None:
        async with LocalServer() as server:
            await server.ask("POST", path, {"metadata": {"name": "a"}, **document})

    asyncio.run(run())
    assert [thread != threading.get_ident() for thread in threads] == [in_thread]


def test_many_watchers_are_woken_in_groups() -> None:
    async def run() -> list[int]:
        resource = resource_named("", "configmaps")
        cache = ResourceCache(MemoryStore(), key_prefix(resource), codec_for(resource))
        woken: list[int] = []
        for number in range(3 * WAKE_AT_ONCE):
            cache.listen(lambda number=number: woken.append(number))  # type: ignore[misc]
        cache._wake()
        counts = [len(woken)]
        for _ in range(2):
            await asyncio.sleep(0)
            counts.append(len(woken))
        return counts

    assert asyncio.run(run()) == [WAKE_AT_ONCE, 2 * WAKE_AT_ONCE, 3 * WAKE_AT_ONCE]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("path", "in_thread"), [("/metrics", True), ("/openapi/v3", True), ("/version", False)]
)
def test_long_pages_are_made_in_threads(
    method: str, path: str, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    plain = NonResourceEndpoints._find

    def noticing(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return plain(*arguments)

    monkeypatch.setattr(NonResourceEndpoints, "_find", noticing)

    async def run() -> None:
        async with LocalServer() as server:
            assert (await server.ask(method, path)).code == (200 if method == "GET" else 405)

    asyncio.run(run())
    assert [thread != threading.get_ident() for thread in threads] == [in_thread]


@pytest.mark.parametrize(("terms", "in_thread"), [(10, False), (1_000, True)])
@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_long_selectors_are_parsed_in_a_thread(
    verb: str, terms: int, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    plain = parse_label_selector

    def noticing(text: str) -> Any:
        threads.append(threading.get_ident())
        return plain(text)

    monkeypatch.setattr(list_options, "parse_label_selector", noticing)
    selector = ",".join(f"a{number}=b" for number in range(terms))

    async def run() -> None:
        async with LocalServer() as server:
            answer = await server.ask(verb, MAPS, query={"labelSelector": selector})
            assert answer.code == 200

    asyncio.run(run())
    assert [thread != threading.get_ident() for thread in threads] == [in_thread]
