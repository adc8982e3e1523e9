"""Generated names: the characters of their suffixes, without vowels, so that they spell no words."""

from __future__ import annotations

from typing import Final

SUFFIX_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
_BASE: Final = len(SUFFIX_CHARACTERS)


def suffix_of(number: int, length: int = SUFFIX_LENGTH) -> str:
    """The lowest digits of a number in these characters, the lowest one first."""
    base, suffix = _BASE, ""
    for _ in range(length):
        suffix += SUFFIX_CHARACTERS[number % base]
        number //= base
    return suffix
