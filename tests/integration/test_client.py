"""The client against our API server, in this process, over a link and over HTTPS: the same calls, the same answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.api.base import replace
from allot.api.claims import ExactDeviceRequest, ResourceClaim
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.apiserver.http.app import App
from allot.apiserver.http.exchange import Exchange
from allot.apiserver.http.http_exchange import MAX_BODY
from allot.apiserver.http.link_server import LinkServer
from allot.apiserver.http.linked_exchange import LinkedExchange
from allot.client.client import Client, without_retries
from allot.client.component_users import SCHEDULER
from allot.client.connection import connect
from allot.client.discovery import served
from allot.client.errors import ApiStatusError, TransportError
from allot.client.event_recorder import EventLimits, EventRecorder
from allot.client.events import NORMAL, reference_to
from allot.client.in_process import InProcessTransport
from allot.client.leader_election import LeaderElector
from allot.client.link import Link, LinkTransport
from allot.client.options import DeleteOptions, PatchType, Scope
from allot.client.resources import (
    CONFIG_MAPS,
    CORE_EVENTS,
    DEVICE_TAINT_RULES,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCES,
    raw_resource,
)
from allot.testing.builders import a_claim, a_pod, a_request
from allot.testing.processes import ApiServerProcess
from allot.testing.servers import TOKEN, LocalServer
from tests.integration.client_certificates import client_certificate

Scenario = Callable[[Client], Awaitable[None]]
NS = "default"


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerProcess]:
    with ApiServerProcess(tmp_path_factory.mktemp("server"), "--storage", "memory") as server:
        yield server


@contextlib.asynccontextmanager
async def local_client(server: LocalServer) -> AsyncIterator[Client]:
    client = Client(InProcessTransport(server.server.app, TOKEN))
    yield client
    await client.close()


class AsAdmin:
    """No component may do all that is tried here."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def serve(self, exchange: Exchange) -> None:
        assert isinstance(exchange, LinkedExchange)
        exchange.component = None
        exchange.headers = {**exchange.headers, "authorization": f"Bearer {TOKEN}"}
        await self._app.serve(exchange)


@contextlib.asynccontextmanager
async def linked_client(server: LocalServer) -> AsyncIterator[Client]:
    ours, theirs = socket.socketpair()

    other_end = LinkServer(AsAdmin(server.server.app), server.store)
    await other_end.start(theirs)
    link = await Link.over(ours)
    client = Client(LinkTransport(link, SCHEDULER))
    yield client
    await client.close()
    link.close()
    await other_end.close()


@pytest.fixture(params=["in-process", "link", "https"])
def play(request: pytest.FixtureRequest) -> Callable[[Scenario], None]:
    async def in_process(scenario: Scenario) -> None:
        async with LocalServer() as server, local_client(server) as client:
            await scenario(client)

    async def link(scenario: Scenario) -> None:
        async with LocalServer() as server, linked_client(server) as client:
            await scenario(client)

    async def https(scenario: Scenario) -> None:
        server: ApiServerProcess = request.getfixturevalue("process")
        client = connect(server.kubeconfig)
        try:
            await scenario(client)
        finally:
            await client.close()

    run = {"in-process": in_process, "link": link, "https": https}[request.param]

    def play(scenario: Scenario) -> None:
        async def main() -> None:
            async with asyncio.timeout(150):
                await run(scenario)

        asyncio.run(main())

    return play


Play = Callable[[Scenario], None]


def a_map(name: str, **data: str) -> RawObject:
    return RawObject({"metadata": {"name": name, "namespace": NS}, "data": data})


def test_a_raw_object_from_birth_to_death(play: Play) -> None:
    async def scenario(client: Client) -> None:
        key = ObjectKey(NS, "life")
        created = await client.create(CONFIG_MAPS, a_map("life", n="1"))
        assert created.metadata.uid
        assert created == await client.get(CONFIG_MAPS, key)
        with pytest.raises(ApiStatusError) as again:
            await client.create(CONFIG_MAPS, a_map("life"))
        assert again.value.is_already_exists

        updated = await client.update(CONFIG_MAPS, created.with_value({"n": "2"}, "data"))
        with pytest.raises(ApiStatusError) as stale:
            await client.update(CONFIG_MAPS, created.with_value({"n": "3"}, "data"))
        assert stale.value.is_conflict

        patched = await client.patch(CONFIG_MAPS, key, {"data": {"m": "1"}})
        assert patched.get("data") == {"n": "2", "m": "1"}
        patched = await client.patch(
            CONFIG_MAPS, key, [{"op": "remove", "path": "/data/n"}], PatchType.JSON
        )
        assert patched.get("data") == {"m": "1"}
        added = {"metadata": {"finalizers": ["a.example/b"]}}
        await client.patch(CONFIG_MAPS, key, added, PatchType.STRATEGIC)
        settled = await client.update_with_retry(
            CONFIG_MAPS,
            key,
            lambda obj: obj.with_value([], "metadata", "finalizers"),
            start=updated,
        )
        assert settled.metadata.finalizers == ()

        with pytest.raises(ApiStatusError) as wrong:
            await client.delete(CONFIG_MAPS, key, DeleteOptions(uid="another"))
        assert wrong.value.is_conflict
        await client.delete(CONFIG_MAPS, key, DeleteOptions(uid=created.metadata.uid))
        assert await client.find(CONFIG_MAPS, key) is None
        with pytest.raises(ApiStatusError) as gone:
            await client.get(CONFIG_MAPS, key)
        assert gone.value.is_not_found

    play(scenario)


