"""Generates uids."""

from __future__ import annotations

import os
import re
from typing import Final

_POOL_SIZE: Final = 128
"""Uids for which randomness is asked for at once."""
_BYTES: Final = 16
_VERSION: Final = 0xFFFFFFFF_FFFF_0FFF_3FFF_FFFFFFFFFFFF, 0x00000000_0000_4000_8000_000000000000
"""Which bits of a uid are random, and what the others are: version 4 of the variant that RFC 4122 describes."""
_RANDOM, _FIXED = (int.from_bytes(part.to_bytes(_BYTES) * _POOL_SIZE) for part in _VERSION)
_parts: Final = re.compile("(.{8})(.{4})(.{4})(.{4})(.{12})").findall

_pool: Final[list[str]] = []


def new_uid() -> str:
    """A random UUID as a string. Made in batches: every write needs two, and `uuid.UUID` is slower."""
    try:
        return _pool.pop()
    except IndexError:
        return _refill()


def _refill() -> str:
    """A uid, and more of them in the pool."""
    bits = int.from_bytes(os.urandom(_BYTES * _POOL_SIZE)) & _RANDOM | _FIXED
    first, *others = map("-".join, _parts(bits.to_bytes(_BYTES * _POOL_SIZE).hex()))
    _pool.extend(others)
    return first


# A child would make the uids that its parent makes too.
os.register_at_fork(after_in_child=_pool.clear)
