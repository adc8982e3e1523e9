"""Connections over real sockets with small limits: slow, silent and many clients do not keep others out.

Clients are raw sockets in threads beside the server's loop. Nothing is measured: each test waits for what must happen.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
import weakref
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from allot import features
from allot.apiserver.http.connections import ConnectionLimits
from allot.apiserver.http.http_exchange import TransferLimits, TransferRate
from allot.apiserver.http.protocol import ServerProtocol
from allot.apiserver.http.serving import HANDSHAKE_BATCH, RECEIVE_BUFFER
from allot.apiserver.running import RunningServer, ServerOptions, running_server

MAX_WAIT_SECONDS = 30.0
"""Seconds after which something that must happen is said not to have happened."""
MAPS = "/api/v1/namespaces/default/configmaps"
QUICK = ConnectionLimits(max_connections=8, head_seconds=0.5, idle_seconds=0.5, closing_seconds=0.5)
PATIENT = ConnectionLimits(max_connections=8, head_seconds=300, idle_seconds=300)


class Client:
    """A connection whose every byte the test decides."""

    def __init__(
        self, server: RunningServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._token = server.credentials.admin_token
        self.reader, self.writer = reader, writer

    def send(self, line: str, *headers: str, body: bytes = b"") -> None:
        lines = [line, "Host: x", f"Authorization: Bearer {self._token}", *headers, "", ""]
        self.writer.write("\r\n".join(lines).encode() + body)

    async def code(self) -> int:
        """The code of the next answer."""
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            line = await self.reader.readline()
        return int(line.split()[1])

    async def end(self) -> bytes:
        """What comes until the server ends the connection."""
        received = b""
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                while part := await self.reader.read(65536):
                    received += part
        return received

    def close(self) -> None:
        self.writer.transport.abort()


class Clients:
    """Makes connections, and closes them in the end."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        self._tls = ssl.create_default_context(cafile=str(server.credentials.ca_file))
        self._port = int(server.url.rpartition(":")[2])
        self._all: list[Client] = []
        self._silent: list[socket.socket] = []

    async def connect(self) -> Client:
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            streams = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls)
        client = Client(self.server, *streams)
        self._all.append(client)
        return client

    async def connect_silently(self) -> socket.socket:
        """A connection that does not even begin TLS."""
        connection = socket.socket()
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self._port))
        self._silent.append(connection)
        return connection

    async def get(self, path: str) -> tuple[int, bytes]:
        client = await self.connect()
        client.send(f"GET {path} HTTP/1.1", "Connection: close")
        answer = await client.end()
        return int(answer.split()[1]), answer

    async def is_served(self) -> bool:
        """Whether a new connection is accepted and answered."""
        try:
            return (await self.get("/livez"))[0] == 200
        except (ConnectionError, IndexError):
            return False

    def close(self) -> None:
        for client in self._all:
            client.close()
        for connection in self._silent:
            connection.close()


@contextlib.asynccontextmanager
async def a_server(
    directory: Path,
    limits: ConnectionLimits,
    transfer_limits: TransferLimits = TransferLimits(),  # noqa: B008 - a value
) -> AsyncIterator[Clients]:
    options = ServerOptions(
        directory,
        features.DEFAULTS,
        "memory",
        port=0,
        connection_limits=limits,
        transfer_limits=transfer_limits,
    )
    async with running_server(options) as server:
        clients = Clients(server)
        try:
            yield clients
        finally:
            clients.close()


async def ended(clients: Clients, reason: str) -> float:
    value = clients.server.server.metrics.registry.get_sample_value(
        "allot_apiserver_connections_ended_total", {"reason": reason}
    )
    return value or 0.0


async def until_read(connection: socket.socket) -> bytes:
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        try:
            return await asyncio.get_running_loop().sock_recv(connection, 100)
        except ConnectionError:
            return b""