def test_a_typed_object_and_its_status(play: Play) -> None:
    async def scenario(client: Client) -> None:
        request = a_request("r", ExactDeviceRequest(device_class_name="gpu"))
        claim = await client.create(RESOURCE_CLAIMS, a_claim(request, name="typed"))
        assert isinstance(claim, ResourceClaim)
        assert claim.spec.devices.requests[0].exactly is not None
        assert claim.spec.devices.requests[0].exactly.count == 1, "the server fills in defaults"

        body = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
        with pytest.raises(ApiStatusError) as early:
            await client.patch(RESOURCE_CLAIMS, ObjectKey(NS, "typed"), body, subresource="status")
        assert early.value.is_invalid
        assert early.value.causes

        result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "gpu-1"}
        allocated = RESOURCE_CLAIMS.codec.decode(
            RawObject({"status": {"allocation": {"devices": {"results": [result]}}}}).to_json()
        )
        written = await client.update_status(
            RESOURCE_CLAIMS, replace(claim, status=allocated.status)
        )
        assert written.status.allocation is not None
        listed = await client.list(RESOURCE_CLAIMS, Scope(NS))
        assert written in listed.items
        raw = await client.get(RESOURCE_CLAIMS.as_raw(), ObjectKey(NS, "typed"))
        assert raw.get("status", "allocation", "devices", "results", 0, "device") == "gpu-1"
        older = await client.get(RESOURCE_CLAIMS.in_version("v1beta1"), ObjectKey(NS, "typed"))
        assert older == written

    play(scenario)


def test_pods_are_bound_and_evicted(play: Play) -> None:
    async def scenario(client: Client) -> None:
        pod = await client.create(
            PODS, a_pod("bound", uid="", containers=[{"name": "c", "image": "i"}])
        )
        key = ObjectKey(NS, "bound")
        with pytest.raises(ApiStatusError) as wrong:
            await client.bind(key, "another-uid", "node-1")
        assert wrong.value.is_conflict
        await client.bind(key, pod.metadata.uid, "node-1")
        assert (await client.get(PODS, key)).node_name == "node-1"
        with pytest.raises(ApiStatusError) as twice:
            await client.bind(key, pod.metadata.uid, "node-2")
        assert twice.value.is_conflict
        await client.evict(key, DeleteOptions(uid=pod.metadata.uid, grace_period_seconds=0))
        evicted = await client.find(PODS, key)
        assert evicted is None or evicted.metadata.deletion_timestamp

    play(scenario)


def test_lists_of_many_pages_and_selectors(play: Play) -> None:
    async def scenario(client: Client) -> None:
        for number in range(12):
            labels = {"kind": "odd" if number % 2 else "even", "page": "yes"}
            body = a_map(f"page-{number}").with_value(labels, "metadata", "labels")
            await client.create(CONFIG_MAPS, body)
        scope = Scope(NS, label_selector="page=yes,kind in (odd)")
        listed = await client.list(CONFIG_MAPS, scope, page_size=2)
        assert len(listed.items) == 6
        named = Scope(NS, field_selector="metadata.name=page-3")
        assert [obj.metadata.name for obj in (await client.list(CONFIG_MAPS, named)).items] == [
            "page-3"
        ]
        await client.delete_collection(CONFIG_MAPS, scope)
        left = await client.list(CONFIG_MAPS, Scope(NS, label_selector="page=yes"))
        assert len(left.items) == 6

    play(scenario)


def test_every_resource_can_be_listed(play: Play) -> None:
    async def scenario(client: Client) -> None:
        for resource in RESOURCES:
            page = await client.list(resource)
            assert page.resource_version, resource
            assert await served(client, resource) is resource
        assert len((await client.list(NAMESPACES)).items) >= 4
        assert await served(client, DEVICE_TAINT_RULES.in_version("v1beta2")) is not None
        unknown = raw_resource(RawObject, "example.com", "v1", "things", "Thing")
        assert await served(client, unknown) is None

    play(scenario)


