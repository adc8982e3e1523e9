"""The HTTP server of the dashboard: the page, its JSON answers, and a stream of changes."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Final

import msgspec
from aiohttp import web

from allot.api.identities import DeviceId, ObjectKey
from allot.dashboard.access import COOKIE_SECONDS, SECURITY_HEADERS, TOKEN_PARAMETER, Access
from allot.dashboard.answers import AskedChange
from allot.dashboard.children import AnswerError, encode
from allot.dashboard.dashboard import Dashboard
from allot.dashboard.viewers import TooManyViewersError

log = logging.getLogger(__name__)

MAX_BODY: Final = 1024 * 1024
STREAM_END_SECONDS: Final = 1.0
JSON: Final = "application/json"
_STATIC: Final = files("allot.dashboard") / "static"
_TYPES: Final = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
_NOT_SIGNED_IN: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>allot: no token</title></head>
<body><h1>This page needs its token</h1>
<p>Open the address that allot printed when it started: it ends with <code>?token=…</code>.</p></body></html>
"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


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
        app = web.Application(client_max_size=MAX_BODY, middlewares=[self._guarded])
        app.add_routes(
            [
                web.get("/", self._index),
                web.get("/static/{path:.+}", self._file),
                web.get("/api/stream", self._stream),
                web.get("/api/device", self._device),
                web.get("/api/claim", self._claim),
                web.get("/api/pod", self._pod),
                web.get("/api/objects", self._objects),
                web.get("/api/pending", self._pending),
                web.get("/api/explain", self._explain),
                web.get("/api/choices", self._choices),
                web.get("/api/history", self._history),
                web.get("/api/history/floor", self._floor_at),
                web.post("/api/what-if", self._what_if),
                web.post("/api/expression", self._expression),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=STREAM_END_SECONDS)

    async def start(self, listening: socket.socket) -> None:
        await self._runner.setup()
        await web.SockSite(self._runner, listening).start()

    async def stop(self) -> None:
        self._is_stopping.set()
        await self._runner.cleanup()
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

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = self._refusal(request) or await self._answered(request, handler)
        except web.HTTPException as error:
            response = _problem(error.status, error.reason)
        except Exception:
            log.exception("%s %s", request.method, request.path)
            response = _problem(500, "internal error; see the log of allot")
        if not response.prepared:
            response.headers.update(SECURITY_HEADERS)
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    def _refusal(self, request: web.Request) -> web.Response | None:
        token = request.query.get(TOKEN_PARAMETER)
        misdirected = self._access.misdirected(request.headers)
        if request.path == "/" and token is not None and misdirected is None:
            return self._sign_in(token)
        refusal = self._access.refusal(request.headers, request.cookies)
        if refusal is None:
            return None
        if refusal.status == 401 and request.path == "/":
            return web.Response(status=401, text=_NOT_SIGNED_IN, content_type="text/html")
        return _problem(refusal.status, refusal.reason)

    def _sign_in(self, token: str) -> web.Response:
        if not self._access.is_token(token):
            return web.Response(status=401, text=_NOT_SIGNED_IN, content_type="text/html")
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(
            self._access.cookie,
            self._access.token,
            httponly=True,
            samesite="Strict",
            max_age=COOKIE_SECONDS,
            path="/",
        )
        return response

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        from allot.client.errors import ClientError

        if request.path.startswith("/api/"):
            try:
                await self.started()
            except (ClientError, TimeoutError) as error:
                return _problem(502, f"the cluster cannot be read: {error or 'timeout'}")
        if request.method == "POST" and request.content_type != JSON:
            return _problem(415, f"the body must be {JSON}")
        try:
            return await handler(request)
        except AnswerError as error:
            return _problem(422, str(error))
        except msgspec.DecodeError as error:
            return _problem(400, f"the request is not understood: {error}")

    # --- the page ---

    async def _index(self, request: web.Request) -> web.Response:
        return self._serve("index.html")

    async def _file(self, request: web.Request) -> web.Response:
        return self._serve(request.match_info["path"])

    def _serve(self, path: str) -> web.Response:
        body = self._static.get(path)
        if body is None:
            return _problem(404, "no such file")
        kind = _TYPES[path.rpartition(".")[2]]
        return web.Response(
            body=body, content_type=kind, charset="utf-8", headers={"Cache-Control": "no-cache"}
        )

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={**SECURITY_HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        response.content_type = "text/event-stream"
        try:
            with self._dashboard.viewers.viewer() as viewer:
                await response.prepare(request)
                sending = asyncio.ensure_future(_send_all(viewer.messages(), response))
                ending = asyncio.ensure_future(self._is_stopping.wait())
                try:
                    await asyncio.wait({sending, ending}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    sending.cancel()
                    ending.cancel()
                    await asyncio.gather(sending, ending, return_exceptions=True)
        except TooManyViewersError:
            return _problem(503, "too many pages are open")
        except ConnectionResetError:
            log.debug("the page was closed")
        return response

    # --- JSON ---

    async def _device(self, request: web.Request) -> web.Response:
        query = request.query
        device = DeviceId(query.get("driver", ""), query.get("pool", ""), query.get("device", ""))
        return _json(self._dashboard.device(device))

    async def _claim(self, request: web.Request) -> web.Response:
        return _json(await self._dashboard.claim(_key(request)))

    async def _pod(self, request: web.Request) -> web.Response:
        return _json(await self._dashboard.pod(_key(request)))

    async def _objects(self, request: web.Request) -> web.Response:
        query = request.query
        page = query.get("page", "0")
        number = int(page) if page.isascii() and page.isdecimal() and len(page) < 7 else 0
        kind = "claims" if query.get("kind") == "claims" else "pods"
        return _json(
            self._dashboard.objects(kind, query.get("search", ""), query.get("state", ""), number)
        )

    async def _pending(self, request: web.Request) -> web.Response:
        return _json(await self._dashboard.pending())

    async def _explain(self, request: web.Request) -> web.Response:
        kind = "claim" if request.query.get("kind") == "claim" else "pod"
        return _json(await self._dashboard.explain(kind, _key(request)))

    async def _choices(self, request: web.Request) -> web.Response:
        return _json(self._dashboard.choices())

    async def _history(self, request: web.Request) -> web.Response:
        return _json(self._dashboard.recorded_figures())

    async def _floor_at(self, request: web.Request) -> web.Response:
        try:
            at = float(request.query.get("at", ""))
        except ValueError:
            return _problem(400, "at: expected seconds since the epoch")
        return _json(self._dashboard.floor_at(at))

    async def _what_if(self, request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read(), type=WhatIfBody)
        return _json(await self._dashboard.what_if(body.changes))

    async def _expression(self, request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read(), type=ExpressionBody)
        found = await self._dashboard.try_expression(body.expression, is_derived=body.is_derived)
        return _json(found)


async def _send_all(messages: Any, response: web.StreamResponse) -> None:
    async for data in messages:
        await response.write(data)


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


def _key(request: web.Request) -> ObjectKey:
    return ObjectKey(request.query.get("namespace", ""), request.query.get("name", ""))


def _json(body: bytes | None) -> web.Response:
    if body is None:
        return _problem(404, "it does not exist, or is not readable")
    return web.Response(body=body, content_type=JSON)


def _problem(status: int, reason: str) -> web.Response:
    return web.Response(status=status, body=encode({"error": reason}), content_type=JSON)
