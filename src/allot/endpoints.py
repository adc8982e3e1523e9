"""The health, readiness and metrics endpoints that every component serves.

A component with further endpoints overrides `more`.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, NamedTuple

import uvicorn
from prometheus_client import CollectorRegistry

from allot.exposition_sharing import shared_exposition

Message = MutableMapping[str, Any]

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
_READING: Final = ("GET", "HEAD")


class EndpointResponse(NamedTuple):
    code: int
    content_type: str
    body: bytes


NOT_FOUND: Final = EndpointResponse(404, TEXT, b"404 page not found\n")


class ComponentEndpoints:
    """An ASGI application. `is_ready` and `registry` are called for each request."""

    def __init__(
        self, is_ready: Callable[[], bool], registry: Callable[[], CollectorRegistry]
    ) -> None:
        self._is_ready = is_ready
        self._metrics = shared_exposition(registry)

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        authorization = headers.get(b"authorization", b"").decode("latin-1")
        method, path = scope["method"], scope["path"]
        code, content_type, body = await self.respond(method, path, authorization)
        await send(
            {
                "type": "http.response.start",
                "status": code,
                "headers": [
                    (b"content-type", content_type.encode()),
                    (b"content-length", str(len(body)).encode()),
                ],
            }
        )
        content = b"" if method == "HEAD" else body
        await send({"type": "http.response.body", "body": content})

    async def respond(self, method: str, path: str, authorization: str = "") -> EndpointResponse:
        """The response for any path."""
        if method in _READING and path.strip("/") == "metrics":
            body, content_type = await self._metrics.page("")
            return EndpointResponse(200, content_type, body)
        return self.answer(method, path, authorization)

    def answer(self, method: str, path: str, authorization: str = "") -> EndpointResponse:
        """The response for any path but that of the metrics."""
        if method not in _READING:
            return EndpointResponse(405, TEXT, b"only GET is possible\n")
        match parts := [part for part in path.split("/") if part]:
            case ["healthz" | "livez"]:
                return EndpointResponse(200, TEXT, b"ok")
            case ["readyz"]:
                if self._is_ready():
                    return EndpointResponse(200, TEXT, b"ok")
                return EndpointResponse(500, TEXT, b"informers not synced\n")
        return self.more(parts, authorization)

    def more(self, path: list[str], authorization: str) -> EndpointResponse:
        """The response for any other path."""
        return NOT_FOUND


async def serve(pages: ComponentEndpoints, listener: socket.socket) -> None:
    """Serve requests on the socket until cancelled, then close it."""
    config = uvicorn.Config(pages, lifespan="off", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
    with listener:
        await server.serve(sockets=[listener])
