"""Memoized parsers for short strings: expressions parse the same ones repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar

from allot.cel.errors import EvalError

_TEXTS: Final = 1_024
_LONGEST: Final = 128

T = TypeVar("T")


def memoized(parse: Callable[[str], T]) -> Callable[[str], T]:
    """`parse` with a bounded cache of results, including errors, for short strings."""

    @lru_cache(maxsize=_TEXTS)
    def outcome(text: str) -> T | EvalError:
        try:
            return parse(text)
        except EvalError as error:
            return EvalError(error.message)

    def parsed(text: str) -> T:
        if len(text) > _LONGEST:
            return parse(text)
        found = outcome(text)
        if isinstance(found, EvalError):
            raise EvalError(found.message)
        return found

    return parsed
