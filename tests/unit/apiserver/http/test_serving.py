"""Connections that are being accepted when the server stops."""

from __future__ import annotations

import asyncio
import gc
import socket
from typing import Any

import pytest

from allot.apiserver.http.connections import ConnectionLimits, Connections
from allot.apiserver.http.metrics import Metrics
from allot.apiserver.http.serving import _Acceptor, listen


class _Protocol(asyncio.Protocol):
    transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport


@pytest.mark.parametrize("steps", range(4))
def test_a_connection_ends_with_the_server_whatever_it_has_done(steps: int) -> None:
    """Also if its handshake has not begun: the number of steps of the event loop decides about that."""

    async def run() -> tuple[int, bytes]:
        connections = Connections(ConnectionLimits(), Metrics())
        protocol: Any = _Protocol
        with listen("127.0.0.1", 0) as listener:
            acceptor = _Acceptor(listener, connections, lambda _: protocol(), None)
            with socket.create_connection(listener.getsockname()) as client:
                client.sendall(b"G")
                client.setblocking(False)
                acceptor.start()
                while not len(connections):
                    await asyncio.sleep(0)
                for _ in range(steps):
                    await asyncio.sleep(0)
                acceptor.close()
                for _ in range(5):
                    await asyncio.sleep(0)
                connections.end_all("shutdown")
                loop = asyncio.get_running_loop()
                try:
                    received = await asyncio.wait_for(loop.sock_recv(client, 1), 10)
                except ConnectionResetError:  # what it sent was not read
                    received = b""
                return len(connections), received

    assert asyncio.run(run()) == (0, b"")
    gc.collect()  # a socket that is not closed warns
