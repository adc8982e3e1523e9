"""Continue tokens: where a list that is read in pages goes on. Clients do not look inside.

A token holds the revision that all pages show and the last key seen, without the prefix that the list
itself decides. So whatever a client puts into a token, it cannot lead out of the list.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final, NamedTuple

import msgspec

from allot.api.json_syntax import syntax_problem

VERSION: Final = "meta.k8s.io/v1"
MAX_LENGTH: Final = 4096


class ContinueToken(NamedTuple):
    """Go on after this key, at this revision."""

    revision: int
    after_key: str


class ContinueTokenError(ValueError):
    """The token is not one of ours. The message is what clients see (400)."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"invalid continue token: continue key is not valid: {problem}")


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    v: str
    rv: int
    start: str


_decoder: Final = msgspec.json.Decoder(_Content)


def encode(revision: int, after_key: str, prefix: str = "") -> str:
    """The token for the page after `after_key`, which starts with the list's `prefix`."""
    if not after_key.startswith(prefix):
        raise ValueError(f"{after_key} is not in the list of {prefix}")
    content = msgspec.json.encode(_Content(VERSION, revision, after_key.removeprefix(prefix)))
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decode(text: str, prefix: str = "") -> ContinueToken:
    """What a token says; its key starts with `prefix` again. `ContinueTokenError` if it says nothing."""
    if len(text) > MAX_LENGTH:
        raise ContinueTokenError("it is too long")
    content = _content(text)
    if content.v != VERSION:
        raise ContinueTokenError(
            f'server does not recognize this encoded version "{content.v[:32]}"'
        )
    if not 0 < content.rv < 2**63:
        raise ContinueTokenError("incorrect encoded start resourceVersion")
    if not _stays_inside(content.start):
        raise ContinueTokenError("it does not point into this list")
    return ContinueToken(content.rv, prefix + content.start)


def _content(text: str) -> _Content:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ContinueTokenError(_first_line(error)) from None
    try:
        return _decoder.decode(raw)
    except ValueError as error:
        raise ContinueTokenError(syntax_problem(raw) or _first_line(error)) from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it cannot be read"])[0]


def _stays_inside(start: str) -> bool:
    """Keys are made of names and slashes. Nothing that could climb out of a directory is one."""
    return not any(part in ("", ".", "..") for part in start.split("/"))
