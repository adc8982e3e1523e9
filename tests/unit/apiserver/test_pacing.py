"""Long work in short stretches: rests between many things, threads for large ones."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from allot.apiserver.auth import access_reviews
from allot.apiserver.http import (
    app,
    apply_bodies,
    list_options,
    patch_bodies,
    server_side_apply,
    watching,
)
from allot.apiserver.http.endpoints import NonResourceEndpoints
from allot.apiserver.http.object_bodies import ObjectBodies
from allot.apiserver.pacing import (
    HUGE,
    LARGE,
    SLOW,
    STRETCH_SECONDS,
    VALUE,
    LoopIterations,
    Pacer,
    Priority,
    Workers,
    json_work,
)
from allot.apiserver.registry import write_results
from allot.apiserver.registry.patches import json_patches
from allot.apiserver.registry.storage_encoding import with_known_times
from allot.apiserver.registry.write_pipeline import WritePipeline
from allot.apiserver.selectors import parse_field_selector, parse_label_selector
from allot.apiserver.watch_cache.cache import WAKE_AT_ONCE, ResourceCache
from allot.apiserver.watch_cache.caches import key_prefix, resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.exposition import Exposition, exposition
from allot.storage.memory import MemoryStore
from allot.testing.servers import LocalServer
from allot.testing.virtual_time import run_in_virtual_time

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
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


class WorkByIteration:
    """How much fake time tasks spend in each iteration of an event loop, in milliseconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.iterations = LoopIterations(asyncio.get_running_loop(), lambda: self.now)
        self.spent: list[list[int]] = []
        """Who went on, by iteration; once for each millisecond."""

    def work(self, who: int, milliseconds: int) -> None:
        self.now += milliseconds / 1000
        self.spent[-1] += [who] * milliseconds

    async def count_until_done(self, tasks: list[asyncio.Task[None]]) -> None:
        while not all(task.done() for task in tasks):
            self.spent.append([])
            await asyncio.sleep(0)


def test_of_many_that_rest_one_goes_on_at_a_time() -> None:
    """Stretches of many requests do not add up before the event loop looks for others."""
    count, steps, stretch = 20, 5, 6

    async def run() -> list[list[int]]:
        seen = WorkByIteration()

        async def work(who: int) -> None:
            for _ in range(steps):
                await seen.iterations.wait(Priority.PAUSED)
                seen.work(who, stretch)

        tasks = [asyncio.create_task(work(who)) for who in range(count)]
        tasks[3].cancel()
        await seen.count_until_done(tasks)
        return seen.spent

    spent = asyncio.run(run())
    assert sum(map(len, spent)) == (count - 1) * steps * stretch
    assert max(map(len, spent)) == stretch
    assert all(len(set(each)) <= 1 for each in spent)


def test_many_that_begin_at_once_share_a_stretch() -> None:
    """A change wakes hundreds of watches, and as many requests may arrive together."""
    count = 200

    async def run() -> list[list[int]]:
        seen = WorkByIteration()

        async def work(who: int) -> None:
            if seen.iterations.is_busy(Priority.REQUEST):
                await seen.iterations.wait(Priority.REQUEST)
            seen.work(who, 1)

        tasks = [asyncio.create_task(work(who)) for who in range(count)]
        await seen.count_until_done(tasks)
        return seen.spent

    spent = asyncio.run(run())
    assert [who for each in spent for who in each] == list(range(count))  # first come, first served
    assert max(map(len, spent)) <= 1000 * STRETCH_SECONDS + 1
    assert len([each for each in spent if each]) <= count / 4


