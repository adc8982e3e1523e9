"""Texts that a rule is known to accept: very many objects have the same few labels, owners' types and names of pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T", str, tuple[str, str])

MAX_ACCEPTED: Final = 4096


class Accepted(set[T]):
    """`text in accepted` takes no call. What is not in it may be accepted nonetheless: ask `accepts`.

    When there are too many, all are forgotten.
    """

    def __init__(self, rule: Callable[..., bool], max_length: int) -> None:
        """`rule` is asked with one text or with those of a pair; longer ones than `max_length` are not kept."""
        super().__init__()
        self._rule = rule
        self._max_length = max_length

    def accepts(self, *texts: str) -> bool:
        if not self._rule(*texts):
            return False
        if sum(map(len, texts)) <= self._max_length:
            if len(self) >= MAX_ACCEPTED:
                self.clear()
            accepted: Any = texts if len(texts) > 1 else texts[0]
            self.add(accepted)
        return True
