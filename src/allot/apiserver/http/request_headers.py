"""The headers of a request as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from allot.apiserver.auth.impersonation import IMPERSONATE

_IMPERSONATE: Final = IMPERSONATE.encode()
_PREFIX: Final = len(_IMPERSONATE)


def decoded(headers: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """The headers as text. Of a repeated one the first counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)}


def names_user(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether a header names another user."""
    return bool([name for name, _ in headers if name[:_PREFIX] == _IMPERSONATE])


class KnownHeaders(NamedTuple):
    """Headers of a component."""

    by_name: Mapping[str, str]
    impersonates: bool


@lru_cache(maxsize=256)
def known_headers(headers: tuple[tuple[bytes, bytes], ...]) -> KnownHeaders:
    """Components send the same few again and again."""
    return KnownHeaders(MappingProxyType(dict(decoded(headers))), names_user(headers))
