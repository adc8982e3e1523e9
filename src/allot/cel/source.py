"""The source of an expression, and the lines and columns of offsets."""

from __future__ import annotations

from bisect import bisect_right


class Source:
    """The source of an expression. Offsets and columns count code points."""

    __slots__ = ("_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(i + 1 for i, character in enumerate(text) if character == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Line (from 1) and column (from 0) of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]

    def line(self, number: int) -> str | None:
        """The content of a line; None if it does not exist."""
        if not 1 <= number <= len(self._starts):
            return None
        start = self._starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]