def test_clients_and_components_begin_in_turns() -> None:
    """A controller sends hundreds of requests at once."""
    client, count = 1000, 300

    async def run() -> list[list[int]]:
        seen = WorkByIteration()

        async def work(who: int, priority: Priority) -> None:
            if seen.iterations.is_busy(priority):
                await seen.iterations.wait(priority)
            seen.work(who, 1)

        linked = [asyncio.create_task(work(who, Priority.LINKED)) for who in range(count)]
        asked = [asyncio.create_task(work(client + who, Priority.REQUEST)) for who in range(count)]
        await seen.count_until_done([*linked, *asked])
        return seen.spent

    spent = [each for each in asyncio.run(run()) if each]
    assert min(number for number, each in enumerate(spent) if client in each) <= 3
    for each in spent[3 : len(spent) // 2]:
        of_clients = sum(who >= client for who in each)
        assert abs(of_clients - len(each) / 2) <= 2, spent


def test_what_begins_does_not_wait_for_long_work_and_holds_up_none() -> None:
    async def run() -> list[list[int]]:
        seen = WorkByIteration()

        async def long_work(who: int) -> None:
            for _ in range(10):
                await seen.iterations.wait(Priority.PAUSED)
                seen.work(who, 6)

        async def request(who: int) -> None:
            if seen.iterations.is_busy(Priority.REQUEST):
                await seen.iterations.wait(Priority.REQUEST)
            seen.work(who, 4)

        lists = [asyncio.create_task(long_work(who)) for who in range(50)]
        await asyncio.sleep(0)
        requests = [asyncio.create_task(request(1000 + who)) for who in range(20)]
        await seen.count_until_done([*requests, *lists])
        return seen.spent

    spent = asyncio.run(run())
    last = max(number for number, each in enumerate(spent) if 1019 in each)
    assert last <= 25
    assert all(set(each) & set(range(50)) for each in spent[2:last])


def test_in_a_long_iteration_a_new_pacer_is_due() -> None:
    async def run() -> bool:
        Pacer()  # the iteration is noticed
        time.sleep(2 * STRETCH_SECONDS)
        return Pacer().is_due

    assert asyncio.run(run())


def test_one_that_is_cancelled_while_it_rests_holds_up_none() -> None:
    async def run() -> None:
        tasks = [asyncio.create_task(Pacer().pause()) for _ in range(5)]
        await asyncio.sleep(0)
        for task in tasks[:4]:
            task.cancel()
        async with asyncio.timeout(60):
            await tasks[4]

    asyncio.run(run())


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


def test_short_values_count_more_than_their_bytes() -> None:
    assert json_work(b'{"a":"%b"}' % (b"x" * 3000)) == 3008
    assert json_work(b"{}" * 1000) == 2000  # few in any case
    assert json_work(b"[" + b"{}," * 2999 + b"{}]") == 6000 * VALUE > LARGE
    assert json_work(b"{}," * LARGE) == 3 * LARGE  # in a thread anyway


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
    ("containers", "in_thread"),
    [
        pytest.param(b"containers: [{}, {}]", False, id="few"),
        pytest.param(b"containers:" + b"\n  - {}" * 2000, True, id="many"),
    ],
)
def test_objects_in_other_formats_are_validated_where_they_belong(
    containers: bytes, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    plain = WritePipeline.create

    def noticing(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return plain(*arguments)

    monkeypatch.setattr(WritePipeline, "create", noticing)

    async def run() -> None:
        async with LocalServer() as server:
            threads.clear()  # objects of the system
            body = b"metadata: {name: a}\nspec:\n  " + containers
            await server.ask("POST", PODS, body, content_type="application/yaml")

    asyncio.run(run())
    assert [thread != threading.get_ident() for thread in threads] == [in_thread]


@pytest.mark.parametrize(
    ("path", "document", "content_type", "in_thread"),
    [
        pytest.param(MAPS, {"data": {"k": "v"}}, "json", False, id="small"),
        pytest.param(MAPS, {"data": {"k": "v" * (LARGE + 1)}}, "json", True, id="large"),
        pytest.param(PODS, {"spec": {"containers": [{}] * 500}}, "json", False, id="few-values"),
        pytest.param(PODS, {"spec": {"containers": [{}] * 1500}}, "json", True, id="many-values"),
        pytest.param(CLAIMS, {"spec": {"zz": "v" * (LARGE // SLOW)}}, "json", False, id="claim"),
        pytest.param(
            CLAIMS, {"spec": {"expression": "v" * (LARGE // SLOW)}}, "json", False, id="expression"
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


def test_metrics_are_made_in_a_thread_once_for_all_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[int] = []

    def noticing(registry: CollectorRegistry, accept: str) -> Exposition:
        threads.append(threading.get_ident())
        return exposition(registry, accept)

    monkeypatch.setattr("allot.apiserver.http.endpoints.exposition", noticing)

    async def run() -> None:
        async with LocalServer() as server:
            assert (await server.ask("POST", "/metrics")).code == 405
            assert not threads
            answers = await asyncio.gather(*(server.ask("GET", "/metrics") for _ in range(30)))
            assert {answer.code for answer in answers} == {200}

    asyncio.run(run())
    assert 1 <= len(threads) <= 2
    assert threading.get_ident() not in threads


def test_expressions_of_a_claim_are_work_only_when_it_is_created(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An update cannot change them, and does not compile them again (the scheduler's finalizer is one)."""
    in_thread: list[tuple[str, bool]] = []

    def noticing(name: str) -> Any:
        plain = getattr(WritePipeline, name)

        def notice(*arguments: Any) -> Any:
            in_thread.append((name, threading.get_ident() != threading.main_thread().ident))
            return plain(*arguments)

        return notice

    for name in ("create", "update"):
        monkeypatch.setattr(WritePipeline, name, noticing(name))
    selector = {"cel": {"expression": f"device.driver == '{'v' * (LARGE // SLOW)}'"}}
    request = {"name": "r", "exactly": {"deviceClassName": "c", "selectors": [selector]}}
    body = {"metadata": {"name": "a"}, "spec": {"devices": {"requests": [request]}}}

    async def run() -> None:
        async with LocalServer() as server:
            in_thread.clear()
            created = await server.post(CLAIMS, body)
            created["metadata"]["finalizers"] = ["example.com/f"]
            assert (await server.ask("PUT", f"{CLAIMS}/a", created)).code == 200

    asyncio.run(run())
    assert in_thread == [("create", True), ("update", False)]


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
@pytest.mark.parametrize(("path", "in_thread"), [("/openapi/v3", True), ("/version", False)])
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


@pytest.mark.parametrize(
    ("operation", "in_thread"),
    [
        ('{"op": "copy", "from": "/data", "path": "/metadata/annotations"}', True),
        (r'{"op": "c\u006fpy", "from": "/data", "path": "/metadata/annotations"}', True),
        ('{"op": "add", "path": "/data/c", "value": "d"}', False),
    ],
)
def test_patches_that_copy_are_applied_in_a_thread(
    operation: str, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short one may make megabytes."""
    threads: list[int] = []
    plain = json_patches.json_patch

    def noticing(document: Any, patch: bytes) -> Any:
        threads.append(threading.get_ident())
        return plain(document, patch)

    monkeypatch.setattr(patch_bodies, "json_patch", noticing)

    async def run() -> None:
        async with LocalServer() as server:
            await server.post(MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}})
            patched = await server.ask(
                "PATCH",
                f"{MAPS}/m",
                f" [{operation}]".encode(),
                content_type="application/json-patch+json",
            )
            assert patched.code == 200

    asyncio.run(run())
    assert [thread != threading.get_ident() for thread in threads] == [in_thread]


@pytest.mark.parametrize(
    ("method", "path", "begins"),
    [
        ("GET", MAPS, 1),
        ("POST", MAPS, 1),
        ("GET", "/version", 1),
        ("GET", "/livez", 0),
        ("GET", "/readyz", 0),
    ],
)
def test_all_requests_but_those_for_health_share_iterations(
    method: str, path: str, begins: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    async def noticing(_priority: Priority = Priority.REQUEST) -> None:
        begun.append(path)

    monkeypatch.setattr(app, "begin_work", noticing)
    body = {"metadata": {"name": "a"}} if method == "POST" else None

    async def run() -> None:
        async with LocalServer() as server:
            begun.clear()
            assert (await server.ask(method, path, body)).code in (200, 201)

    asyncio.run(run())
    assert len(begun) == begins


def test_watches_share_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change is matched and sent by each of them."""
    watches, begun = 20, 0

    async def noticing(priority: Priority) -> None:
        nonlocal begun
        begun += 1
        assert priority is Priority.PAUSED, "requests come first"

    monkeypatch.setattr(watching, "begin_work", noticing)

    async def run() -> None:
        async with LocalServer() as server, contextlib.AsyncExitStack() as stack:
            streams = [
                await stack.enter_async_context(server.watch(MAPS, labelSelector="a!=b"))
                for _ in range(watches)
            ]
            assert begun == 0
            await server.post(MAPS, {"metadata": {"name": "m"}})
            for stream in streams:
                event = await stream.next()
                assert event is not None
                assert event["object"]["metadata"]["name"] == "m"

    asyncio.run(run())
    assert begun == watches


@pytest.mark.parametrize(("terms", "in_thread"), [(10, False), (5_000, True)])
def test_selectors_of_reviews_are_parsed_in_a_thread(
    terms: int, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user may ask what it may do."""
    threads: list[int] = []

    def noticing(text: str) -> Any:
        threads.append(threading.get_ident())
        return parse_field_selector(text)

    monkeypatch.setattr(access_reviews, "parse_field_selector", noticing)
    selector = {"rawSelector": ",".join(f"a{number}=b" for number in range(terms))}
    asked = {"verb": "list", "resource": "pods", "fieldSelector": selector}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    async def run() -> None:
        async with LocalServer() as server:
            answer = await server.ask("POST", path, {"spec": {"resourceAttributes": asked}})
            assert answer.json["status"]["allowed"] is True

    asyncio.run(run())
    assert [thread != threading.get_ident() for thread in threads] == [in_thread]


@pytest.mark.parametrize(("length", "in_thread"), [(10, False), (LARGE, True)])
@pytest.mark.parametrize("verb", ["PATCH", "DELETE"])
def test_large_objects_are_decoded_and_compared_in_threads(
    verb: str, length: int, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, list[bool]] = {"decoded": [], "compared": []}
    decode, compare = StoredObject._decoded, with_known_times

    def note(what: str) -> None:
        threads[what].append(threading.get_ident() != threading.main_thread().ident)

    def noticing_decode(stored: StoredObject) -> Any:
        if stored.key.endswith(
            "/default/m"
        ):  # and none of those that the server looks at by itself
            note("decoded")
        return decode(stored)

    def noticing_compare(*arguments: Any) -> Any:
        note("compared")
        return compare(*arguments)

    async def run() -> None:
        async with LocalServer() as server:
            await server.post(MAPS, {"metadata": {"name": "m"}, "data": {"k": "v" * length}})
            caches, resource = server.server.caches, resource_named("", "configmaps")
            stored = await caches.get(resource, caches.key(resource, "default", "m"))
            assert stored is not None
            stored.forget("decoded")
            monkeypatch.setattr(StoredObject, "_decoded", noticing_decode)
            monkeypatch.setattr(write_results, "with_known_times", noticing_compare)
            kind = "application/merge-patch+json" if verb == "PATCH" else "application/json"
            body = b'{"data": {"l": "w"}}' if verb == "PATCH" else None
            assert (await server.ask(verb, f"{MAPS}/m", body, content_type=kind)).code == 200

    asyncio.run(run())
    assert threads["decoded"] == [in_thread]
    assert threads["compared"] == ([in_thread] if verb == "PATCH" else [])


def test_the_event_loop_runs_between_jobs_of_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them may hold the interpreter for long: one after the other they would add up."""
    done: list[str] = []
    working: set[int] = set()

    def release(_: float) -> None:
        if threading.get_ident() in working:  # other tests may have left threads
            done.append("release")

    monkeypatch.setattr(time, "sleep", release)

    async def run() -> None:
        workers, queued = Workers(), threading.Event()

        def job() -> None:
            queued.wait()
            working.add(threading.get_ident())
            done.append("job")

        jobs = [asyncio.create_task(workers.run(LARGE + 1, job)) for _ in range(3)]
        await asyncio.sleep(0)
        queued.set()
        await asyncio.gather(*jobs)
        workers.close()

    asyncio.run(run())
    # The thread may find the end of the queue after the last one, and releases the interpreter once more.
    assert done[:5] == ["job", "release", "job", "release", "job"]


@pytest.mark.parametrize(("length", "released"), [(10, 0), (LARGE, 3)])
def test_the_event_loop_runs_between_steps_of_an_apply(
    length: int, released: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    for module in (apply_bodies, server_side_apply):
        monkeypatch.setattr(module, "release_interpreter", sizes.append)

    async def run() -> None:
        async with LocalServer() as server:
            for value in ("v", "w"):
                document = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}}
                answer = await server.ask(
                    "PATCH",
                    f"{MAPS}/m",
                    {**document, "data": {"k": value * length}},
                    content_type="application/apply-patch+yaml",
                    query={"fieldManager": "me"},
                )
                assert answer.code in (200, 201)

    asyncio.run(run())
    assert len([size for size in sizes if size > LARGE]) >= released
    assert released or max(sizes) <= LARGE
