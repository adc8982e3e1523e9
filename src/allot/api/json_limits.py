"""Limits of JSON documents: how deep they nest and how many values they have, checked before decoding."""

from __future__ import annotations

import re
from typing import Final

MAX_DEPTH = 200
"""Deeper nesting is refused; no API type needs a tenth of it, and Go stops at 10,000."""
MAX_VALUES: Final = 150_000
"""Documents with more values are refused by servers: decoding one is a single stretch of work."""


_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
# An unterminated string counts as one, too: searching again from each quote in it would be quadratic.
_TEXT: Final = rb'"(?:[^"\\]+|\\.)*+"?'
_texts_and_brackets: Final = re.compile(rb"%b|[\[\]{}]" % _TEXT, re.DOTALL)
_beginnings: Final = re.compile(rb'[,\[{](?:[^",\[{]+|%b)*+' % _TEXT, re.DOTALL)


def is_too_deep(body: bytes) -> bool:
    """Whether JSON is nested deeper than `MAX_DEPTH`, well-formed or not.

    Innermost pairs of brackets are removed until none is left: a few passes for a usual document.
    """
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    brackets = body.translate(None, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        inner = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not inner:
            return False
        if len(inner) == len(brackets):
            return _depth(body) > MAX_DEPTH  # there are brackets in strings, or some are missing
        brackets = inner
    return _depth(body) > MAX_DEPTH


def _depth(body: bytes) -> int:
    depth = deepest = 0
    # One by one, so that other threads can run.
    for found in _texts_and_brackets.finditer(body):
        token = found[0]
        if token in (b"[", b"{"):
            depth += 1
            deepest = max(deepest, depth)
        elif token in (b"]", b"}"):
            depth -= 1
    return deepest


def has_too_many_values(body: bytes) -> bool:
    """Whether JSON has more than `MAX_VALUES` values, counted by opening brackets and separators."""
    if len(body) <= MAX_VALUES:
        return False
    if body.count(b",") + body.count(b"[") + body.count(b"{") <= MAX_VALUES:
        return False
    return any(count == MAX_VALUES for count, _ in enumerate(_beginnings.finditer(body)))
