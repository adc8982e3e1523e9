"""Results of pure functions of JSON values: objects made from one template have equal parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

T = TypeVar("T")

MAX_KNOWN: Final = 256
MAX_BYTES: Final = 4096
"""Results for larger values are always computed."""

_encode: Final = msgspec.json.Encoder().encode


class LastResult(Generic[T]):
    """Remembers the result for the very same value: defaults give all pods of one template the same spec.

    Those that take it over share its result, too. It belongs to one thread.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._last: tuple[Any, T] | None = None

    def of(self, value: Any) -> T:
        """What `compute` makes of the value, which is the same every time."""
        last = self._last
        if last is not None and last[0] is value:
            return last[1]
        result = self._compute(value)
        self._last = (value, result)
        return result


class KnownResults(Generic[T]):
    """Remembers results by the text of a value. When there are too many, all are forgotten."""

    def __init__(self) -> None:
        self._known: dict[bytes, T] = {}

    def get(self, value: Any, compute: Callable[[], T]) -> T:
        """What `compute` makes of the value, which is the same every time."""
        text = _encode(value)
        found = self._known.get(text)
        if found is None:
            found = compute()
            if len(text) <= MAX_BYTES:
                if len(self._known) >= MAX_KNOWN:
                    self._known.clear()
                self._known[text] = found
        return found
