"""Requests to an ASGI application in this process: the scope of a request, and collecting its response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from allot.client.component_users import ComponentUser
from allot.client.transport import JSON

WHOLE_BODY: Final = "allot.body"
"""An ASGI extension: the complete request body. Applications that do not know it receive the body as usual."""

USER: Final = "allot.user"
"""The ASGI extension with the user who asks, a `ComponentUser`: a component of the cluster, which needs no credentials."""

Message = MutableMapping[str, Any]
Headers = list[tuple[bytes, bytes]]
SharedHeaders = tuple[tuple[bytes, bytes], ...]
"""Those of many requests, which nothing may change."""
Application = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[Message]],
        Callable[[Message], Awaitable[None]],
    ],
    Awaitable[None],
]

DISCONNECT: Final[Message] = {"type": "http.disconnect"}
HEADERS_KEPT: Final = 512


def http_scope(
    method: str,
    path: str,
    query: bytes,
    headers: Headers,
    body: bytes = b"",
    user: ComponentUser | None = None,
) -> dict[str, Any]:
    """The scope of a request with a known body. `path` is escaped. Without a user, headers authenticate."""
    extensions: dict[str, Any] = {WHOLE_BODY: body}
    if user is not None:
        extensions[USER] = user
    return {
        "type": "http",
        "method": method,
        "path": unquote(path) if "%" in path else path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": headers,
        "extensions": extensions,
    }


def headers_with(
    given: SharedHeaders,
    body: bytes | None,
    content_type: str = JSON,
    headers: Mapping[str, str] | None = None,
) -> SharedHeaders:
    """The headers of a request: those `given`, the type of its body, if it has one, and `headers`."""
    more = tuple(headers.items()) if headers else ()
    return _joined(given, content_type if body is not None else "", more)


@lru_cache(HEADERS_KEPT)
def _joined(
    given: SharedHeaders, content_type: str, more: tuple[tuple[str, str], ...]
) -> SharedHeaders:
    """Clients repeat the few that they have."""
    if content_type:
        more = (("content-type", content_type), *more)
    return (*given, *((name.lower().encode(), value.encode()) for name, value in more))


class CollectedAnswer:
    """Collects the response of an application to one request."""

    __slots__ = ("_pieces", "_unread", "code", "headers")

    def __init__(self, body: bytes) -> None:
        self._unread: bytes | None = body
        self.code = 0
        """The status code; 0 before the response starts."""
        self.headers: Headers = []
        self._pieces: list[bytes] = []

    @property
    def body(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    async def receive(self) -> Message:
        body, self._unread = self._unread, None
        return DISCONNECT if body is None else {"type": "http.request", "body": body}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
            self.headers = message["headers"]
        elif body := message.get("body", b""):
            self._pieces.append(body)
