"""Generated names: pods with a random suffix, revisions with a hash of their content.

The alphabet is Kubernetes': without vowels and ambiguous characters.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from allot.api.generated_names import SUFFIX_CHARACTERS, SUFFIX_LENGTH, suffix_of
from allot.controllers.workloads.accessors import without_nulls

MAX_NAME_LENGTH: Final = 63
HASH_LENGTH: Final = 9
MAX_BASE_LENGTH: Final = MAX_NAME_LENGTH - SUFFIX_LENGTH

NewSuffix = Callable[[], str]


def random_suffix() -> str:
    return "".join(random.choices(SUFFIX_CHARACTERS, k=SUFFIX_LENGTH))  # noqa: S311 - not a secret


def generated_name(base: str, new_suffix: NewSuffix = random_suffix) -> str:
    """A name as the API server generates it from generateName. A long base is truncated."""
    return base[:MAX_BASE_LENGTH] + new_suffix()


def content_hash(content: Any, collisions: int | None = None) -> str:
    """A hash of JSON in nine characters that are valid in names and labels.

    `collisions` gives another hash for the same content, after a name collision.
    """
    encoded = msgspec.json.encode(without_nulls(content), order="deterministic")
    if collisions is not None:
        encoded += b"#%d" % collisions
    number = zlib.crc32(encoded) << 12 | zlib.adler32(encoded) & 0xFFF
    return suffix_of(number, HASH_LENGTH)
