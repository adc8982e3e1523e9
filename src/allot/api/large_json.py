"""Decodes large JSON in pieces.

One call into C holds the interpreter, and with it all other threads, until it returns. A stored object may have
hundreds of thousands of small maps, most of them in its managedFields, which take a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

LARGE: Final = 256 * 1024
"""Bytes of JSON that are decoded in pieces."""
PIECE: Final = 64 * 1024
"""Bytes that are decoded in one call."""
MAX_DEPTH: Final = 6
"""What is nested more deeply is decoded in one call: every level is read once more."""

_decode_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items: Final = msgspec.json.Decoder(list[Raw]).decode


def decode_in_pieces(body: bytes) -> Any:
    """The value in `body`, as `msgspec.json.decode` returns it."""
    return msgspec.json.decode(body) if len(body) <= LARGE else _decoded(body, MAX_DEPTH)


def decode_path(body: bytes, path: Sequence[str]) -> Any:
    """One value in `body`, or None: the rest of a large document is skipped."""
    value: bytes | Raw = body
    for name in path:
        if bytes(memoryview(value)[:1]) != b"{":
            return None
        found = _decode_fields(value).get(name)
        if found is None:
            return None
        value = found
    return _decoded(value, MAX_DEPTH)


def _decoded(body: bytes | Raw, depth: int) -> Any:
    view = memoryview(body)
    if view.nbytes > PIECE and depth:
        match bytes(view[:16]).lstrip()[:1]:
            case b"{":
                fields = _decode_fields(body)
                return {name: _decoded(value, depth - 1) for name, value in fields.items()}
            case b"[":
                return [_decoded(item, depth - 1) for item in _decode_items(body)]
    return msgspec.json.decode(body)
