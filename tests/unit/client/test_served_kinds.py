"""Kinds that come and go, and the metadata of their objects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from allot.api.identities import ObjectKey
from allot.client.client import Client
from allot.client.discovery import Discovery, ServedKind, discover
from allot.client.errors import ApiStatusError, UnreadableAnswerError
from allot.client.in_process import InProcessTransport
from allot.client.informer import InformerFactory
from allot.client.metadata import MetadataCodec, MetadataObject
from allot.client.resources import CONFIG_MAPS
from allot.client.served_kinds import DEFINITIONS, ServedKinds
from allot.client.transport import JSON, Query, Response
from allot.testing.servers import TOKEN, LocalServer
from tests.unit.client.fakes import FakeClock, ScriptedTransport

BATCH = "/apis/batch/v1/namespaces/default"
CONFIG_MAP_PATH = "/api/v1/namespaces/default/configmaps"
JOB = {
    "metadata": {"name": "j", "finalizers": ["x.dev/y"]},
    "spec": {
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        }
    },
}


class Selective(InProcessTransport):
    """A server that does not always tell of all its groups."""

    hidden: frozenset[str] = frozenset()
    stale: frozenset[str] = frozenset()
    is_silent = False

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        if self.is_silent and path in ("/api", "/apis"):
            return Response(404, (), b"{}")
        if any(path.startswith(f"/apis/{group}/") for group in self.hidden):
            return Response(404, (), b"{}")
        response = await super().request(method, path, query, body, content_type, headers)
        if path != "/apis":
            return response
        found = msgspec.json.decode(response.body)
        found["items"] = [
            item for item in found["items"] if item["metadata"]["name"] not in self.hidden
        ]
        for item in found["items"]:
            if item["metadata"]["name"] in self.stale:
                item["versions"] = [
                    {**version, "resources": [], "freshness": "Stale"}
                    for version in item["versions"]
                ]
        return msgspec.structs.replace(response, body=msgspec.json.encode(found))


class Listened:
    """What listeners heard, as `+job`, `-job`."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.last: MetadataObject | None = None

    def __call__(
        self, kind: ServedKind, old: MetadataObject | None, new: MetadataObject | None
    ) -> None:
        if kind.kind == "Job":
            self.heard.append("+" if old is None else "-" if new is None else "~")
            self.last = new or self.last


async def until(holds: Any) -> None:
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0.002)


def test_listeners_say_what_they_want() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            factory = InformerFactory(Client(InProcessTransport(server.server.app, TOKEN)))
            config_maps = factory.informer(CONFIG_MAPS)
            kinds = factory.companion(ServedKinds)
            all_, deletions, needing = Listened(), Listened(), Listened()
            kinds.listen(all_)
            kinds.listen(deletions, only_deletions=True)
            kinds.listen(needing, needs=config_maps)
            factory.start()
            try:
                await kinds.wait_synced()
                await server.post(f"{BATCH}/jobs", JOB)
                await until(lambda: all_.heard == ["+"])
                await server.post(CONFIG_MAP_PATH, {"metadata": {"name": "c"}})
                await until(config_maps.list)
                patch = {"metadata": {"finalizers": None}}
                merge = "application/merge-patch+json"
                await server.ask("PATCH", f"{BATCH}/jobs/j", patch, content_type=merge)
                await server.ask("DELETE", f"{BATCH}/jobs/j")
                await until(lambda: "-" in all_.heard)
                assert all_.heard[0] == "+"
                assert deletions.heard == ["-"]
                assert needing.heard == all_.heard[1:]
            finally:
                await factory.stop()

    asyncio.run(story())


def test_updates_that_a_listener_needs_are_not_left_out() -> None:
    """Those of kinds that one listener needs are told to all, and those of definitions always."""
    jobs, config_maps = ("batch", "jobs"), ("", "configmaps")

    def ignored(*listenings: dict[str, Any]) -> list[bool]:
        async def story() -> list[bool]:
            kinds = ServedKinds(InformerFactory(Client(ScriptedTransport(), clock=FakeClock())))
            for listening in listenings:
                kinds.listen(Listened(), **listening)
            return [kinds._ignored(name) is not None for name in (jobs, config_maps, DEFINITIONS)]

        return asyncio.run(story())

    assert ignored({}) == [False, False, False]
    assert ignored({"every_update_of": ()}) == [True, True, False]
    assert ignored({"every_update_of": ()}, {"only_deletions": True}) == [True, True, False]
    assert ignored({"every_update_of": ()}, {"every_update_of": {jobs}}) == [False, True, False]
    assert ignored({"every_update_of": ()}, {}) == [False, False, False]


