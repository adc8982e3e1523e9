"""Calls of webhooks over HTTPS: one POST, bounded in time and in the size of the answer."""

from __future__ import annotations

import asyncio
import base64
import binascii
import socket
import ssl
from contextlib import suppress
from typing import Final, NamedTuple

from allot.apiserver.pacing import LARGE, Pacer, begin_work, release_interpreter

MAX_RESPONSE: Final = 3 * 1024 * 1024
"""The largest answer of a webhook, as of a request to the API server."""
MAX_HEAD: Final = 64 * 1024
MAX_CHUNKS: Final = 50_000
CHUNKS_AT_ONCE: Final = 8 * 1024
"""The bytes of a chunked answer that are decoded at a time: a millisecond if each chunk is a byte."""
RECEIVE_BUFFER: Final = 32 * 1024
"""What an answer can have sent before it is read, about: that much is decrypted before others are served. With the
kernel's default, fifty answers that come at once are hundreds of megabytes."""
MAX_CALLS: Final = 50
"""Calls of one webhook at the same time; further ones wait for these."""
MAX_WAITING: Final = 1_000
"""Calls that wait for their turn; further ones fail at once."""
MAX_BUNDLES: Final = 2 * 1024 * 1024
"""The size of CA bundles whose certificates are kept, in memory many times as much."""
CERTIFICATES_AT_ONCE: Final = 16
_MALFORMED: Final = "malformed HTTP response"
_UNKNOWN_ISSUER: Final = frozenset((18, 19, 20, 21))
_EXPIRED: Final = frozenset((9, 10))
_WRONG_NAME: Final = frozenset((62, 64))


class WebhookCallError(Exception):
    """A webhook cannot be called, or its answer cannot be read."""


class Endpoint(NamedTuple):
    """Where a webhook is: the address to connect to, and the name in its certificate and URL."""

    host: str
    port: int
    server_name: str
    path: str
    url: str
    """As it is shown in errors."""


class WebhookResponse(NamedTuple):
    """The answer to one call."""

    code: int
    content_type: str
    body: bytes


class WebhookClient:
    """Calls webhooks. A call waits while too many others of the same webhook are under way."""

    def __init__(self) -> None:
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._waiting: dict[str, int] = {}
        self._contexts = TlsContexts()

    async def call(
        self, key: str, endpoint: Endpoint, ca_bundle: str, body: bytes, seconds: float
    ) -> WebhookResponse:
        """The response; `WebhookCallError` if none arrives in time. `key` names the webhook."""
        turn = self._turns.setdefault(key, asyncio.Semaphore(MAX_CALLS))
        waiting = self._waiting.get(key, 0)
        if turn.locked() and waiting >= MAX_WAITING:
            raise _failed(endpoint, f"{waiting} other calls are waiting")
        self._waiting[key] = waiting + 1
        try:
            async with asyncio.timeout(seconds):
                async with turn:
                    return await self._exchange(endpoint, ca_bundle, body)
        except TimeoutError:
            raise _failed(endpoint, "context deadline exceeded") from None
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]
                self._turns.pop(key, None)

    async def _exchange(self, endpoint: Endpoint, ca_bundle: str, body: bytes) -> WebhookResponse:
        try:
            context = await self._contexts.of(ca_bundle)
            await begin_work()  # a handshake takes a millisecond
            reader, writer = await asyncio.open_connection(
                endpoint.host,
                endpoint.port,
                ssl=context,
                server_hostname=endpoint.server_name,
                limit=MAX_HEAD,
            )
        except ssl.SSLCertVerificationError as error:
            raise _failed(endpoint, _certificate_problem(error, endpoint)) from None
        except ssl.SSLError as error:
            problem = (error.reason or "handshake failed").lower().replace("_", " ")
            raise _failed(endpoint, f"tls: {problem}") from None
        except OSError as error:
            raise _failed(endpoint, _connection_problem(error, endpoint)) from None
        with suppress(OSError):  # it may have ended
            connection: socket.socket = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        try:
            writer.write(_request(endpoint, body))
            await writer.drain()
            return await _response(reader)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError) as error:
            problem = "EOF" if isinstance(error, asyncio.IncompleteReadError) else str(error)
            raise _failed(endpoint, problem) from None
        except ValueError as error:
            raise _failed(endpoint, str(error)) from None
        finally:
            writer.transport.abort()


def _failed(endpoint: Endpoint, problem: str) -> WebhookCallError:
    return WebhookCallError(f'Post "{endpoint.url}": {problem}')


class TlsContexts:
    """What is trusted, by CA bundle (base64 of PEM): kept for those that were used last, up to a total size."""

    def __init__(self, max_bytes: int = MAX_BUNDLES) -> None:
        self._max_bytes = max_bytes
        self._known: dict[str, ssl.SSLContext] = {}

    async def of(self, ca_bundle: str) -> ssl.SSLContext:
        """`OSError` if there is no certificate in it. Long bundles are read in a thread."""
        context = self._known.pop(ca_bundle, None)
        if context is None:
            if len(ca_bundle) > LARGE:
                context = await asyncio.to_thread(_tls_context, ca_bundle)
            else:
                context = _tls_context(ca_bundle)
        self._known[ca_bundle] = context
        while len(self._known) > 1 and sum(map(len, self._known)) > self._max_bytes:
            del self._known[next(iter(self._known))]
        return context


