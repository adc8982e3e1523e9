"""Webhooks that hang, refuse, answer rubbish or far too much, or are gone: they behave by their failure policy.

Requests that a webhook is not asked about never wait for one that does not answer.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from allot.apiserver.dynamic_admission import webhook_client
from allot.apiserver.http.flow_control import FlowLimits
from allot.testing.servers import LocalServer
from tests.conformance.admission_webhook import make_certificates

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Backend:
    """A server on loopback that treats every connection by one function."""

    def __init__(self, port: int, ca: bytes) -> None:
        self.url = f"https://127.0.0.1:{port}/"
        self.ca = ca


@asynccontextmanager
async def backend(answer: Answer) -> AsyncIterator[Backend]:
    with tempfile.TemporaryDirectory() as directory:
        ca, both = make_certificates(Path(directory))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await reader.readuntil(b"\r\n\r\n")
                await answer(reader, writer)
            except (ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        try:
            yield Backend(port, ca)
        finally:
            server.close()


def says(*pieces: bytes) -> Answer:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return answer


async def hangs(_: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def talks_long(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(200):
        if writer.is_closing():
            return
        writer.write(b"x" * 65536)
        await writer.drain()
        await asyncio.sleep(0)


OK = b"HTTP/1.1 200 OK\r\n"

BAD: dict[str, tuple[Answer, str]] = {
    "closes": (says(), "EOF"),
    "no-http": (says(b"hello\r\n\r\n"), "malformed HTTP response"),
    "bad-length": (says(OK + b"Content-Length: many\r\n\r\n"), "malformed HTTP response"),
    "short-body": (says(OK + b"Content-Length: 10\r\n\r\nabc"), "EOF"),
    "gigabytes-announced": (
        says(OK + b"Content-Length: 9999999999\r\n\r\n"),
        "the response is larger than 3145728 bytes",
    ),
    "gigabytes-in-chunks": (
        says(OK + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\n"),
        "the response is larger than 3145728 bytes",
    ),
    "gigabytes": (talks_long, "the response is larger than 3145728 bytes"),
    "endless-head": (says(OK, b"A: " + b"b" * 200_000), "limit"),
    "redirect": (
        says(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
        "has prevented the request from succeeding",
    ),
    "no-object": (says(OK + b"Content-Length: 2\r\n\r\n[]"), "cannot unmarshal array"),
    "deep": (
        says(OK + b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000),
        "couldn't get version/kind",
    ),
}


def configuration(backend: Backend, kind: str = "Validating", **changes: Any) -> dict[str, Any]:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": ["configmaps"],
    }
    hook = {
        "name": "hook.example.com",
        "clientConfig": {"url": backend.url, "caBundle": base64.b64encode(backend.ca).decode()},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
    } | changes
    return {
        "kind": f"{kind}WebhookConfiguration",
        "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": "hook"},
        "webhooks": [hook],
    }


def a_map(name: str = "m") -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}}


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_is_a_failed_call(kind: str, name: str) -> None:
    answer, problem = BAD[name]

    async def run() -> None:
        async with backend(answer) as hook, LocalServer() as server:
            path = CONFIGURATIONS.format(kind.lower())
            created = await server.post(path, configuration(hook, kind))
            failed = await server.ask("POST", MAPS, a_map())
            assert failed.code == 500
            assert failed.json["message"].startswith(
                'Internal error occurred: failed calling webhook "hook.example.com": '
                "failed to call webhook: "
            )
            assert problem in failed.json["message"]

            ignoring = configuration(hook, kind, failurePolicy="Ignore")
            version = created["metadata"]["resourceVersion"]
            ignoring["metadata"] |= {"resourceVersion": version}
            assert (await server.ask("PUT", f"{path}/hook", ignoring)).code == 200
            assert (await server.ask("POST", MAPS, a_map())).code == 201

    asyncio.run(asyncio.wait_for(run(), 60))


def test_others_do_not_wait_for_a_webhook_that_hangs() -> None:
    """With one seat for writes: a request that waits for a webhook has none."""

    async def run() -> None:
        limits = FlowLimits(max_mutating_requests_inflight=1)
        async with backend(hangs) as hook, LocalServer(flow_limits=limits) as server:
            await server.post(MAPS, a_map("old"))
            await server.post(CONFIGURATIONS.format("validating"), configuration(hook))
            requests = [
                asyncio.create_task(server.ask("POST", MAPS, a_map())),
                asyncio.create_task(server.ask("PUT", f"{MAPS}/old", a_map("old"))),
                asyncio.create_task(server.ask("DELETE", f"{MAPS}/old")),
            ]
            await asyncio.sleep(0.1)
            secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}}
            await server.post(SECRETS, secret)
            assert (await server.get(f"{MAPS}/old"))["metadata"]["name"] == "old"
            # Not even the webhook itself: its configuration can be deleted.
            path = f"{CONFIGURATIONS.format('validating')}/hook"
            assert (await server.ask("DELETE", path)).code == 200
            await server.post(MAPS, a_map("another"))
            assert not any(request.done() for request in requests)
            for request in requests:
                request.cancel()
            await asyncio.gather(*requests, return_exceptions=True)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_calls_of_one_webhook_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_client, "MAX_CALLS", 2)
    monkeypatch.setattr(webhook_client, "MAX_WAITING", 3)

    async def run() -> None:
        connections = 0

        async def counts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            await hangs(reader, writer)

        async with backend(counts) as hook, LocalServer() as server:
            path = CONFIGURATIONS.format("validating")
            await server.post(path, configuration(hook, failurePolicy="Fail"))
            requests = [
                asyncio.create_task(server.ask("POST", MAPS, a_map(f"m{number}")))
                for number in range(4)
            ]
            while connections < 2:
                await asyncio.sleep(0.01)
            refused = await server.ask("POST", MAPS, a_map("last"))
            assert refused.code == 500
            assert "other calls are waiting" in refused.json["message"]
            assert connections == 2
            for request in requests:
                request.cancel()
            await asyncio.gather(*requests, return_exceptions=True)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_what_a_webhook_sends_before_it_is_read_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is decrypted as it arrives, and that of fifty calls may arrive at once."""
    buffers: list[int] = []
    plain = asyncio.open_connection

    async def noticing(*arguments: Any, **options: Any) -> Any:
        reader, writer = await plain(*arguments, **options)
        write = writer.write

        def written(data: bytes) -> None:
            connection = writer.get_extra_info("socket")
            buffers.append(connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
            write(data)

        monkeypatch.setattr(writer, "write", written)
        return reader, writer

    monkeypatch.setattr(asyncio, "open_connection", noticing)

    async def run() -> None:
        async with backend(says()) as hook:
            bundle = base64.b64encode(hook.ca).decode()
            port = int(hook.url.rstrip("/").rpartition(":")[2])
            endpoint = webhook_client.Endpoint("127.0.0.1", port, "127.0.0.1", "/", hook.url)
            with pytest.raises(webhook_client.WebhookCallError):
                await webhook_client.WebhookClient().call("w", endpoint, bundle, b"{}", 30)

    asyncio.run(run())
    assert len(buffers) == 1
    assert buffers[0] <= 2 * webhook_client.RECEIVE_BUFFER  # Linux doubles it


def test_a_service_is_found_by_its_endpoint_slices() -> None:
    review = (
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1",'
        b'"response":{"allowed":false,"status":{"message":"no"}}}'
    )
    head = OK + b"Content-Length: %d\r\n\r\n" % len(review)

    async def run() -> None:
        async with backend(says(head + review)) as hook, LocalServer() as server:
            place = {"name": "hook", "namespace": "default"}
            bundle = configuration(hook)["webhooks"][0]["clientConfig"]["caBundle"]
            client = {"service": place, "caBundle": bundle}
            changes: dict[str, Any] = {
                "clientConfig": client,
                "admissionReviewVersions": ["v1beta1"],
            }
            path = CONFIGURATIONS.format("validating")
            await server.post(path, configuration(hook, **changes))

            async def message() -> str:
                refused = await server.ask("POST", MAPS, a_map())
                assert refused.code in (400, 500)
                text: str = refused.json["message"]
                return text

            assert 'service "hook" not found' in await message()
            ports = [{"port": 443, "targetPort": 8443, "protocol": "TCP"}]
            service = {"metadata": {"name": "hook"}, "spec": {"ports": ports}}
            await server.post("/api/v1/namespaces/default/services", service)
            assert 'no endpoints available for service "hook"' in await message()
            slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
            port = int(hook.url.rpartition(":")[2].rstrip("/"))
            await server.post(
                slices,
                {
                    "metadata": {
                        "name": "hook-1",
                        "labels": {"kubernetes.io/service-name": "hook"},
                    },
                    "addressType": "FQDN",  # of which an address of this host may be one
                    "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
                    "ports": [{"port": port, "protocol": "TCP"}],
                },
            )
            denied = 'admission webhook "hook.example.com" denied the request: no'
            assert await message() == denied

    asyncio.run(asyncio.wait_for(run(), 60))