def test_kinds_come_and_go() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            transport = Selective(server.server.app, TOKEN)
            kinds, listened = ServedKinds(InformerFactory(Client(transport))), Listened()
            kinds.listen(listened)
            await server.post(f"{BATCH}/jobs", JOB)
            kinds.start()
            try:
                await kinds.wait_synced()
                assert listened.heard == ["+"]
                assert listened.last
                assert listened.last.key == ObjectKey("default", "j")
                assert listened.last.finalizers == ("x.dev/y",)
                assert kinds.find("batch/v1", "Job") == kinds.find("batch/v2", "Job")

                transport.is_silent = True
                await kinds.refresh()
                assert kinds.failure
                assert kinds.find("batch/v1", "Job")

                transport.is_silent, transport.stale = False, frozenset({"batch"})
                await kinds.refresh()
                assert kinds.failure == "unable to retrieve: batch/v1"
                assert kinds.find("batch/v1", "Job")
                assert listened.heard == ["+"]

                transport.stale, transport.hidden = frozenset(), frozenset({"batch"})
                await kinds.refresh()
                assert not kinds.failure
                assert kinds.find("batch/v1", "Job") is None
                assert listened.heard == ["+", "-"]

                transport.hidden = frozenset()
                await kinds.refresh()
                await until(lambda: listened.heard == ["+", "-", "+"])
                await server.ask("DELETE", f"{BATCH}/jobs/j")
                await until(lambda: listened.heard[3:] == ["~"])
                assert listened.last.is_being_deleted
            finally:
                await kinds.stop()

    asyncio.run(story())


def test_callers_that_wait_share_a_discovery(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[None] = []
    may_end = asyncio.Event()

    async def counted(client: Client) -> Discovery:
        began.append(None)
        await may_end.wait()
        return await discover(client)

    monkeypatch.setattr("allot.client.served_kinds.discover", counted)

    async def story() -> None:
        async with LocalServer() as server:
            kinds = ServedKinds(InformerFactory(Client(Selective(server.server.app, TOKEN))))
            try:
                first = asyncio.create_task(kinds.refresh())
                await until(lambda: began)
                # What these ask about may have been defined after the first discovery began.
                later = [asyncio.create_task(kinds.refresh()) for _ in range(20)]
                await asyncio.sleep(0)
                may_end.set()
                await asyncio.gather(first, *later)
                assert len(began) == 2
                await kinds.refresh()
                assert len(began) == 3
            finally:
                await kinds.stop()

    asyncio.run(story())


def test_a_late_listener_hears_of_everything() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            await server.post(f"{BATCH}/jobs", JOB)
            client = Client(Selective(server.server.app, TOKEN))
            kinds, listened = ServedKinds(InformerFactory(client)), Listened()
            kinds.start()
            try:
                await kinds.wait_synced()
                kinds.listen(listened)
                assert listened.heard == ["+"]
            finally:
                await kinds.stop()

    asyncio.run(story())


def test_discovery_knows_versions_scopes_and_verbs() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            found = await discover(Client(Selective(server.server.app, TOKEN)))
        claims = [kind for kind in found.kinds if kind.plural == "resourceclaims"]
        assert [kind.version for kind in claims if kind.is_preferred] == ["v1"]
        assert {"v1beta1", "v1beta2"} < {kind.version for kind in claims}
        assert claims[0].group_resource == "resourceclaims.resource.k8s.io"
        (nodes,) = (kind for kind in found.kinds if kind.plural == "nodes")
        assert not nodes.namespaced
        assert nodes.can("list", "watch", "deletecollection")
        assert not nodes.can("fly")

    asyncio.run(story())


def test_only_metadata_is_sent() -> None:
    async def story() -> None:
        async with LocalServer() as server:
            await server.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})
            client = Client(Selective(server.server.app, TOKEN))
            found = await discover(client)
            (maps,) = (kind for kind in found.kinds if kind.plural == "configmaps")
            key = ObjectKey("default", "c")
            page = await client.list(maps.resource)
            assert [obj.key for obj in page.items] == [key]
            assert (await client.get(maps.resource, key)).uid == page.items[0].uid
            for path, headers in (
                ("/api/v1/configmaps", maps.resource.form.list_headers),
                ("/api/v1/namespaces/default/configmaps/c", maps.resource.form.headers),
            ):
                response = await client.request("GET", path, headers=headers)
                assert "PartialObjectMetadata" in msgspec.json.decode(response.body)["kind"]

    asyncio.run(story())


def test_what_is_not_metadata_is_said_to_be_so() -> None:
    codec = MetadataCodec()

    with pytest.raises(UnreadableAnswerError):
        codec.decode(b'{"metadata":{"name":7}}')
    with pytest.raises(UnreadableAnswerError):
        codec.decode_page(b"[]")
    with pytest.raises(UnreadableAnswerError):
        codec.decode_event(b"{}")
    with pytest.raises(ApiStatusError) as gone:
        codec.decode_event(b'{"type":"ERROR","object":{"kind":"Status","code":410}}')
    assert gone.value.is_expired
    bookmark = codec.decode_event(
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}'
    )
    assert (bookmark.object, bookmark.resource_version) == (None, "7")
    with pytest.raises(TypeError):
        codec.encode(MetadataObject())