def _tls_context(ca_bundle: str) -> ssl.SSLContext:
    """The system's authorities are trusted if the bundle is empty."""
    if not ca_bundle:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        pem = base64.b64decode(ca_bundle).decode("ascii", "replace")
        certificates = _certificates(pem)
        for index in range(0, len(certificates), CERTIFICATES_AT_ONCE):
            some = certificates[index : index + CERTIFICATES_AT_ONCE]
            context.load_verify_locations(cadata="\n".join(some))
            if len(certificates) > CERTIFICATES_AT_ONCE:
                release_interpreter(len(pem))
    except (binascii.Error, ssl.SSLError, ValueError):
        certificates = []
    if not certificates:
        raise OSError("unable to load root certificates: unable to parse bytes as PEM block")
    return context


def _certificates(pem: str) -> list[str]:
    """The blocks of a bundle. What else is in it is ignored, as by other readers."""
    blocks = (f"-----BEGIN {part}" for part in pem.split("-----BEGIN ")[1:])
    return [block for block in blocks if "CERTIFICATE-----" in block.partition("\n")[0]]


def _certificate_problem(error: ssl.SSLCertVerificationError, endpoint: Endpoint) -> str:
    code = error.verify_code
    if code in _UNKNOWN_ISSUER:
        problem = "certificate signed by unknown authority"
    elif code in _EXPIRED:
        problem = "certificate has expired or is not yet valid"
    elif code in _WRONG_NAME:
        problem = f"certificate is not valid for {endpoint.server_name}"
    else:
        problem = error.verify_message
    return f"tls: failed to verify certificate: x509: {problem}"


def _connection_problem(error: OSError, endpoint: Endpoint) -> str:
    if error.errno is None:
        return str(error)
    place = f"{endpoint.host}:{endpoint.port}"
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {place}: connect: connection refused"
    if type(error).__name__ == "gaierror":
        return f"dial tcp: lookup {endpoint.host}: no such host"
    return f"dial tcp {place}: connect: {(error.strerror or str(error)).lower()}"


def _request(endpoint: Endpoint, body: bytes) -> bytes:
    head = (
        f"POST {endpoint.path} HTTP/1.1\r\n"
        f"Host: {endpoint.server_name}:{endpoint.port}\r\n"
        "User-Agent: kube-apiserver-admission\r\n"
        "Accept: application/json, */*\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("latin-1", "replace") + body


async def _response(reader: asyncio.StreamReader) -> WebhookResponse:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head[:-4].split(b"\r\n")
    parts = first.split(b" ", 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
        raise ValueError(_MALFORMED)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in lines)
    }
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        body = await _chunks(reader)
    elif b"content-length" in headers:
        length = headers[b"content-length"]
        if not length.isdigit():
            raise ValueError(_MALFORMED)
        body = await _exactly(reader, int(length))
    else:
        body = await _all(reader)
    content_type = headers.get(b"content-type", b"").decode("latin-1")
    return WebhookResponse(int(parts[1]), content_type, body)


async def _exactly(reader: asyncio.StreamReader, length: int) -> bytes:
    if length > MAX_RESPONSE:
        raise ValueError(_too_large())
    return await reader.readexactly(length)


async def _all(reader: asyncio.StreamReader) -> bytes:
    found = bytearray()
    with suppress(ssl.SSLError):  # the other end may close without saying so
        while piece := await reader.read(MAX_HEAD):
            found += piece
            if len(found) > MAX_RESPONSE:
                raise ValueError(_too_large())
    return bytes(found)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """Chunks are counted, too: they may be as short as a byte."""
    chunks = ChunkDecoder()
    pacer = Pacer()
    while not chunks.is_complete:
        if pacer.is_due:
            await pacer.pause()  # reading what has arrived yields to nothing else
        piece = await reader.read(CHUNKS_AT_ONCE)
        if not piece:
            raise asyncio.IncompleteReadError(b"", None)
        chunks.feed(piece)
    return bytes(chunks.body)


class ChunkDecoder:
    """Decodes a chunked body piece by piece, as it arrives. Trailers are not read."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.is_complete = False
        self._count = 0
        self._head = b""
        """The beginning of the head of a chunk."""
        self._missing = 0
        """Bytes of a chunk, with the line end after it, that have not arrived."""

    def feed(self, piece: bytes) -> None:
        """Raises `ValueError` if the body is malformed, too large, or in too many chunks."""
        data, self._head = self._head + piece, b""
        at = 0
        while at < len(data) and not self.is_complete:
            if self._missing:
                end = min(at + self._missing, len(data))
                self.body += data[at : min(end, at + max(self._missing - 2, 0))]
                self._missing -= end - at
                at = end
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._head = data[at:]
                if len(self._head) > MAX_HEAD:
                    raise ValueError(_MALFORMED)
                return
            self._begin(data[at:end])
            at = end + 2

    def _begin(self, head: bytes) -> None:
        try:
            length = int(head.split(b";")[0].strip(), 16)
        except ValueError:
            raise ValueError(_MALFORMED) from None
        if length <= 0:
            self.is_complete = True
            return
        self._count += 1
        if self._count >= MAX_CHUNKS:
            raise ValueError(f"the response has more than {MAX_CHUNKS} chunks")
        if len(self.body) + length > MAX_RESPONSE:
            raise ValueError(_too_large())
        self._missing = length + 2


def _too_large() -> str:
    return f"the response is larger than {MAX_RESPONSE} bytes"
