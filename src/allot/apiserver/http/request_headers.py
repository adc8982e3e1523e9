"""The headers of a request as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from allot.apiserver.auth.impersonation import IMPERSONATE

_IMPERSONATE: Final = IMPERSONATE.encode()
_PREFIX: Final = len(_IMPERSONATE)


def by_name(headers: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers. Of a repeated one the first counts."""
    return dict(reversed(headers))


def decoded(headers: Mapping[bytes, bytes]) -> Mapping[str, str]:
    """The headers as text."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}


def names_user(headers: Iterable[bytes]) -> bool:
    """Whether a header of these names names another user."""
    return bool([name for name in headers if name[:_PREFIX] == _IMPERSONATE])


class KnownHeaders(NamedTuple):
    """Headers of a component."""

    by_name: Mapping[str, str]
    impersonates: bool


@lru_cache(maxsize=256)
def known_headers(headers: tuple[tuple[bytes, bytes], ...]) -> KnownHeaders:
    """Components send the same few again and again."""
    found = by_name(headers)
    return KnownHeaders(MappingProxyType(dict(decoded(found))), names_user(found))
