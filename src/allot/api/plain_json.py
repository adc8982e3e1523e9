"""JSON that is written just as it is written here, as our own components write it.

What a type reads and writes again byte by byte has no field twice, none that the type does not have and no value of
another type: it need not be looked at again to find such mistakes. Opaque values are not read.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from allot.api.decoding import to_builtin

T = TypeVar("T")


class PlainStruct(
    msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """A part of an object with the fields that it usually has, in their usual order. Empty ones are not written."""


_encode: Final = msgspec.json.Encoder(enc_hook=to_builtin).encode


def read_plain(body: bytes, decoder: msgspec.json.Decoder[T]) -> T | None:
    """The value in `body`; None if it is written otherwise, or cannot be read."""
    try:
        value = decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if _encode(value) == body else None
