"""Generates uids."""

from __future__ import annotations

import os
from typing import Final

_VARIANTS: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def new_uid() -> str:
    """A random UUID as a string. Formatted by hand: every write needs two, and `uuid.UUID` is slower."""
    digits = os.urandom(16).hex()
    return (
        f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}"
        f"-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"
    )
