"""A cheap HTTP client for load: keep-alive connections over TLS, bodies read by content length."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import NamedTuple, Self


class Address(NamedTuple):
    """The address of a server, and credentials."""

    host: str
    port: int
    token: str
    context: ssl.SSLContext


class EndOfStream(Exception):  # noqa: N818 - not an error
    """The server has ended a stream."""


class Connection:
    """One connection; one request at a time."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._head = (
            f"host: {address.host}\r\nauthorization: Bearer {address.token}\r\n"
            "content-type: application/json\r\naccept: application/json\r\n"
        )

    async def open(self) -> Self:
        address = self._address
        self._reader, self._writer = await asyncio.open_connection(
            address.host, address.port, limit=2**20
        )
        try:
            # Separate from connecting, so that a failed handshake leaves no open socket.
            await self._writer.start_tls(address.context, server_hostname=address.host)
        except BaseException:
            self._writer.transport.abort()
            raise
        return self

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        self._send(method, path, body)
        code, headers = await self._read_head()
        if b"content-length" in headers:
            return code, await self._reader.readexactly(int(headers[b"content-length"]))
        return code, await self._chunks()

    async def watch(self, path: str) -> None:
        """Start a watch; `chunk` reads its events."""
        self._send("GET", path, b"")
        code, _ = await self._read_head()
        assert code == 200, code

    async def chunk(self) -> bytes:
        line = await self._reader.readline()
        if not line:
            raise EndOfStream
        size = int(line, 16)
        if not size:
            raise EndOfStream
        content = await self._reader.readexactly(size + 2)
        return content[:-2]

    async def _chunks(self) -> bytes:
        """All of an answer that is sent in chunks, as long lists are."""
        chunks = []
        with contextlib.suppress(EndOfStream):
            while True:
                chunks.append(await self.chunk())
        await self._reader.readline()  # ends the last, empty chunk
        return b"".join(chunks)

    async def close(self) -> None:
        """Abort the connection."""
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _send(self, method: str, path: str, body: bytes) -> None:
        head = f"{method} {path} HTTP/1.1\r\n{self._head}content-length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)

    async def _read_head(self) -> tuple[int, dict[bytes, bytes]]:
        status, *lines = (await self._reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        pairs = (line.split(b": ", 1) for line in lines)
        return int(status.split()[1]), {name.lower(): value for name, value in pairs}