def test_watches_can_be_left_at_any_time(play: Play) -> None:
    async def scenario(client: Client) -> None:
        for _ in range(5):
            async with client.watch(NODES, initial_events=True) as batches:
                (event,) = await anext(batches)
                assert event.ends_initial_events
        created = await client.create(CONFIG_MAPS, a_map("seen"))
        version = str(int(created.metadata.resource_version) - 1)
        async with client.watch(CONFIG_MAPS, resource_version=version) as batches:
            (added,) = await anext(batches)
            assert (added.type, added.object) == ("ADDED", created)
        with pytest.raises(ApiStatusError) as refused:
            async with client.watch(CONFIG_MAPS, resource_version="nonsense"):
                pass
        assert refused.value.code == 400

    play(scenario)


def test_big_answers(play: Play) -> None:
    """Large enough for gzip, and for a line of a watch in many pieces."""

    async def scenario(client: Client) -> None:
        content = "\n" * 900_000
        created = await client.create(CONFIG_MAPS, a_map("big", content=content))
        assert await client.get(CONFIG_MAPS, ObjectKey(NS, "big")) == created
        scope = Scope(NS, field_selector="metadata.name=big")
        async with client.watch(CONFIG_MAPS, scope, initial_events=True) as batches:
            (event, *_) = await anext(batches)
            assert event.object == created

    play(scenario)


def test_names_are_escaped(play: Play) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(ApiStatusError) as missing:
            await client.get(CONFIG_MAPS, ObjectKey(NS, "a/b?c#d%e"))
        assert missing.value.is_not_found

    play(scenario)


def test_two_candidates_and_one_lease(play: Play) -> None:
    async def scenario(client: Client) -> None:
        key = ObjectKey("kube-system", "contended")
        begun: asyncio.Queue[str] = asyncio.Queue()

        def candidate(name: str) -> asyncio.Task[None]:
            async def lead() -> None:
                begun.put_nowait(name)
                await asyncio.Event().wait()

            elector = LeaderElector(client, key, name, chance=lambda: 0.0)
            return asyncio.create_task(elector.run(lead))

        tasks = {name: candidate(name) for name in ("one", "two")}
        first = await begun.get()
        tasks.pop(first).cancel()
        second = await begun.get()
        assert {first, second} == {"one", "two"}
        lease = await client.get(LEASES, key)
        assert lease.get("spec", "holderIdentity") == second
        assert lease.get("spec", "leaseTransitions") == 1
        tasks[second].cancel()
        await asyncio.wait(tasks.values())
        assert (await client.get(LEASES, key)).get("spec", "holderIdentity", default="") == ""

    play(scenario)


def test_events_are_counted(play: Play) -> None:
    async def scenario(client: Client) -> None:
        about = await client.create(CONFIG_MAPS, a_map("eventful"))
        recorder = EventRecorder(client, "tester", "tester-1", EventLimits(update_seconds=0.01))
        recorder.start()
        for _ in range(5):
            recorder.event(reference_to(CONFIG_MAPS, about), NORMAL, "Tested", "Testing", "again")
            await asyncio.sleep(0.03)
        await recorder.stop(seconds=60)
        assert recorder.dropped == 0
        scope = Scope(NS, field_selector="regarding.name=eventful")
        (event,) = (await client.list(EVENTS, scope)).items
        assert event.get("series", "count") == 5
        assert event.get("note") == "again"
        scope = Scope(NS, field_selector="involvedObject.name=eventful")
        (core,) = (await client.list(CORE_EVENTS, scope)).items
        assert core.get("message") == "again"

    play(scenario)


# --- what only HTTP has ---


def test_other_ways_to_say_who_we_are(process: ApiServerProcess, tmp_path: Path) -> None:
    """A token in a file, an exec plugin, a name in another context, an impersonated user."""
    config = yaml.safe_load(process.kubeconfig.read_text())
    token = config["users"][0]["user"]["token"]
    (tmp_path / "token").write_text(token)
    plugin = tmp_path / "plugin"
    credential = {
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1",
        "status": {"token": token},
    }
    script = f"#!/bin/sh\necho run >> {tmp_path}/runs\necho '{json.dumps(credential)}'\n"
    plugin.write_text(script)
    plugin.chmod(0o755)
    users = {
        "file": {"tokenFile": "token"},
        "exec": {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": str(plugin),
                "interactiveMode": "Never",
            }
        },
        "impersonating": {"token": token, "as": "another-user"},
        "wrong": {"token": "nonsense"},
    }
    cluster = config["contexts"][0]["context"]["cluster"]
    config["users"] = [{"name": name, "user": user} for name, user in users.items()]
    config["contexts"] = [
        {"name": name, "context": {"cluster": cluster, "user": name}} for name in users
    ]
    del config["current-context"]
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.dump(config))

    async def ask(context: str) -> int:
        client = connect(path, context)
        try:
            for _ in range(3):
                await client.list(NODES)
        except ApiStatusError as error:
            return error.code
        finally:
            await client.close()
        return 200

    codes = {name: asyncio.run(ask(name)) for name in users}

    assert codes == {"file": 200, "exec": 200, "impersonating": 403, "wrong": 401}
    assert (tmp_path / "runs").read_text() == "run\n", "once is enough"


