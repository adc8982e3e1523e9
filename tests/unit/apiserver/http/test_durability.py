"""What leaves the server is durable; linked components see it before, and never what was withdrawn (decision 0015)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from allot.apiserver.http.link_server import LinkServer
from allot.apiserver.watch_cache.codecs import RawCodec
from allot.client.component_users import (
    CONTROLLER_MANAGER,
    NODES,
    SCHEDULER,
    ComponentUser,
)
from allot.client.errors import TransportError
from allot.client.link import Link, LinkTransport
from allot.storage import sqlite_writes
from allot.storage.sqlite import SqliteStore
from allot.testing.servers import LocalServer, ServerResponse
from tests.unit.storage.held_commits import HeldCommits

PODS = "/api/v1/namespaces/default/pods"
NODE_LIST = "/api/v1/nodes"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
REQUESTS = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
OBJECTS: dict[str, dict[str, Any]] = {
    PODS: POD,
    CLAIMS: {"metadata": {"name": "p"}, "spec": {"devices": {"requests": REQUESTS}}},
    CONFIG_MAPS: {"metadata": {"name": "p"}},
}
EVENTS = "/api/v1/namespaces/default/events"
NEWER_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
EVENT = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "r"}
BINDING = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}


class Stage:
    """A server on SQLite that shows pending writes, with components linked to it."""

    def __init__(self, server: LocalServer, link: Link, commits: HeldCommits) -> None:
        self.server, self.link, self.commits = server, link, commits

    def ask(self, method: str, path: str, body: Any = None) -> asyncio.Task[ServerResponse]:
        """As a client from outside."""
        return asyncio.create_task(self.server.ask(method, path, body))

    async def linked(
        self, user: ComponentUser, method: str, path: str, body: Any = None
    ) -> tuple[int, Any]:
        """As a component."""
        content = None if body is None else msgspec.json.encode(body)
        answer = await LinkTransport(self.link, user).request(method, path, body=content)
        return answer.code, msgspec.json.decode(answer.body)


@asynccontextmanager
async def staged(path: Path, commits: HeldCommits) -> AsyncIterator[Stage]:
    store = await SqliteStore.open(path, compaction_interval_seconds=0, shows_pending_writes=True)
    async with LocalServer(store) as server:
        ours, theirs = socket.socketpair()
        other_end = LinkServer(server.server.app, store)
        await other_end.start(theirs)
        link = await Link.over(ours)
        await server.get(PODS)
        try:
            yield Stage(server, link, commits)
        finally:
            commits.release()
            link.close()
            await other_end.close()


Scenario = Callable[[Stage], Awaitable[None]]
Play = Callable[[Scenario], None]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    monkeypatch.setattr(sqlite_writes, "RETRY_SECONDS", 0.01)
    commits = HeldCommits(monkeypatch)

    def run(scenario: Scenario) -> None:
        async def in_time() -> None:
            async with asyncio.timeout(60), staged(tmp_path / "store.db", commits) as stage:
                await scenario(stage)

        asyncio.run(in_time())

    return run


async def is_waiting(task: asyncio.Task[Any]) -> bool:
    for _ in range(50):
        await asyncio.sleep(0)
    return not task.done()


async def until_linked_sees_the_pod(stage: Stage) -> None:
    while not await linked_pods(stage):
        await asyncio.sleep(0)


async def linked_pods(stage: Stage) -> list[Any]:
    code, pods = await stage.linked(CONTROLLER_MANAGER, "GET", PODS)
    assert code == 200, pods
    found: list[Any] = pods["items"]
    return found


def test_answers_to_clients_wait_until_writes_are_durable(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        stage.commits.hold()
        creating = stage.ask("POST", PODS, POD)
        await until_linked_sees_the_pod(stage)
        reading, listing = stage.ask("GET", f"{PODS}/p"), stage.ask("GET", PODS)
        again = stage.ask("POST", PODS, POD)
        as_node = asyncio.create_task(stage.linked(NODES, "GET", f"{PODS}/p"))
        for task in (creating, reading, listing, again, as_node):
            assert await is_waiting(task)

        stage.commits.release()
        assert (await creating).code == 201
        assert (await reading).json["metadata"]["uid"] == (await creating).json["metadata"]["uid"]
        assert [pod["metadata"]["name"] for pod in (await listing).json["items"]] == ["p"]
        assert (await again).code == 409
        assert (await as_node)[0] == 200

    play(scenario)


@pytest.mark.parametrize("path", [PODS, CLAIMS, CONFIG_MAPS])
@pytest.mark.parametrize("names", ["/p", ""], ids=["one", "collection"])
def test_answers_to_deletes_wait_until_nothing_is_left(play: Play, path: str, names: str) -> None:
    """Some of them show the object as it was before."""

    async def scenario(stage: Stage) -> None:
        body = OBJECTS[path]
        assert (await stage.ask("POST", path, body)).code == 201
        stage.commits.hold()
        deleting = stage.ask("DELETE", path + names, {"gracePeriodSeconds": 0})
        while (await stage.linked(CONTROLLER_MANAGER, "GET", path))[1]["items"]:
            await asyncio.sleep(0)
        assert await is_waiting(deleting)
        stage.commits.fail()
        answer = await deleting
        assert answer.code == 503
        assert "disk I/O error" in answer.json["message"]
        stage.commits.release()

    play(scenario)


def test_a_watch_selects_objects_that_clients_write_without_decoding_them(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.server.post(PODS, POD | {"metadata": {"name": "first"}})  # reads other kinds
        async with stage.server.watch(PODS, fieldSelector="spec.nodeName=") as events:
            await events.next()
            monkeypatch.setattr(RawCodec, "decode_stored", None)
            assert (await stage.ask("POST", PODS, POD)).code == 201
            event = await events.next()
            assert event is not None
            assert event["object"]["metadata"]["name"] == "p"
            monkeypatch.undo()

    play(scenario)


def test_an_answer_about_one_object_waits_for_that_object_alone(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        durable = POD | {"metadata": {"name": "durable"}}
        assert (await stage.ask("POST", PODS, durable)).code == 201
        stage.commits.hold()
        creating = stage.ask("POST", PODS, POD)
        while len(await linked_pods(stage)) < 2:
            await asyncio.sleep(0)
        reading = stage.ask("GET", f"{PODS}/p")
        assert (await stage.ask("GET", f"{PODS}/durable")).code == 200
        assert await is_waiting(reading)
        assert not creating.done()
        stage.commits.release()
        assert (await reading).code == 200
        await creating

    play(scenario)


def test_reads_of_other_resources_do_not_wait(play: Play) -> None:
    """The version of their list is not one that may be withdrawn."""

    async def scenario(stage: Stage) -> None:
        await stage.server.get(NODE_LIST)
        durable = stage.server.store.durable
        stage.commits.hold()
        creating = stage.ask("POST", PODS, POD)
        await until_linked_sees_the_pod(stage)
        nodes = await stage.server.get(NODE_LIST)
        assert nodes["metadata"]["resourceVersion"] == str(durable)
        stage.commits.release()
        await creating
        nodes = await stage.server.get(NODE_LIST)
        assert nodes["metadata"]["resourceVersion"] == str(durable + 1)

    play(scenario)


def test_lists_of_what_is_stored_as_another_resource_wait(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.server.get(NEWER_EVENTS)
        stage.commits.hold()
        creating = stage.ask("POST", EVENTS, EVENT)
        assert await is_waiting(creating)
        listings = [stage.ask("GET", path) for path in (EVENTS, NEWER_EVENTS)]
        for listing in listings:
            assert await is_waiting(listing)
        stage.commits.release()
        assert (await creating).code == 201
        for listing in listings:
            assert len((await listing).json["items"]) == 1

    play(scenario)


def test_a_watch_sends_what_is_durable(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.server.watch(PODS) as events:
            stage.commits.hold()
            creating = stage.ask("POST", PODS, POD)
            await until_linked_sees_the_pod(stage)
            receiving = asyncio.create_task(events.next())
            assert await is_waiting(receiving)
            stage.commits.release()
            event = await receiving
            assert event is not None
            assert event["type"] == "ADDED"
            await creating

    play(scenario)


def test_a_linked_write_is_answered_before_it_is_durable(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.server.post(PODS, POD)
        stage.commits.hold()
        code, _ = await stage.linked(SCHEDULER, "POST", f"{PODS}/p/binding", BINDING)
        assert code == 201
        [pod] = await linked_pods(stage)
        assert pod["spec"]["nodeName"] == "n"

    play(scenario)


def test_clients_never_see_what_is_withdrawn(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.server.watch(PODS) as events:
            stage.commits.hold()
            creating = stage.ask("POST", PODS, POD)
            await until_linked_sees_the_pod(stage)
            reading = stage.ask("GET", f"{PODS}/p")
            assert await is_waiting(reading)
            stage.commits.fail()
            assert (await creating).code == 503
            assert (await reading).code == 503
            cached = await stage.server.ask("GET", PODS, query={"resourceVersion": "0"})
            assert cached.json["items"] == []
            assert (await stage.server.ask("GET", f"{PODS}/p")).code == 404
            # The watch ends, or says that it is too old. Clients list again.
            event = await events.next()
            assert event is None or event["type"] == "ERROR"
        stage.commits.release()
        while stage.server.store.trouble is not None:
            await asyncio.sleep(0.01)
        await stage.server.post(PODS, POD)
        assert (await stage.server.ask("GET", f"{PODS}/p")).code == 200

    play(scenario)


def test_the_link_is_cut_when_writes_are_withdrawn(play: Play) -> None:
    """What components wrote meanwhile may follow from what was withdrawn, such as a binding from an allocation."""

    async def scenario(stage: Stage) -> None:
        await stage.server.post(PODS, POD)
        stage.commits.hold()
        creating = stage.ask("POST", PODS, POD | {"metadata": {"name": "other"}})
        while len(await linked_pods(stage)) < 2:
            await asyncio.sleep(0)
        code, _ = await stage.linked(SCHEDULER, "POST", f"{PODS}/p/binding", BINDING)
        assert code == 201
        as_node = asyncio.create_task(stage.linked(NODES, "GET", f"{PODS}/p"))
        assert await is_waiting(as_node)
        stage.commits.fail()
        with pytest.raises(TransportError):
            await as_node
        await stage.link.is_lost.wait()
        stage.commits.release()
        assert (await creating).code == 503
        while stage.server.store.trouble is not None:
            await asyncio.sleep(0.01)
        pod = await stage.server.get(f"{PODS}/p")
        assert "nodeName" not in pod["spec"]

    play(scenario)
