"""The HTTP server of the dashboard: the page, its JSON answers, and a stream of changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from typing import Any, Final

import msgspec
import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from allot.api.identities import DeviceId, ObjectKey
from allot.dashboard.access import COOKIE_SECONDS, SECURITY_HEADERS, TOKEN_PARAMETER, Access
from allot.dashboard.answers import AskedChange
from allot.dashboard.children import AnswerError, encode
from allot.dashboard.dashboard import Dashboard
from allot.dashboard.viewers import TooManyViewersError

log = logging.getLogger(__name__)

MAX_BODY: Final = 1024 * 1024
STREAM_END_SECONDS: Final = 1
JSON: Final = "application/json"
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
"""

Handler = Callable[[Request], Awaitable[Response]]


class BodyError(Exception):
    """The body of a request is not read."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


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
        self._router = Router(
            [
                _get("/", self._index),
                _get("/static/{path:path}", self._file),
                _get("/api/device", self._device),
                _get("/api/claim", self._claim),
                _get("/api/pod", self._pod),
                _get("/api/objects", self._objects),
                _get("/api/pending", self._pending),
                _get("/api/explain", self._explain),
                _get("/api/choices", self._choices),
                _get("/api/history", self._history),
                _get("/api/history/floor", self._floor_at),
                _get("/api/stream", self._stream),
                Route("/api/what-if", self._what_if, methods=["POST"]),
                Route("/api/expression", self._expression, methods=["POST"]),
            ],
            default=_problem(404, "no such page"),
            redirect_slashes=False,
        )
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        answer: ASGIApp | None = self._refusal(request)
        if answer is None and request.url.path.startswith("/api/"):
            answer = await self._unreadable()
        try:
            await (answer or self._answered)(scope, receive, _with_security_headers(send))
        except ClientDisconnect:
            log.debug("the page was closed")

    def _refusal(self, request: Request) -> Response | None:
        path, token = request.url.path, request.query_params.get(TOKEN_PARAMETER)
        misdirected = self._access.misdirected(request.headers)
        if path == "/" and token is not None and misdirected is None:
            return self._sign_in(token)
        refusal = self._access.refusal(request.headers, request.cookies)
        if refusal is None:
            return None
        if refusal.status == 401 and path == "/":
            return Response(_NOT_SIGNED_IN, 401, media_type="text/html")
        return _problem(refusal.status, refusal.reason)

    def _sign_in(self, token: str) -> Response:
        if not self._access.is_token(token):
            return Response(_NOT_SIGNED_IN, 401, media_type="text/html")
        response = Response(status_code=303, headers={"Location": "/"})
        response.set_cookie(
            self._access.cookie,
            self._access.token,
            httponly=True,
            samesite="strict",
            max_age=COOKIE_SECONDS,
            path="/",
        )
        return response

    async def _unreadable(self) -> Response | None:
        """The answer if the cluster cannot be read."""
        from allot.client.errors import ClientError

        try:
            await self.started()
        except (ClientError, TimeoutError) as error:
            return _problem(502, f"the cluster cannot be read: {error or 'timeout'}")
        return None

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._router(scope, receive, send)
            return
        except AnswerError as error:
            problem = _problem(422, str(error))
        except msgspec.DecodeError as error:
            problem = _problem(400, f"the request is not understood: {error}")
        except BodyError as error:
            problem = _problem(error.status, str(error))
        except ClientDisconnect:
            raise
        except Exception:
            log.exception("%s %s", scope["method"], scope["path"])
            problem = _problem(500, "internal error; see the log of allot")
        await problem(scope, receive, send)

    # --- the page ---

    async def _index(self, _request: Request) -> Response:
        return self._serve("index.html")

    async def _file(self, request: Request) -> Response:
        return self._serve(request.path_params["path"])

    def _serve(self, path: str) -> Response:
        body = self._static.get(path)
        if body is None:
            return _problem(404, "no such file")
        kind = _TYPES[path.rpartition(".")[2]]
        return Response(
            body,
            media_type=f"{kind}; charset=utf-8",
            headers={"Cache-Control": "no-cache"},
        )

    async def _stream(self, _request: Request) -> Response:
        return _ChangeStream(self._dashboard, self._is_stopping)

    # --- JSON ---

    async def _device(self, request: Request) -> Response:
        query = request.query_params
        device = DeviceId(query.get("driver", ""), query.get("pool", ""), query.get("device", ""))
        return _json(self._dashboard.device(device))

    async def _claim(self, request: Request) -> Response:
        return _json(await self._dashboard.claim(_key(request)))

    async def _pod(self, request: Request) -> Response:
        return _json(await self._dashboard.pod(_key(request)))

    async def _objects(self, request: Request) -> Response:
        query = request.query_params
        page = query.get("page", "0")
        number = int(page) if page.isascii() and page.isdecimal() and len(page) < 7 else 0
        kind = "claims" if query.get("kind") == "claims" else "pods"
        search, state = query.get("search", ""), query.get("state", "")
        return _json(await self._dashboard.objects(kind, search, state, number))

    async def _pending(self, request: Request) -> Response:
        return _json(await self._dashboard.pending())

    async def _explain(self, request: Request) -> Response:
        kind = "claim" if request.query_params.get("kind") == "claim" else "pod"
        return _json(await self._dashboard.explain(kind, _key(request)))

    async def _choices(self, request: Request) -> Response:
        return _json(self._dashboard.choices())

    async def _history(self, request: Request) -> Response:
        return _json(self._dashboard.recorded_figures())

    async def _floor_at(self, request: Request) -> Response:
        try:
            at = float(request.query_params.get("at", ""))
        except ValueError:
            return _problem(400, "at: expected seconds since the epoch")
        return _json(self._dashboard.floor_at(at))

    async def _what_if(self, request: Request) -> Response:
        body = msgspec.json.decode(await _body(request), type=WhatIfBody)
        return _json(await self._dashboard.what_if(body.changes))

    async def _expression(self, request: Request) -> Response:
        body = msgspec.json.decode(await _body(request), type=ExpressionBody)
        found = await self._dashboard.try_expression(body.expression, is_derived=body.is_derived)
        return _json(found)


class _ChangeStream(Response):
    """Server-sent events for one page, until it is closed or the server stops."""

    def __init__(self, dashboard: Dashboard, is_stopping: asyncio.Event) -> None:
        super().__init__(media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._dashboard = dashboard
        self._is_stopping = is_stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._dashboard.viewers.viewer() as viewer:
                await send(
                    {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
                )
                tasks = {
                    asyncio.ensure_future(_send_all(viewer.messages(), send)),
                    asyncio.ensure_future(self._is_stopping.wait()),
                    asyncio.ensure_future(_closed(receive)),
                }
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TooManyViewersError:
            await _problem(503, "too many pages are open")(scope, receive, send)


async def _send_all(messages: AsyncIterator[bytes], send: Send) -> None:
    async for data in messages:
        await send({"type": "http.response.body", "body": data, "more_body": True})


async def _closed(receive: Receive) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _with_security_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return guarded


def _get(path: str, handler: Handler) -> Route:
    return Route(path, handler, methods=["GET"])


async def _body(request: Request) -> bytes:
    if request.headers.get("Content-Type", "").partition(";")[0].strip() != JSON:
        raise BodyError(415, f"the body must be {JSON}")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise BodyError(413, f"the body has more than {MAX_BODY} bytes")
    return bytes(body)


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
    return ObjectKey(
        request.query_params.get("namespace", ""), request.query_params.get("name", "")
    )


def _json(body: bytes | None) -> Response:
    if body is None:
        return _problem(404, "it does not exist, or is not readable")
    return Response(body, media_type=JSON)


def _problem(status: int, reason: str) -> Response:
    return Response(encode({"error": reason}), status, media_type=JSON)
