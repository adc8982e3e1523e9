"""The ASGI application: HTTP in, HTTP out. What is asked for is decided in `handlers`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Final

from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError
from allot.apiserver.authentication import (
    IMPERSONATE,
    Authentication,
    Credentials,
    PeerCertificate,
    User,
    impersonation,
)
from allot.apiserver.authorization import Attributes, Authorizer, refusal
from allot.apiserver.handlers import Handlers
from allot.apiserver.metrics import Labels, Metrics
from allot.apiserver.pages import Pages
from allot.apiserver.requests import ApiRequest, parse_query
from allot.apiserver.responses import (
    GZIP_FROM,
    Gzip,
    Response,
    StreamResponse,
    compressed,
    error_response,
)
from allot.apiserver.routes import Target, find_target
from allot.apiserver.uids import new_uid
from allot.apiserver.watching import Watcher

log = logging.getLogger(__name__)

MAX_BODY: Final = 3 * 1024 * 1024
"""Larger bodies are refused, as Kubernetes does."""
READ_SECONDS: Final = 60.0
"""How long a body may take to arrive."""
SEND_SECONDS: Final = 60.0
"""A client that takes nothing for so long is given up."""
TLS: Final = "allot.tls"
WHOLE_BODY: Final = "allot.body"
"""ASGI extensions: the client's certificate; a body that is there already and need not be waited for."""

_NOTHING: Final[MutableMapping[str, Any]] = {}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class App:
    """One API server's front door."""

    def __init__(
        self,
        handlers: Handlers,
        pages: Pages,
        authentication: Authentication,
        authorizer: Authorizer,
        metrics: Metrics,
    ) -> None:
        self._handlers = handlers
        self._pages = pages
        self._authentication = authentication
        self._authorizer = authorizer
        self._metrics = metrics
        self._watchers: set[Watcher] = set()
        self._closing = False

    def close(self) -> None:
        """Let all watches end, so that their clients come back to a server that lives."""
        self._closing = True
        for watcher in tuple(self._watchers):
            watcher.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        labels = Labels(scope["method"])
        try:
            request = self._request(scope)
            target = find_target(request.path)
            if target is None:
                body = await _read(receive, scope)
                response = await self._pages.answer(request._replace(body=body))
            else:
                verb = self._handlers.verb(request, target)
                labels = _labels(target, verb)
                self._handlers.authorize(request, target, verb)
                if verb == "watch":
                    await self._watch(request, target, labels, receive, send)
                    return
                request = request._replace(body=await _read(receive, scope))
                inflight = self._metrics.inflight_of(verb)
                inflight.inc()
                try:
                    response = await self._handlers.handle(request, target, verb)
                finally:
                    inflight.dec()
        except ApiError as error:
            response = error_response(error)
        except _ClientGoneError:
            return
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            response = error_response(api_errors.internal("the server made a mistake; see its log"))
        self._metrics.count(labels, response.code, time.perf_counter() - started)
        await self._send(response, scope, send)

    def _request(self, scope: Scope) -> ApiRequest:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        user = self._authentication.user_for(_credentials(headers, scope))
        if any(name.startswith(IMPERSONATE) for name in headers):
            user = self._impersonated(user, scope)
        # Not decoded yet: an escaped slash in a name does not divide it.
        path = scope["raw_path"].decode("latin-1")
        query = parse_query(scope["query_string"])
        return ApiRequest(scope["method"], path, query, headers, user)

    def _impersonated(self, user: User, scope: Scope) -> User:
        """Whom the caller wants to be taken for, if they may."""
        pairs = (
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        )
        wanted = impersonation(pairs)
        if wanted is None:
            return user
        for resource, name in wanted.asked:
            attributes = Attributes("impersonate", scope["path"], resource=resource, name=name)
            if not self._authorizer.allows(user, attributes):
                raise refusal(user, attributes)
        return wanted.user

    async def _send(self, response: Response, scope: Scope, send: Send) -> None:
        if response.more is not None:
            await _send_in_pieces(response, response.more, scope, send)
            return
        large = len(response.body) >= GZIP_FROM
        if large and _accepts_gzip(_header(scope, b"accept-encoding")):
            response = await asyncio.to_thread(compressed, response)
        headers = [
            *_common_headers(response.content_type),
            (b"content-length", str(len(response.body)).encode()),
            *response.headers,
        ]
        await send({"type": "http.response.start", "status": response.code, "headers": headers})
        body = b"" if scope["method"] == "HEAD" else response.body
        await send({"type": "http.response.body", "body": body})

    # --- watches ---

    async def _watch(
        self, request: ApiRequest, target: Target, labels: Labels, receive: Receive, send: Send
    ) -> None:
        watcher, response = await self._handlers.watch(request, target)
        self._metrics.requests.labels(*labels, "200").inc()
        gauge = self._metrics.watchers.labels(*labels)
        sent = self._metrics.watch_bytes.labels(labels.group, labels.version, labels.resource)
        self._watchers.add(watcher)
        gauge.inc()
        leaving = asyncio.create_task(_stop_when_gone(watcher, receive))
        if self._closing:
            watcher.stop()
        try:
            await _stream(response, send, sent.inc)
        except TimeoutError:
            log.info("watch of %s: the client takes nothing, giving it up", request.path)
        except Exception:
            # The answer has begun and cannot become another. Cut off, the client watches again.
            log.exception("watch of %s failed", request.path)
        finally:
            gauge.dec()
            self._watchers.discard(watcher)
            leaving.cancel()


