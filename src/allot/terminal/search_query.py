"""What `/` searches for: words, all of which must occur; `!word` must not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class SearchQuery(NamedTuple):
    """Words in lower case."""

    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> SearchQuery:
        words = text.lower().split()
        return cls(
            tuple(word for word in words if not word.startswith("!")),
            tuple(word[1:] for word in words if word.startswith("!") and len(word) > 1),
        )

    def __bool__(self) -> bool:
        return bool(self.wanted or self.unwanted)

    def matches(self, texts: Iterable[str]) -> bool:
        if not self:
            return True
        text = "\n".join(texts).lower()
        return all(word in text for word in self.wanted) and not any(
            word in text for word in self.unwanted
        )
