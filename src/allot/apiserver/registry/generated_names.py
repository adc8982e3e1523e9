"""Generates the ends of names for `generateName`."""

from __future__ import annotations

import random
from typing import Final

from allot.api.generated_names import SUFFIX_CHARACTERS

_PAIRS: Final = tuple(one + two for one in SUFFIX_CHARACTERS for two in SUFFIX_CHARACTERS)
_PAIR_COUNT: Final = len(_PAIRS)
_SUFFIXES: Final = len(SUFFIX_CHARACTERS) ** 5


def new_name_suffix() -> str:
    """Five random characters, without vowels, as in Kubernetes."""
    number = int(random.random() * _SUFFIXES)  # noqa: S311 - not a secret
    return (
        _PAIRS[number % _PAIR_COUNT]
        + _PAIRS[number // _PAIR_COUNT % _PAIR_COUNT]
        + SUFFIX_CHARACTERS[number // _PAIR_COUNT**2]
    )