async def _send_in_pieces(
    response: Response, more: AsyncIterator[bytes], scope: Scope, send: Send
) -> None:
    """A long answer whose length nobody knows yet."""
    headers = [*_common_headers(response.content_type), *response.headers]
    gzip = Gzip() if _accepts_gzip(_header(scope, b"accept-encoding")) else None
    if gzip is not None:
        headers.append((b"content-encoding", b"gzip"))
    await send({"type": "http.response.start", "status": response.code, "headers": headers})
    if scope["method"] != "HEAD":
        async for piece in _chained(response.body, more):
            shown = piece if gzip is None else await asyncio.to_thread(gzip.piece, piece)
            async with asyncio.timeout(SEND_SECONDS):
                await send({"type": "http.response.body", "body": shown, "more_body": True})
    rest = gzip.end() if gzip is not None and scope["method"] != "HEAD" else b""
    await send({"type": "http.response.body", "body": rest})


async def _chained(first: bytes, more: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in more:
        yield piece


async def _stream(response: StreamResponse, send: Send, count: Callable[[float], None]) -> None:
    headers = [*_common_headers(response.content_type), *response.headers]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for chunk in response.chunks:
        async with asyncio.timeout(SEND_SECONDS):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        count(len(chunk))
    await send({"type": "http.response.body", "body": b""})


async def _stop_when_gone(watcher: Watcher, receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            watcher.stop()
            return


class _ClientGoneError(Exception):
    """The client left before it had said everything."""


async def _read(receive: Receive, scope: Scope) -> bytes:
    """The whole body; 413 if it is larger than anybody needs."""
    whole: bytes | None = scope.get("extensions", _NOTHING).get(WHOLE_BODY)
    if whole is not None:
        if len(whole) > MAX_BODY:
            raise api_errors.body_too_large(MAX_BODY)
        return whole
    announced = _header(scope, b"content-length")
    if announced.isdigit() and int(announced) > MAX_BODY:
        raise api_errors.body_too_large(MAX_BODY)
    parts: list[bytes] = []
    size = 0
    deadline = asyncio.get_running_loop().time() + READ_SECONDS
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise api_errors.bad_request("the body of the request did not arrive in time") from None
        if message["type"] == "http.disconnect":
            raise _ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            raise api_errors.body_too_large(MAX_BODY)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _accepts_gzip(header: bytes) -> bool:
    for entry in header.split(b","):
        coding, _, quality = entry.partition(b";")
        if coding.strip().lower() == b"gzip":
            return quality.replace(b" ", b"").rstrip(b".0") not in (b"q=", b"q")
    return False


def _header(scope: Scope, name: bytes) -> bytes:
    for found, value in scope["headers"]:
        if found == name:
            return bytes(value)
    return b""


def _common_headers(content_type: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"audit-id", new_uid().encode()),
        (b"cache-control", b"no-cache, private"),
        (b"content-type", content_type.encode()),
    ]


def _credentials(headers: dict[str, str], scope: Scope) -> Credentials:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else None
    certificate: PeerCertificate | None = scope.get("extensions", _NOTHING).get(TLS)
    return Credentials(bearer or None, certificate)


def _labels(target: Target, verb: str) -> Labels:
    resource = target.resource
    scope = "resource" if target.name else "namespace" if target.namespace else "cluster"
    part = target.subresource.name if target.subresource else ""
    return Labels(verb, resource.group, target.version, resource.plural, part, scope)
