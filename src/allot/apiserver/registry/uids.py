"""Generates uids."""

from __future__ import annotations

import os
from typing import Final

_VARIANTS: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_DIGITS: Final = 32
_POOL_SIZE: Final = 128
"""Uids for which randomness is asked for at once."""

_pool: Final[list[str]] = []


def new_uid() -> str:
    """A random UUID as a string. Formatted by hand: every write needs two, and `uuid.UUID` is slower."""
    try:
        return _pool.pop()
    except IndexError:
        return _refill()


def _refill() -> str:
    """A uid, and more of them in the pool."""
    digits = os.urandom(_POOL_SIZE * _DIGITS // 2).hex()
    first, *others = [
        f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-4{digits[at + 13 : at + 16]}"
        f"-{_VARIANTS[digits[at + 16]]}{digits[at + 17 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at in range(0, len(digits), _DIGITS)
    ]
    _pool.extend(others)
    return first


# A child would make the uids that its parent makes too.
os.register_at_fork(after_in_child=_pool.clear)
