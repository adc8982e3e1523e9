"""The head of a request: its method, target and headers. Clients send the same head again and again.

POST /api/v1/namespaces/default/pods HTTP/1.1     a head that was sent twice is recognized by its bytes,
host: 127.0.0.1:6443                              and its body by the length that the head says: nothing
content-length: 431                               of it has to be parsed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import unquote

import httptools

from allot.apiserver.http.exchange import Scope
from allot.apiserver.http.request_headers import LastHeaders, RequestHeaders

MAX_REMEMBERED_URL: Final = 512

Pairs = Sequence[tuple[bytes, bytes]]


class RequestHead:
    """What the head of a request says."""

    __slots__ = ("headers", "keeps_alive", "method", "path", "query", "version")

    def __init__(
        self,
        method: str,
        path: str,
        query: bytes,
        headers: RequestHeaders,
        version: str = "1.1",
        *,
        keeps_alive: bool = True,
    ) -> None:
        """`path` is still escaped."""
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.version = version
        self.keeps_alive = keeps_alive

    def scope(self, client: tuple[str, int] | None) -> Scope:
        """The request as ASGI describes it."""
        path = self.path
        return {
            "type": "http",
            "http_version": self.version,
            "method": self.method,
            "path": unquote(path) if "%" in path else path,
            "raw_path": path.encode("ascii"),
            "query_string": self.query,
            "headers": self.headers.pairs,
            "client": client,
        }


class LastHead:
    """Reads the heads of the requests of one connection."""

    def __init__(self) -> None:
        self.text = b""
        """The bytes of the last head, if a request that begins with them need not be parsed; otherwise none."""
        self.head: RequestHead | None = None
        """What they say."""
        self._headers = LastHeaders()
        self._request: Any = None

    def read(self, parser: httptools.HttpRequestParser, url: bytes, received: Pairs) -> RequestHead:
        """What has just been parsed."""
        headers = self._headers.read(received)
        parsed = httptools.parse_url(url)
        method = parser.get_method()
        version = parser.get_http_version()
        head = RequestHead(
            method.decode("ascii"),
            parsed.path.decode("ascii"),
            parsed.query or b"",
            headers,
            version,
            keeps_alive=version != "1.0" and parser.should_keep_alive(),
        )
        self.text, self.head = b"", None
        request = method, url, headers
        if request == self._request and version == "1.1" and head.keeps_alive:
            if headers.is_plain and not parser.should_upgrade():
                self.text, self.head = _as_sent(method, url, received), head
        else:
            is_kept = headers is self._headers.last and len(url) <= MAX_REMEMBERED_URL
            self._request = request if is_kept else None
        return head


def _as_sent(method: bytes, url: bytes, received: Pairs) -> bytes:
    """The bytes of a head, as most clients write it."""
    lines = [b"%b %b HTTP/1.1" % (method, url), *map(b": ".join, received), b"", b""]
    return b"\r\n".join(lines)
