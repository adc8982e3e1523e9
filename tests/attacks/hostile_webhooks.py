"""Webhooks that hang, flood, or answer with what is dear to read."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.attacks.extensions import (
    GROUP,
    RULES,
    bomb,
    bombs_path,
    definition,
    wide_schema,
    writing_maps,
)
from tests.attacks.floods import GONE, JSON, MAX_BODY, Flood, Run, Socket, encoded, together
from tests.attacks.manifests import Manifest, collection_of
from tests.conformance.admission_webhook import make_certificates

Reply = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]


async def _answer(
    writer: asyncio.StreamWriter, body: bytes, code: str = "200 OK", more: str = ""
) -> None:
    head = f"HTTP/1.1 {code}\r\ncontent-type: {JSON}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


def _allowed(asked: bytes, patch: bytes = b"", **more: Any) -> bytes:
    review = json.loads(asked)
    response = {"uid": review["request"]["uid"], "allowed": True, **more}
    if patch:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
    return encoded(
        {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
    )


async def hang(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _asked: bytes) -> None:
    await asyncio.sleep(60)


async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _asked: bytes) -> None:
    """An answer that comes byte by byte."""
    writer.write(
        f"HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\ncontent-length: 100000\r\n\r\n".encode()
    )
    for _ in range(600):
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.1)


async def flood_back(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _asked: bytes
) -> None:
    """An answer without an end."""
    writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\n\r\n".encode())
    for _ in range(1000):
        writer.write(b'{"a":' * 20_000)
        await writer.drain()


async def small_chunks(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _asked: bytes
) -> None:
    """Three megabytes in pieces of one byte each."""
    writer.write(
        f"HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    )
    for _ in range(300):
        writer.write(b"1\r\n[\r\n" * 10_000)
        await writer.drain()


async def redirect(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _asked: bytes
) -> None:
    await _answer(writer, b"", "307 Temporary Redirect", "location: /\r\n")


async def large_patch(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: bytes
) -> None:
    """As many operations as an answer may hold."""
    operations = [
        {"op": "add", "path": f"/data/p{number}", "value": "v"} for number in range(30_000)
    ]
    await _answer(writer, _allowed(asked, encoded(operations)))


async def copying_patch(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: bytes
) -> None:
    """Operations that double the object again and again."""
    operations = [{"op": "copy", "from": "", "path": f"/x{number}"} for number in range(40)]
    await _answer(writer, _allowed(asked, encoded(operations)))


async def growing(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: bytes
) -> None:
    """Every call changes the object, so that all others are to be called again."""
    name = "/metadata/annotations"
    operations = [{"op": "add", "path": name, "value": {"n": str(id(asked)) * 100}}]
    await _answer(writer, _allowed(asked, encoded(operations)))


async def deep_answer(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _asked: bytes
) -> None:
    await _answer(writer, b"[" * (MAX_BODY - 100))


async def many_warnings(
    _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: bytes
) -> None:
    warnings = ["w" * 100 for _ in range(20_000)]
    notes = {f"key{number}": "x" * 20 for number in range(10_000)}
    await _answer(writer, _allowed(asked, warnings=warnings, auditAnnotations=notes))


REPLIES: Final[tuple[Reply, ...]] = (
    hang,
    drip,
    flood_back,
    small_chunks,
    redirect,
    large_patch,
    copying_patch,
    growing,
    deep_answer,
    many_warnings,
)


class HostileServer:
    """Webhooks on loopback; the path says how each behaves."""

    def __init__(self) -> None:
        self.url = ""
        self.ca = ""

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[HostileServer]:
        server = cls()
        with tempfile.TemporaryDirectory() as directory:
            listener = await server._start(Path(directory))
        try:
            yield server
        finally:
            listener.close()

    async def _start(self, directory: Path) -> asyncio.Server:
        ca, both = make_certificates(directory)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self.ca = base64.b64encode(ca).decode()
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            asked = await reader.readexactly(length)
            index = int(head.split(b" ")[1].rsplit(b"/", 1)[1].split(b"?")[0])
            await REPLIES[index](reader, writer, asked)
        except GONE:
            pass
        finally:
            writer.transport.abort()


def webhooks(server: HostileServer, *replies: Reply) -> list[Manifest]:
    """A configuration for each way to behave; only the growing ones are called one after the other."""
    made = []
    for reply in replies:
        index = REPLIES.index(reply)
        is_mutating = reply in (large_patch, copying_patch, growing)
        hooks = [
            {
                "name": f"h{number}.{GROUP}",
                "clientConfig": {"url": f"{server.url}/{index}", "caBundle": server.ca},
                "rules": RULES,
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 2,
                **({"reinvocationPolicy": "IfNeeded"} if is_mutating else {}),
            }
            for number in range(8)
        ]
        kind = f"{'Mutating' if is_mutating else 'Validating'}WebhookConfiguration"
        made.append(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": reply.__name__.replace("_", "-")},
                "webhooks": hooks,
            }
        )
    return made


def hostile_webhooks(*replies: Reply, keys: int = 500) -> Run:
    async def run(flood: Flood) -> None:
        async with HostileServer.running() as server:
            async with Socket(flood) as client:
                for each in webhooks(server, *replies):
                    code = await client.ask("POST", collection_of(each), encoded(each))
                    flood.codes[f"webhook {code}"] += 1
            await writing_maps(keys)(flood)

    return run


def hostile_conversion() -> Run:
    """Objects in two versions whose conversion hangs, floods or lies."""

    async def run(flood: Flood) -> None:
        async with HostileServer.running() as server:
            async with Socket(flood) as client:
                for reply in (hang, flood_back, deep_answer, drip, small_chunks):
                    name = f"c{reply.__name__.replace('_', '')}"
                    index = REPLIES.index(reply)
                    config = {"url": f"{server.url}/{index}", "caBundle": server.ca}
                    conversion = {
                        "strategy": "Webhook",
                        "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
                    }
                    made = definition(
                        name, {"v2": wide_schema(5), "v1": wide_schema(5)}, conversion=conversion
                    )
                    code = await client.ask("POST", collection_of(made), encoded(made))
                    flood.codes[f"definition {code}"] += 1
                    for number in range(50):
                        spec = {"property1": "x" * 10_000}
                        body = encoded(bomb(name, "v1", spec, number))
                        for _ in range(50):
                            if await client.ask("POST", bombs_path(name), body) != "404":
                                break
                            await asyncio.sleep(0.1)

            async def read(name: str) -> None:
                while True:
                    async with Socket(flood) as client:
                        with suppress(*GONE):
                            while True:
                                await client.ask("GET", bombs_path(name, "v2"))
                                await client.ask("GET", f"{bombs_path(name, 'v2')}/bomb-1")
                    await asyncio.sleep(0.1)

            names = ("chang", "cfloodback", "cdeepanswer", "cdrip", "csmallchunks")
            await together(flood, (read(name) for name in names for _ in range(10)))

    return run
