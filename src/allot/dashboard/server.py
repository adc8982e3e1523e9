"""The HTTP server of the dashboard: the page, its JSON answers, and a stream of changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec
import uvicorn

from allot.api.identities import DeviceId, ObjectKey
from allot.dashboard.access import COOKIE_SECONDS, TOKEN_PARAMETER, Access
from allot.dashboard.answers import AskedChange
from allot.dashboard.children import AnswerError, encode
from allot.dashboard.dashboard import Dashboard
from allot.dashboard.http_messages import (
    EVENTS,
    HTML,
    JSON,
    BodyError,
    ClientDisconnectedError,
    Receive,
    Request,
    Response,
    Send,
    StreamedResponse,
)
from allot.dashboard.viewers import TooManyViewersError
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

MAX_BODY: Final = 1024 * 1024
STREAM_END_SECONDS: Final = 1
_FILES: Final = "/static/"
_STATIC: Final = files("allot.dashboard") / "static"
_TYPES: Final = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
_NOT_SIGNED_IN: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>allot: no token</title>
<script src="/static/follow_link.js"></script></head>
<body><h1>This page needs its token</h1>
<p>Open the address that allot printed when it started: it ends with <code>?token=…</code>.</p></body></html>
""".encode()

Handler = Callable[[Request], Awaitable[Response]]


class WhatIfBody(msgspec.Struct):
    """The body of a what-if question."""

    changes: list[AskedChange]


class ExpressionBody(msgspec.Struct, rename="camel"):
    """The body of a question about an expression."""

    expression: str
    is_derived: bool = False


class DashboardServer:
    """Serves a dashboard on a socket. The dashboard starts with the first request that has the token."""

    def __init__(self, dashboard: Dashboard, access: Access) -> None:
        self._dashboard = dashboard
        self._access = access
        self._starting: asyncio.Task[None] | None = None
        self._is_stopping = asyncio.Event()
        self._static = _static_files()
        self._handlers: Mapping[str, tuple[str, Handler]] = {
            "/": ("GET", self._index),
            _FILES: ("GET", self._file),
            "/api/device": ("GET", self._device),
            "/api/claim": ("GET", self._claim),
            "/api/pod": ("GET", self._pod),
            "/api/objects": ("GET", self._objects),
            "/api/pending": ("GET", self._pending),
            "/api/explain": ("GET", self._explain),
            "/api/choices": ("GET", self._choices),
            "/api/history": ("GET", self._history),
            "/api/history/floor": ("GET", self._floor_at),
            "/api/stream": ("GET", self._stream),
            "/api/what-if": ("POST", self._what_if),
            "/api/expression": ("POST", self._expression),
        }
        config = uvicorn.Config(
            self,
            lifespan="off",
            log_config=None,
            access_log=False,
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=STREAM_END_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
        self._serving: asyncio.Task[None] | None = None

    async def start(self, listening: socket.socket) -> None:
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]))
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0)

    async def stop(self) -> None:
        self._is_stopping.set()
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
            await self._dashboard.stop()

    async def started(self) -> None:
        """Start the dashboard, unless it runs; `ClientError` if the cluster does not answer."""
        if self._starting is None or (
            self._starting.done() and self._starting.exception() is not None
        ):
            self._starting = asyncio.create_task(self._dashboard.start())
        await asyncio.shield(self._starting)

    # --- every request ---

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            response = await self._response(request)
            await response.send(send)
        except ClientDisconnectedError:
            log.debug("the page was closed")

    async def _response(self, request: Request) -> Response:
        try:
            response = self._refusal(request)
            if response is None and request.path.startswith("/api/"):
                response = await self._unreadable()
            return response or await self._answer(request)
        except AnswerError as error:
            return _problem(422, str(error))
        except msgspec.DecodeError as error:
            return _problem(400, f"the request is not understood: {error}")
        except BodyError as error:
            return _problem(error.status, str(error))
        except ClientDisconnectedError:
            raise
        except Exception:
            log.exception("%s %s", request.method, request.path)
            return _problem(500, "internal error; see the log of allot")

    def _refusal(self, request: Request) -> Response | None:
        path, token = request.path, request.query.get(TOKEN_PARAMETER)
        misdirected = self._access.misdirected(request.headers)
        if path == "/" and token is not None and misdirected is None:
            return self._sign_in(token)
        refusal = self._access.refusal(request.headers, request.cookies)
        if refusal is None:
            return None
        if refusal.status == 401 and path == "/":
            return Response(_NOT_SIGNED_IN, HTML, 401)
        return _problem(refusal.status, refusal.reason)

    def _sign_in(self, token: str) -> Response:
        if not self._access.is_token(token):
            return Response(_NOT_SIGNED_IN, HTML, 401)
        cookie = (
            f"{self._access.cookie}={self._access.token}; HttpOnly; Max-Age={COOKIE_SECONDS};"
            " Path=/; SameSite=strict"
        )
        return Response(b"", status=303, headers={"Location": "/", "Set-Cookie": cookie})

    async def _unreadable(self) -> Response | None:
        """The answer if the cluster cannot be read."""
        from allot.client.errors import ClientError

        try:
            await self.started()
        except (ClientError, TimeoutError) as error:
            return _problem(502, f"the cluster cannot be read: {error or 'timeout'}")
        return None

    async def _answer(self, request: Request) -> Response:
        path = _FILES if request.path.startswith(_FILES) else request.path
        if path not in self._handlers:
            return _problem(404, "no such page")
        method, handler = self._handlers[path]
        allowed = ("GET", "HEAD") if method == "GET" else (method,)
        if request.method not in allowed:
            return _problem(405, f"only {method} is possible", {"Allow": ", ".join(allowed)})
        return await handler(request)

    # --- the page ---

    async def _index(self, _request: Request) -> Response:
        return self._serve("index.html")

    async def _file(self, request: Request) -> Response:
        return self._serve(request.path.removeprefix(_FILES))

    def _serve(self, path: str) -> Response:
        body = self._static.get(path)
        if body is None:
            return _problem(404, "no such file")
        kind = _TYPES[path.rpartition(".")[2]]
        return Response(body, f"{kind}; charset=utf-8", headers={"Cache-Control": "no-cache"})

    async def _stream(self, request: Request) -> Response:
        return _ChangeStream(request, self._dashboard, self._is_stopping)

    # --- JSON ---

    async def _device(self, request: Request) -> Response:
        query = request.query
        device = DeviceId(query.get("driver", ""), query.get("pool", ""), query.get("device", ""))
        return _json(self._dashboard.device(device))

    async def _claim(self, request: Request) -> Response:
        return _json(await self._dashboard.claim(_key(request)))

    async def _pod(self, request: Request) -> Response:
        return _json(await self._dashboard.pod(_key(request)))

    async def _objects(self, request: Request) -> Response:
        query = request.query
        page = query.get("page", "0")
        number = int(page) if page.isascii() and page.isdecimal() and len(page) < 7 else 0
        kind = "claims" if query.get("kind") == "claims" else "pods"
        search, state = query.get("search", ""), query.get("state", "")
        return _json(await self._dashboard.objects(kind, search, state, number))

    async def _pending(self, request: Request) -> Response:
        return _json(await self._dashboard.pending())

    async def _explain(self, request: Request) -> Response:
        kind = "claim" if request.query.get("kind") == "claim" else "pod"
        return _json(await self._dashboard.explain(kind, _key(request)))

    async def _choices(self, request: Request) -> Response:
        return _json(self._dashboard.choices())

    async def _history(self, request: Request) -> Response:
        return _json(self._dashboard.recorded_figures())

    async def _floor_at(self, request: Request) -> Response:
        try:
            at = float(request.query.get("at", ""))
        except ValueError:
            return _problem(400, "at: expected seconds since the epoch")
        return _json(self._dashboard.floor_at(at))

    async def _what_if(self, request: Request) -> Response:
        body = msgspec.json.decode(await request.body(JSON, MAX_BODY), type=WhatIfBody)
        return _json(await self._dashboard.what_if(body.changes))

    async def _expression(self, request: Request) -> Response:
        body = msgspec.json.decode(await request.body(JSON, MAX_BODY), type=ExpressionBody)
        found = await self._dashboard.try_expression(body.expression, is_derived=body.is_derived)
        return _json(found)