def test_a_token_that_was_replaced_is_read_again(process: ApiServerProcess, tmp_path: Path) -> None:
    config = yaml.safe_load(process.kubeconfig.read_text())
    path = tmp_path / "kubeconfig"
    right = config["users"][0]["user"]["token"]
    config["users"][0]["user"] = {"tokenFile": str(tmp_path / "token")}
    path.write_text(yaml.dump(config))
    (tmp_path / "token").write_text("outdated")

    async def main() -> None:
        client = connect(path)
        with pytest.raises(ApiStatusError) as refused:
            await client.list(NODES)
        assert refused.value.is_unauthorized
        (tmp_path / "token").write_text(right)
        await client.list(NODES)
        await client.close()

    asyncio.run(main())


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while content := await reader.read(65536):
            writer.write(content)
            await writer.drain()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


class Proxy:
    """An HTTP proxy that knows CONNECT only, and where everything really leads."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._serving: list[asyncio.Task[None]] = []
        self.asked: list[str] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()[:2]
            yield f"http://{host}:{port}"
        await asyncio.wait(self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: Any = asyncio.current_task()
        self._serving.append(task)
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.split()[1].decode())
        inner_reader, inner_writer = await asyncio.open_connection(*self._target)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(relay(reader, inner_writer), relay(inner_reader, writer))


def test_an_expired_client_certificate_is_unauthorized(
    process: ApiServerProcess, tmp_path: Path
) -> None:
    """A token beside it counts."""
    config = yaml.safe_load(process.kubeconfig.read_text())
    token = config["users"][0]["user"]
    pki = process.directory / "pki"
    old = client_certificate(pki, tmp_path, "carl", "system:masters", timedelta(hours=2))
    path = tmp_path / "kubeconfig"

    async def code(user: dict[str, str]) -> int:
        config["users"][0]["user"] = user
        path.write_text(yaml.dump(config))
        client = connect(path)
        try:
            await client.list(CONFIG_MAPS)
            return 200
        except ApiStatusError as error:
            return error.code
        finally:
            await client.close()

    async def main() -> None:
        assert [await code(old), await code({**old, **token})] == [401, 200]

    asyncio.run(main())


def test_certificates_proxies_and_names_of_servers(
    process: ApiServerProcess, tmp_path: Path
) -> None:
    config = yaml.safe_load(process.kubeconfig.read_text())
    pki = process.directory / "pki"
    config["users"][0]["user"] = client_certificate(pki, tmp_path, "carl", "system:masters")
    cluster = config["clusters"][0]["cluster"]
    cluster["server"] = "https://api.example.com:443"
    cluster["tls-server-name"] = "localhost"
    path = tmp_path / "kubeconfig"

    async def main() -> None:
        address = process.address
        proxy = Proxy((address.host, address.port))
        async with proxy.running() as url:
            cluster["proxy-url"] = url
            path.write_text(yaml.dump(config))
            client = connect(path)
            created = await client.create(CONFIG_MAPS, a_map("through-the-proxy"))
            async with client.watch(CONFIG_MAPS, initial_events=True) as batches:
                async for events in batches:
                    if created in [event.object for event in events]:
                        break
            await client.close()
        assert set(proxy.asked) == {"api.example.com:443"}

    asyncio.run(main())


def test_a_server_certificate_of_an_unknown_authority_is_rejected(
    process: ApiServerProcess, tmp_path: Path
) -> None:
    config = yaml.safe_load(process.kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    for name in ("certificate-authority", "certificate-authority-data"):
        cluster.pop(name, None)
    path = tmp_path / "kubeconfig"

    async def ask() -> None:
        path.write_text(yaml.dump(config))
        client = without_retries(connect(path))
        try:
            await client.list(NODES)
        finally:
            await client.close()

    with pytest.raises(TransportError, match="certificate verify failed"):
        asyncio.run(ask())
    cluster["insecure-skip-tls-verify"] = True
    asyncio.run(ask())


def test_a_body_that_is_too_large_is_refused_in_process_as_over_http() -> None:
    async def main() -> None:
        async with LocalServer() as server:
            way = InProcessTransport(server.server.app, TOKEN)
            body = b'{"metadata":{"name":"m"},"data":{"a":"' + b"x" * MAX_BODY + b'"}}'

            answer = await way.request("POST", "/api/v1/namespaces/default/configmaps", None, body)

            assert answer.code == 413

    asyncio.run(main())
