"""Large objects that are not decoded are looked into in threads, one by one, for all who ask."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from allot.api.custom_resources import CustomResourceDefinition
from allot.apiserver.http import subresources
from allot.apiserver.pacing import LARGE
from allot.apiserver.registry import custom_definitions, selection, service_addresses
from allot.apiserver.registry.definition_status import TakenNames, with_status
from allot.apiserver.registry.selection import Selection
from allot.apiserver.watch_cache.caches import resource_named
from allot.apiserver.watch_cache.codecs import RawCodec
from allot.storage.memory import MemoryStore
from allot.testing.manifests import a_pod_manifest
from allot.testing.servers import LocalServer
from tests.step_counts import steps, with_counted_texts

CORE = "/api/v1/namespaces/default"
MAPS = f"{CORE}/configmaps"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
SMALL, HEAVY = "x", "x" * (LARGE + 1)


def named(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"a": "b"}}, **fields}


class Noticed:
    """In which threads a function runs."""

    def __init__(self, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[int] = []
        plain = getattr(owner, name)

        def noticing(*arguments: Any) -> Any:
            self.threads.append(threading.get_ident())
            return plain(*arguments)

        monkeypatch.setattr(owner, name, noticing)

    @property
    def are_elsewhere(self) -> set[bool]:
        return {thread != threading.get_ident() for thread in self.threads}


async def restarted(path: str, *documents: dict[str, Any]) -> LocalServer:
    """A server that has never looked into these objects."""
    store = MemoryStore()
    first = LocalServer(store)
    await first.server.start()
    for document in documents:
        await first.post(path, document)
    await first.server.close()
    return LocalServer(store)


@pytest.mark.parametrize(("text", "in_thread"), [(SMALL, False), (HEAVY, True)])
@pytest.mark.parametrize("query", [{"labelSelector": "a=b"}, {"fieldSelector": "metadata.name!=z"}])
def test_lists_with_selectors(
    text: str, in_thread: bool, query: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    matches = Noticed(Selection, "matches", monkeypatch)

    async def run() -> None:
        async with await restarted(MAPS, named("a", data={"k": text})) as server:
            listed = await server.ask("GET", MAPS, query=query)
            assert [item["metadata"]["name"] for item in listed.json["items"]] == ["a"]
            assert matches.are_elsewhere == {in_thread}

    asyncio.run(run())


@pytest.mark.parametrize("text", [SMALL, HEAVY])
@pytest.mark.parametrize("query", [{"labelSelector": "a=b"}, {"fieldSelector": "metadata.name!=z"}])
def test_a_selection_looks_up_its_codec_once(
    text: str, query: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups = Noticed(selection, "storage_codec", monkeypatch)

    async def run() -> None:
        async with await restarted(MAPS, *(named(n, data={"k": text}) for n in "abc")) as server:
            listed = await server.ask("GET", MAPS, query=query)
            assert len(listed.json["items"]) == 3
            assert len(lookups.threads) == 1

    asyncio.run(run())


@pytest.mark.parametrize("text", [SMALL, HEAVY])
@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        ("spec.nodeName=n", True),
        ("spec.nodeName!=n", False),
        ("spec.nodeName=n,metadata.name=a,status.phase=Pending", True),
        ("spec.hostNetwork=false", True),
        ("status.nominatedNodeName=", True),
    ],
)
def test_of_large_objects_only_the_selected_fields_are_decoded(
    text: str, selector: str, is_selected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    plain = RawCodec.decode_stored

    def noticing(self: RawCodec, body: bytes) -> Any:
        decoded.append(len(body))
        return plain(self, body)

    async def run() -> None:
        pod = a_pod_manifest("a", node="n")
        pod["metadata"]["annotations"] = {"long": text}
        async with await restarted(f"{CORE}/pods", pod) as server:
            monkeypatch.setattr(RawCodec, "decode_stored", noticing)
            listed = await server.ask("GET", f"{CORE}/pods", query={"fieldSelector": selector})
            assert len(listed.json["items"]) == is_selected
            assert max(decoded, default=0) < LARGE

    asyncio.run(run())


@pytest.mark.parametrize("text", [SMALL, HEAVY])
@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"labelSelector": "a=b"}, 2),
        ({"labelSelector": "a=c"}, 0),
        ({"labelSelector": "!z"}, 2),
        ({"fieldSelector": "metadata.name!=a"}, 1),
        ({"fieldSelector": "metadata.namespace=other"}, 0),
        ({"labelSelector": "a=b", "fieldSelector": "metadata.namespace=default"}, 2),
    ],
)
def test_of_large_objects_only_metadata_is_read(
    text: str, query: dict[str, str], count: int
) -> None:
    """To decode 3 MB takes 50 ms, in which no other thread runs."""

    async def run() -> None:
        documents = [named(name, data={"k": text}) for name in "ab"]
        async with await restarted(MAPS, *documents) as server:
            listed = await server.ask("GET", MAPS, query=query)
            assert len(listed.json["items"]) == count
            cache = server.server.caches.of(resource_named("", "configmaps"))
            found = [stored for stored in cache.select(cache.prefix) if "/default/" in stored.key]
            assert len(found) == 2
            assert {stored.is_decoded for stored in found} == {text is SMALL}

    asyncio.run(run())


def test_other_fields_of_large_objects_are_read() -> None:
    async def run() -> None:
        pod = named("p", spec={"containers": [{"name": "c", "image": "i"}], "nodeName": "n"})
        pod["metadata"]["annotations"] = {"k": HEAVY}
        async with await restarted(f"{CORE}/pods", pod) as server:
            for name, count in (("n", 1), ("m", 0)):
                query = {"fieldSelector": f"spec.nodeName={name}"}
                listed = await server.ask("GET", f"{CORE}/pods", query=query)
                assert len(listed.json["items"]) == count

    asyncio.run(run())


@pytest.mark.parametrize(("text", "in_thread"), [(SMALL, False), (HEAVY, True)])
def test_watches_with_selectors(
    text: str, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    matches = Noticed(Selection, "matches", monkeypatch)

    async def run() -> None:
        async with (
            await restarted(MAPS, named("a", data={"k": text})) as server,
            server.watch(MAPS, labelSelector="a=b") as stream,
        ):
            event = await stream.next()
            assert event is not None
            assert event["object"]["metadata"]["name"] == "a"
        assert matches.are_elsewhere == {in_thread}

    asyncio.run(run())


@pytest.mark.parametrize(("text", "in_thread"), [(SMALL, False), (HEAVY, True)])
def test_watches_of_tables(text: str, in_thread: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    matches = Noticed(Selection, "matches", monkeypatch)

    async def run() -> None:
        async with (
            LocalServer() as server,
            server.watch(MAPS, headers=TABLE, fieldSelector="metadata.name=a") as stream,
        ):
            matches.threads.clear()
            await server.post(MAPS, named("a", data={"k": text}))
            event = await stream.next()
            assert event is not None
            assert event["object"]["rows"][0]["cells"][0] == "a"
        assert matches.are_elsewhere == {in_thread}

    asyncio.run(run())


@pytest.mark.parametrize(("text", "in_thread"), [(SMALL, False), (HEAVY, True)])
def test_addresses_of_services(text: str, in_thread: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Noticed(service_addresses, "_stored_addresses", monkeypatch)
    service = named("a", spec={"ports": [{"port": 1}]})
    service["metadata"]["annotations"] = {"k": text}

    async def run() -> None:
        async with await restarted(f"{CORE}/services", service) as server:
            read.threads.clear()
            await server.post(f"{CORE}/services", named("b", spec={"ports": [{"port": 1}]}))

    asyncio.run(run())
    assert in_thread in read.are_elsewhere
    assert in_thread or True not in read.are_elsewhere


@pytest.mark.parametrize(("count", "in_thread"), [(1, False), (1000, True)])
def test_selectors_of_disruption_budgets(
    count: int, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Noticed(subresources, "_protects", monkeypatch)
    absent = [{"key": f"k{number}", "operator": "DoesNotExist"} for number in range(count)]
    budget = named("a", spec={"minAvailable": 1, "selector": {"matchExpressions": absent}})
    pod = named("p", spec={"containers": [{"name": "c", "image": "i"}]})

    async def run() -> int:
        async with LocalServer() as server:
            await server.post(BUDGETS, budget)
            await server.post(f"{CORE}/pods", pod)
            running = {"metadata": {"name": "p"}, "status": {"phase": "Running"}}
            await server.ask("PUT", f"{CORE}/pods/p/status", running)
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
            return (await server.ask("POST", f"{CORE}/pods/p/eviction", eviction)).code

    assert asyncio.run(run()) == 429
    assert read.are_elsewhere == {in_thread}


# --- definitions ---


def a_definition(short_names: int, versions: int = 1) -> dict[str, Any]:
    names = {"plural": "as", "kind": "A", "singular": "a", "listKind": "AList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "metadata": {"name": "as.example.com"},
        "spec": {
            "group": "example.com",
            "names": {**names, "shortNames": [f"s{number}" for number in range(short_names)]},
            "scope": "Namespaced",
            "versions": [
                {"name": f"v{number + 1}", "served": True, "storage": not number, "schema": schema}
                for number in range(versions)
            ],
        },
    }


@pytest.mark.parametrize(("short_names", "in_thread"), [(1, False), (5000, True)])
def test_the_status_of_a_definition(
    short_names: int, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = Noticed(custom_definitions, "with_status", monkeypatch)

    async def run() -> None:
        async with LocalServer() as server:
            await server.post(DEFINITIONS, a_definition(short_names))
            path = "/apis/example.com/v1/namespaces/default/as"
            async with asyncio.timeout(60):
                while (await server.ask("GET", path)).code != 200:
                    await asyncio.sleep(0.01)

    asyncio.run(run())
    assert decided.are_elsewhere == {in_thread}


def test_short_names_are_looked_up() -> None:
    def decide(count: int) -> CustomResourceDefinition:
        document = with_counted_texts(a_definition(count))
        document["status"] = {"acceptedNames": with_counted_texts(document["spec"]["names"])}
        now = datetime(2026, 1, 1, tzinfo=UTC)
        taken = TakenNames(frozenset(), frozenset())
        return with_status(CustomResourceDefinition(document), taken, now)

    assert decide(2).accepted_names["shortNames"] == ["s0", "s1"]
    assert steps(lambda: decide(200)) < 2.5 * steps(lambda: decide(100))


def test_versions_of_a_definition_come_and_go() -> None:
    async def run() -> list[int]:
        async with LocalServer() as server:
            codes = []
            for versions in (3, 1, 2):
                stored = await server.ask("GET", f"{DEFINITIONS}/as.example.com")
                if stored.code == 404:
                    await server.post(DEFINITIONS, a_definition(0, versions))
                else:
                    document = stored.json
                    document["spec"] = a_definition(0, versions)["spec"]
                    document["status"]["storedVersions"] = ["v1"]
                    answer = await server.ask("PUT", f"{DEFINITIONS}/as.example.com", document)
                    assert answer.code == 200, answer
                wanted = [200 if number < versions else 404 for number in range(3)]
                async with asyncio.timeout(60):
                    while [await code_of(server, number) for number in range(3)] != wanted:
                        await asyncio.sleep(0.01)
                codes.append(versions)
            await server.ask("DELETE", f"{DEFINITIONS}/as.example.com")
            async with asyncio.timeout(60):
                while await code_of(server, 0) != 404:
                    await asyncio.sleep(0.01)
            return codes

    async def code_of(server: LocalServer, number: int) -> int:
        path = f"/apis/example.com/v{number + 1}/namespaces/default/as"
        return (await server.ask("GET", path)).code

    assert asyncio.run(run()) == [3, 1, 2]
