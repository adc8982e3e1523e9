"""A binding controller's own pages: health and metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest

Message = MutableMapping[str, Any]

TEXT: Final = "text/plain; charset=utf-8"
METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"


class Pages:
    """An ASGI application."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        code, content_type, body = self.answer(scope["method"], scope["path"])
        headers = [
            (b"content-type", content_type.encode()),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        content = b"" if scope["method"] == "HEAD" else body
        await send({"type": "http.response.body", "body": content})

    def answer(self, method: str, path: str) -> tuple[int, str, bytes]:
        """Code, content type and body."""
        if method not in ("GET", "HEAD"):
            return 405, TEXT, b"only GET is possible\n"
        match path:
            case "/healthz" | "/livez":
                return 200, TEXT, b"ok"
            case "/metrics":
                return 200, METRICS, generate_latest(self._registry)
        return 404, TEXT, b"404 page not found\n"
