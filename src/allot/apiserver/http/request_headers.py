"""The headers of a request as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from allot.api.lazy import lazy
from allot.apiserver.auth.impersonation import IMPERSONATE

_IMPERSONATE: Final = IMPERSONATE.encode()
_PREFIX: Final = len(_IMPERSONATE)
MAX_REMEMBERED: Final = 24
MAX_REMEMBERED_BYTES: Final = 2048
"""Headers that are remembered for the next request of a connection, and their bytes: connections may be many."""


TOO_LONG: Final = 10**9
"""Stands for all lengths from here on."""


class RequestHeaders:
    """The headers of a request, and what is read from them when it is first asked for."""

    def __init__(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """The names are in lower case."""
        self.pairs = pairs
        self.by_name = dict(reversed(pairs))
        """Of a repeated one the first counts."""

    @lazy
    def text(self) -> Mapping[str, str]:
        """The same as text."""
        return MappingProxyType(
            {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in self.by_name.items()
            }
        )

    @lazy
    def impersonates(self) -> bool:
        """Whether a header names another user."""
        return bool([name for name in self.by_name if name[:_PREFIX] == _IMPERSONATE])

    @lazy
    def expects_continue(self) -> bool:
        """Whether the client waits for leave to send the body."""
        asked = [value.lower() for name, value in self.pairs if name == b"expect"]
        return b"100-continue" in asked

    @lazy
    def length(self) -> int:
        """What Content-Length says: 0 without one, `TOO_LONG` if it has more than 9 digits."""
        digits = self.by_name.get(b"content-length", b"")
        if not digits.isdigit():
            return 0
        return int(digits) if len(digits) < 10 else TOO_LONG

    @lazy
    def is_chunked(self) -> bool:
        """Whether the body has a length that is not known before it ends."""
        return bool(self.by_name.get(b"transfer-encoding"))

    @lazy
    def is_plain(self) -> bool:
        """Whether the body has exactly the length that they say, and the client just sends it."""
        if b"transfer-encoding" in self.by_name or b"expect" in self.by_name:
            return False
        digits = self.by_name.get(b"content-length", b"0")
        return digits.isdigit() and self.length < TOO_LONG


class LastHeaders:
    """Reads the headers of the requests of one connection. Most clients send the same again and again."""

    def __init__(self) -> None:
        self._received: Sequence[tuple[bytes, bytes]] = []
        self._read = RequestHeaders([])

    @property
    def last(self) -> RequestHeaders:
        """Those that are remembered."""
        return self._read

    def read(self, received: Sequence[tuple[bytes, bytes]]) -> RequestHeaders:
        if received == self._received:
            return self._read
        headers = RequestHeaders([(name.lower(), value) for name, value in received])
        if len(received) <= MAX_REMEMBERED and _size(received) <= MAX_REMEMBERED_BYTES:
            self._received = [*received]  # the parser adds trailers to the list that it gave
            self._read = headers
        return headers


def _size(headers: Sequence[tuple[bytes, bytes]]) -> int:
    return sum([len(name) + len(value) for name, value in headers])


@lru_cache(maxsize=256)
def known_headers(headers: tuple[tuple[bytes, bytes], ...]) -> RequestHeaders:
    """Components send the same few again and again."""
    return RequestHeaders(headers)
