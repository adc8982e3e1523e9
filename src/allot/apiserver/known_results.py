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