class _ChangeStream(StreamedResponse):
    """Server-sent events for one page, until it is closed or the server stops."""

    def __init__(self, request: Request, dashboard: Dashboard, is_stopping: asyncio.Event) -> None:
        super().__init__(EVENTS, {"X-Accel-Buffering": "no"})
        self._request = request
        self._dashboard = dashboard
        self._is_stopping = is_stopping

    async def send(self, send: Send) -> None:
        try:
            with self._dashboard.viewers.viewer() as viewer:
                await self.begin(send)
                tasks = {
                    asyncio.ensure_future(self._send_all(viewer.messages(), send)),
                    asyncio.ensure_future(self._is_stopping.wait()),
                    asyncio.ensure_future(self._request.disconnected()),
                }
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    await cancel_and_wait(*tasks, ignore_errors=True)
                await self.end(send)
        except TooManyViewersError:
            await _problem(503, "too many pages are open").send(send)

    async def _send_all(self, messages: AsyncIterator[bytes], send: Send) -> None:
        async for data in messages:
            await self.send_piece(send, data)


def _static_files() -> dict[str, bytes]:
    """The files of the page by path. They are few and small, and no path leads elsewhere."""
    found: dict[str, bytes] = {}

    def add(folder: Any, prefix: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                add(entry, f"{prefix}{entry.name}/")
            elif entry.name.rpartition(".")[2] in _TYPES:
                found[prefix + entry.name] = entry.read_bytes()

    add(_STATIC, "")
    return found


def _key(request: Request) -> ObjectKey:
    return ObjectKey(request.query.get("namespace", ""), request.query.get("name", ""))


def _json(body: bytes | None) -> Response:
    if body is None:
        return _problem(404, "it does not exist, or is not readable")
    return Response(body, JSON)


def _problem(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode({"error": reason}), JSON, status, headers)
