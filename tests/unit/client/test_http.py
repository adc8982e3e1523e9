"""HTTP of the client, against a server that says what each test wants it to say."""

from __future__ import annotations

import asyncio
import gc
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from allot.client import http_connecting
from allot.client.errors import ConfigError, TransportError
from allot.client.http import ConnectionLimits, HttpTransport
from allot.client.http_connecting import Server, open_connection
from allot.client.http_connection import CHUNK, HttpConnection
from allot.client.kubeconfig import ClusterAccess
from tests.conformance.admission_webhook import make_certificates

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Source:
    """Credentials that tests change."""

    def __init__(self, access: ClusterAccess) -> None:
        self.access = access

    def load(self) -> ClusterAccess:
        return self.access

    def refresh(self, known: ClusterAccess) -> ClusterAccess:
        return known


@asynccontextmanager
async def talking(
    talk: Talk, limits: ConnectionLimits | None = None, **access: Any
) -> AsyncIterator[HttpTransport]:
    """A client of a server that handles each connection with `talk`."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    address = access.pop("server", f"http://127.0.0.1:{port}")
    if access.get("proxy") == "here":
        access["proxy"] = f"http://user:p%40ss@127.0.0.1:{port}"
    transport = HttpTransport(
        Source(ClusterAccess(address, **access)), limits or ConnectionLimits()
    )
    try:
        yield transport
    finally:
        await transport.close()
        server.close()


def in_event_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(60):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run


async def head_of(reader: asyncio.StreamReader) -> str:
    return (await reader.readuntil(b"\r\n\r\n")).decode()


def answer(body: bytes, *headers: str, code: int = 200) -> bytes:
    lines = [f"HTTP/1.1 {code} Text", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@in_event_loop
async def test_a_connection_is_used_again() -> None:
    connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while head := await head_of(reader):
            writer.write(answer(head.split(" ")[1].encode()))

    async with talking(talk) as transport:
        bodies = [
            (await transport.request("GET", "/api", {"limit": str(number)})).body
            for number in range(3)
        ]

    assert bodies == [b"/api?limit=0", b"/api?limit=1", b"/api?limit=2"]
    assert connections == 1


@pytest.mark.parametrize(("method", "is_repeated"), [("GET", True), ("POST", False)])
@in_event_loop
async def test_connection_that_the_server_closed(method: str, is_repeated: bool) -> None:
    """Only what does no harm twice is sent again: nothing says whether the server has read it."""
    seen: list[str] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await head_of(reader))
        writer.write(answer(b"again" if len(seen) > 1 else b"first"))
        seen.append(await head_of(reader))  # and no answer to the second request

    async with talking(talk) as transport:
        await transport.request("GET", "/")
        if is_repeated:
            assert (await transport.request(method, "/")).body == b"again"
        else:
            with pytest.raises(TransportError, match="connection closed") as caught:
                await transport.request(method, "/", body=b"")
            assert caught.value.was_sent

    assert len(seen) == (3 if is_repeated else 2)


@in_event_loop
async def test_no_connection() -> None:
    transport = HttpTransport(Source(ClusterAccess("http://127.0.0.1:1")))
    with pytest.raises(TransportError, match=r"^127\.0\.0\.1:1: Connection refused$") as caught:
        await transport.request("GET", "/")
    assert not caught.value.was_sent


@in_event_loop
async def test_name_without_an_address() -> None:
    transport = HttpTransport(Source(ClusterAccess("http://does-not-exist.invalid:1")))
    with pytest.raises(TransportError, match=r"^does-not-exist\.invalid:1: ") as caught:
        await transport.request("GET", "/")
    assert not caught.value.was_sent


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        pytest.param(b"", "connection closed", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConte", "connection closed", id="half-a-head"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
            "connection closed",
            id="half-a-body",
        ),
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", "the response is not HTTP", id="not-http"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
            "the response is not gzip",
            id="not-gzip",
        ),
    ],
)
@in_event_loop
async def test_response_that_is_cut_off_or_wrong(sent: bytes, message: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(sent)
        await writer.drain()

    async with talking(talk) as transport:
        with pytest.raises(TransportError, match=message) as caught:
            await transport.request("GET", "/")
    assert caught.value.was_sent


@in_event_loop
async def test_forms_of_a_body() -> None:
    text = b"x" * 100_000
    forms = [
        answer(text),
        b"HTTP/1.1 100 Continue\r\n\r\n" + answer(text),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186A0\r\n" + text + b"\r\n0\r\n\r\n",
        answer(gzip.compress(text), "Content-Encoding: gzip"),
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + text,  # until the connection ends
    ]
    waiting = iter(forms)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await head_of(reader)
            form = next(waiting)
            writer.write(form)
            await writer.drain()
            if b"Connection: close" in form:
                return

    async with talking(talk) as transport:
        responses = [await transport.request("GET", "/") for _ in forms]

    assert [response.code for response in responses] == [200, 200, 200, 200, 204, 200]
    assert [response.body for response in responses] == [text] * 4 + [b"", text]


@in_event_loop
async def test_large_body_and_an_early_refusal() -> None:
    """A server may answer before it has read the body; the connection is not used again then."""
    connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        head = await head_of(reader)
        if "/refused" in head:
            writer.write(answer(b"too large", code=413))
            await writer.drain()
            await reader.read()
            return
        length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
        body = await reader.readexactly(length)
        writer.write(answer(str(len(body)).encode()))
        await head_of(reader)

    async with talking(talk) as transport:
        large = b"x" * (CHUNK * 40)
        assert (await transport.request("PUT", "/", body=large)).body == str(len(large)).encode()
        await transport.close()
        assert (await transport.request("PUT", "/refused", body=large)).code == 413
        await transport.request("PUT", "/", body=b"small")

    assert connections == 3


@in_event_loop
async def test_response_takes_too_long() -> None:
    async def talk(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with talking(talk, ConnectionLimits(answer_seconds=0.05)) as transport:
        with pytest.raises(TransportError, match=r"no response within 0\.05 s"):
            await transport.request("GET", "/")


@in_event_loop
async def test_requests_wait_for_a_connection_in_order() -> None:
    open_now = most = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        try:
            while head := await head_of(reader):
                await asyncio.sleep(0)
                writer.write(answer(head.split(" ")[1].encode()))
        finally:
            open_now -= 1

    async with talking(talk, ConnectionLimits(connections=2)) as transport:
        cancelled = [asyncio.create_task(transport.request("GET", "/gone")) for _ in range(5)]
        await asyncio.sleep(0)
        for task in cancelled[1:]:
            task.cancel()
        responses = await asyncio.gather(
            *(transport.request("GET", f"/{number}") for number in range(20))
        )
        await asyncio.gather(*cancelled, return_exceptions=True)

    assert [response.body.decode() for response in responses] == [f"/{n}" for n in range(20)]
    assert most <= 2


@in_event_loop
async def test_stream_and_its_end() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for line in (b"one\n", b"two\n"):
            writer.write(b"4\r\n" + line + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with talking(talk) as transport, transport.stream("/", idle_seconds=30) as stream:
        found = b"".join([chunk async for chunk in stream.chunks])

    assert (stream.code, found) == (200, b"one\ntwo\n")


@in_event_loop
async def test_stream_is_not_read_faster_than_its_reader() -> None:
    sent = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await head_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"x" * 65536
        while True:
            writer.write(b"10000\r\n" + piece + b"\r\n")
            await writer.drain()
            sent += len(piece)

    async with talking(talk) as transport, transport.stream("/") as stream:
        await anext(stream.chunks)
        before = -1
        while before != sent:  # until the server cannot send any more
            before = sent
            await asyncio.sleep(0.05)

    assert sent < 100 * CHUNK


@in_event_loop
async def test_stream_without_data() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await reader.read()

    async with talking(talk) as transport:
        with pytest.raises(TransportError, match=r"no data for 0\.05 s"):
            async with transport.stream("/", idle_seconds=0.05) as stream:
                await anext(stream.chunks)


@in_event_loop
async def test_a_stream_is_not_compressed() -> None:
    """kube-apiserver keeps events of a compressed watch back until it has enough to compress."""
    heads = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await head_of(reader))
        writer.write(answer(b"one"))

    async with talking(talk) as transport:
        async with transport.stream("/", {"watch": "true"}) as stream:
            assert await anext(stream.chunks) == b"one"
        await transport.request("GET", "/")
    assert ["Accept-Encoding: gzip" in head for head in heads] == [False, True]


@in_event_loop
async def test_new_credentials_after_a_refusal() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await head_of(reader):
            is_known = "Authorization: Bearer new" in head
            writer.write(answer(b"", code=200 if is_known else 401))

    async with talking(talk, authorization="Bearer old") as transport:
        source = transport._source
        assert isinstance(source, Source)
        assert (await transport.request("GET", "/")).code == 401
        source.access = source.access._replace(authorization="Bearer new")
        assert (await transport.request("GET", "/")).code == 200


@pytest.mark.parametrize(
    "access",
    [
        {"authorization": "Bearer a\r\nX-Remote-User: admin"},
        {"impersonation": (("Impersonate-User", "jane\nX-Other: 1"),)},
    ],
)
@in_event_loop
async def test_line_breaks_are_not_sent(access: dict[str, Any]) -> None:
    transport = HttpTransport(Source(ClusterAccess("http://127.0.0.1:1", **access)))
    with pytest.raises(ConfigError, match="cannot be sent"):
        await transport.request("GET", "/")


@in_event_loop
async def test_proxy_for_a_server_without_tls() -> None:
    heads = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await head_of(reader))
        writer.write(answer(b"there"))
        await reader.read()

    async with talking(talk, server="http://api.example.com:8080/k8s", proxy="here") as transport:
        assert (await transport.request("GET", "/version")).body == b"there"

    assert heads[0].startswith("GET http://api.example.com:8080/k8s/version HTTP/1.1\r\n")
    assert "Host: api.example.com:8080\r\n" in heads[0]
    assert "Proxy-Authorization: Basic dXNlcjpwQHNz\r\n" in heads[0]


@in_event_loop
async def test_proxy_that_refuses() -> None:
    heads = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await head_of(reader))
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        await writer.drain()

    async with talking(talk, server="https://api.example.com", proxy="here") as transport:
        with pytest.raises(TransportError, match="407 Proxy Authentication Required") as caught:
            await transport.request("GET", "/version")

    assert not caught.value.was_sent
    assert heads[0].startswith("CONNECT api.example.com:443 HTTP/1.1\r\n")
    assert "p@ss" not in str(caught.value)


class _Cancelled(HttpConnection):
    """The task that opens it is cancelled when the handshake is over."""

    opening: asyncio.Task[Any]
    is_lost = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        _Cancelled.opening.cancel()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        _Cancelled.is_lost = True


@pytest.mark.parametrize("has_tls", [False, True], ids=["plain", "TLS"])
def test_a_connection_that_is_not_wanted_any_more_ends_at_once(
    has_tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait for the server's agreement."""
    ca, both = make_certificates(tmp_path)
    _Cancelled.is_lost = False
    serving = None
    if has_tls:
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(both)
    monkeypatch.setattr(http_connecting, "HttpConnection", _Cancelled)

    async def run() -> None:
        stays = asyncio.Event()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await stays.wait()
            writer.transport.abort()

        async with await asyncio.start_server(handle, "127.0.0.1", 0, ssl=serving) as server:
            port = server.sockets[0].getsockname()[1]
            scheme = "https" if has_tls else "http"
            tls = ssl.create_default_context(cadata=ca.decode()) if has_tls else None
            target = Server(urlsplit(f"{scheme}://127.0.0.1:{port}"), tls)
            _Cancelled.opening = asyncio.create_task(open_connection(target))
            with pytest.raises(asyncio.CancelledError):
                await _Cancelled.opening
            for _ in range(3):
                await asyncio.sleep(0)
            assert _Cancelled.is_lost
            stays.set()

    asyncio.run(run())
    gc.collect()  # a transport that is not closed warns
