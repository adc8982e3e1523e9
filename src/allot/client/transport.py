"""How requests travel. A transport knows bytes; what they mean is the client's business."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol

JSON: Final = "application/json"

Query = Mapping[str, str]


class Response(NamedTuple):
    """An answer. Names of headers may be in any case."""

    code: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header; `name` is in small letters."""
        for found, value in self.headers:
            if found.lower() == name:
                return value
        return None


class Stream(NamedTuple):
    """An answer that goes on, in pieces of any size."""

    code: int
    headers: Sequence[tuple[bytes, bytes]]
    chunks: AsyncIterator[bytes]


class Transport(Protocol):
    """Requests to one API server. Raises `TransportError` where there is no answer."""

    async def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """`path` is escaped already, `query` is not. `headers` replace those that are always sent."""
        ...

    def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        idle_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AbstractAsyncContextManager[Stream]:
        """A GET whose answer comes bit by bit; closed when the context is left.

        Nothing at all for `idle_seconds` counts as a lost connection.
        """
        ...

    async def close(self) -> None: ...
