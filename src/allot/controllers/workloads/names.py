"""Names that are made up: pods with a random end, revisions with the hash of what they hold.

The letters leave out vowels and what looks alike, so that no name spells a word.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from allot.controllers.workloads.accessors import without_nulls

SAFE_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
MAX_NAME_LENGTH: Final = 63
MAX_BASE_LENGTH: Final = MAX_NAME_LENGTH - SUFFIX_LENGTH

NewSuffix = Callable[[], str]


def random_suffix() -> str:
    return "".join(random.choices(SAFE_LETTERS, k=SUFFIX_LENGTH))  # noqa: S311 - not a secret


def generated_name(base: str, new_suffix: NewSuffix = random_suffix) -> str:
    """A name as the server would make it from a generateName. A base that is too long is cut."""
    return base[:MAX_BASE_LENGTH] + new_suffix()


def content_hash(content: Any, collisions: int | None = None) -> str:
    """The same for the same JSON, in letters that names and labels may have.

    Nine letters. With `collisions` another hash for the same content, after names that are taken.
    """
    encoded = msgspec.json.encode(without_nulls(content), order="deterministic")
    if collisions is not None:
        encoded += b"#%d" % collisions
    number = zlib.crc32(encoded) << 12 | zlib.adler32(encoded) & 0xFFF
    letters = []
    for _ in range(9):
        number, rest = divmod(number, len(SAFE_LETTERS))
        letters.append(SAFE_LETTERS[rest])
    return "".join(letters)