def test_silent_connections_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_server(tmp_path, QUICK) as clients:
            assert await until_read(await clients.connect_silently()) == b""
            assert await (await clients.connect()).end() == b""
            slow = await clients.connect()
            slow.writer.write(b"GET /livez HTTP/1.1\r\nHost:")
            assert await slow.end() == b""
            assert await ended(clients, "head-timeout") >= 3
            idle = await clients.connect()
            idle.send("GET /livez HTTP/1.1")
            assert (await idle.end()).endswith(b"ok")
            newlines = await clients.connect()
            newlines.send("GET /livez HTTP/1.1")
            assert await newlines.code() == 200
            newlines.writer.write(b"\r\n")
            assert (await newlines.end()).endswith(b"ok")

    asyncio.run(story())


def test_many_silent_connections_make_room(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_server(tmp_path, PATIENT) as clients:
            for _ in range(20):
                await clients.connect_silently()
            assert (await clients.get("/livez"))[0] == 200
            for _ in range(20):
                await clients.connect()
            assert (await clients.get("/livez"))[0] == 200
            idle = [await clients.connect() for _ in range(20)]
            for client in idle[-5:]:
                client.send("GET /livez HTTP/1.1")
                assert await client.code() == 200
            code, page = await clients.get("/metrics")
            assert code == 200
            assert b'allot_apiserver_connections{state="busy"} 1.0' in page
            assert await ended(clients, "evicted") > 0

    asyncio.run(story())


def test_watches_are_not_ended_to_make_room(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_server(tmp_path, PATIENT) as clients:
            watches = [await clients.connect() for _ in range(6)]
            for watch in watches:
                watch.send(f"GET {MAPS}?watch=1 HTTP/1.1")
                assert await watch.code() == 200
            # One address does not get the last quarter, so that others get in.
            refused = await clients.connect_silently()
            assert await until_read(refused) == b""
            assert await ended(clients, "refused") == 1
            watches.pop().close()
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                while not await clients.is_served():
                    await asyncio.sleep(0.01)
            assert all(not watch.reader.at_eof() for watch in watches)

    asyncio.run(story())


def test_a_refused_body_is_not_waited_for(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_server(tmp_path, PATIENT) as clients:
            client = await clients.connect()
            client.writer.write(
                b"POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                b"Content-Length: 3000000\r\n\r\n"
            )
            answer = await client.end()
            assert answer.startswith(b"HTTP/1.1 403 ")
            assert b"\r\nconnection: close\r\n" in answer

    asyncio.run(story())


def test_a_client_that_sends_on_still_sees_the_answer(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_server(tmp_path, PATIENT) as clients:
            for length in ("Content-Length: 5000000", "Transfer-Encoding: chunked"):
                client = await clients.connect()
                client.send(f"POST {MAPS} HTTP/1.1", length, body=b"4c4b40\r\n" + b"x" * 5_000_000)
                assert (await client.end()).startswith(b"HTTP/1.1 413 ")

    asyncio.run(story())


def test_a_slow_body_is_answered_and_ended(tmp_path: Path) -> None:
    transfer_limits = TransferLimits(reading=TransferRate(0.3, 1e6))

    async def story() -> None:
        async with a_server(tmp_path, PATIENT, transfer_limits) as clients:
            client = await clients.connect()
            client.send(f"POST {MAPS} HTTP/1.1", "Content-Length: 1000", body=b"{")
            answer = await client.end()
            assert answer.startswith(b"HTTP/1.1 408 ")

    asyncio.run(story())


def test_who_does_not_read_a_large_answer_is_ended(tmp_path: Path) -> None:
    transfer_limits = TransferLimits(sending=TransferRate(0.3, 1e9))

    async def story() -> None:
        async with a_server(tmp_path, PATIENT, transfer_limits) as clients:
            for number in range(12):
                body = b'{"metadata":{"name":"m-%d"},"data":{"a":"%b"}}' % (number, b"x" * 900_000)
                client = await clients.connect()
                length = f"Content-Length: {len(body)}"
                client.send(f"POST {MAPS} HTTP/1.1", "Connection: close", length, body=body)
                assert (await client.end()).startswith(b"HTTP/1.1 201 ")
            slow = await clients.connect()
            slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
            slow.send(f"GET {MAPS} HTTP/1.1")
            while not await ended(clients, "slow-reader"):
                await asyncio.sleep(0.01)
            assert (await clients.get("/livez"))[0] == 200
            assert (await clients.get("/metrics"))[0] == 200

    async def limited() -> None:
        async with asyncio.timeout(2 * MAX_WAIT_SECONDS):
            await story()

    asyncio.run(limited())


@pytest.mark.parametrize("flood", ["pipelined", "headers"])
def test_heads_are_limited(tmp_path: Path, flood: str) -> None:
    async def story() -> None:
        async with a_server(tmp_path, PATIENT) as clients:
            client = await clients.connect()
            if flood == "pipelined":
                client.writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 5000)
            else:
                client.writer.write(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 600 + b"\r\n")
            assert b"HTTP/1.1 400 " in await client.end()
            assert (await clients.get("/livez"))[0] == 200

    asyncio.run(story())


def test_what_a_connection_held_is_free_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without waiting for the garbage collector, which runs seldom."""
    protocols: list[weakref.ref[ServerProtocol]] = []
    made = ServerProtocol.connection_made

    def remember(self: ServerProtocol, transport: object) -> None:
        protocols.append(weakref.ref(self))
        made(self, transport)

    monkeypatch.setattr(ServerProtocol, "connection_made", remember)

    async def story() -> None:
        async with a_server(tmp_path, PATIENT) as clients:
            gc.collect()
            gc.disable()
            try:
                assert (await clients.get("/version"))[0] == 200
                refused = await clients.connect()
                refused.send("POST /x HTTP/1.1", "Content-Length: 3000000", body=b"x" * 3_000_000)
                await refused.end()
                idle = await clients.connect()
                idle.send("GET /livez HTTP/1.1")
                assert await idle.code() == 200
                idle.close()
                async with asyncio.timeout(MAX_WAIT_SECONDS):
                    while any(protocol() is not None for protocol in protocols):
                        await asyncio.sleep(0.01)
                assert len(protocols) == 3
            finally:
                gc.enable()

    asyncio.run(story())


def test_an_upload_is_read_in_small_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    received = ServerProtocol.data_received

    def data_received(self: ServerProtocol, data: bytes) -> None:
        sizes.append(len(data))
        received(self, data)

    async def story() -> None:
        async with a_server(tmp_path, PATIENT) as clients:
            client = await clients.connect()
            headers = "Content-Type: application/json", f"Content-Length: {1 << 20}"
            client.send(f"POST {MAPS} HTTP/1.1", *headers, body=b" " * (1 << 20))
            assert await client.code() == 400

    monkeypatch.setattr(ServerProtocol, "data_received", data_received)
    asyncio.run(story())

    assert sum(sizes) > 1 << 20
    assert max(sizes) <= 2 * RECEIVE_BUFFER  # the kernel takes it twice


def test_handshakes_begin_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = 0
    started: Counter[int] = Counter()
    make = ServerProtocol.__init__

    def init(self: ServerProtocol, *args: Any, **kwargs: Any) -> None:
        started[step] += 1
        make(self, *args, **kwargs)

    async def count_steps() -> None:
        nonlocal step
        while True:
            step += 1
            await asyncio.sleep(0)

    async def story() -> None:
        async with a_server(tmp_path, PATIENT._replace(max_connections=128)) as clients:
            silent = [await clients.connect_silently() for _ in range(40)]
            counting = asyncio.create_task(count_steps())
            for connection in silent:  # a ClientHello may well be nonsense
                connection.send(b"x" * 10)
            assert await clients.is_served()
            counting.cancel()

    monkeypatch.setattr(ServerProtocol, "__init__", init)
    asyncio.run(story())

    assert sum(started.values()) == 41
    assert max(started.values()) <= HANDSHAKE_BATCH
