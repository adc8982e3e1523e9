"""Text in so many columns of a terminal. All text of objects goes through here before it is drawn."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from allot.api.printable_text import printable

_MAX_CHARACTERS: Final = 4
"""Characters that are looked at for a column: some have no width."""


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """The text in exactly `width` columns; what does not fit is cut off at the end."""
    text = _shortened(text, width)
    if cell_len(text) > width:
        return set_cell_size(text, max(0, width - 1)) + ellipsis if width > 0 else ""
    return set_cell_size(text, width)


def fit_name(name: str, width: int, ellipsis: str = "…") -> str:
    """The name in exactly `width` columns; cut in its middle, because names differ at the end."""
    if len(name) > 2 * _MAX_CHARACTERS * max(width, 1):
        name = name[: _MAX_CHARACTERS * width] + name[-_MAX_CHARACTERS * width :]
    name = printable(name)
    if cell_len(name) <= width or width < 5:
        return fit(name, width, ellipsis)
    tail = (width - 1) * 2 // 3
    end = name[-tail:]
    while cell_len(end) > tail:
        end = end[1:]
    return set_cell_size(name, width - 1 - cell_len(end)) + ellipsis + end


def fit_right(text: str, width: int, ellipsis: str = "…") -> str:
    """The text in exactly `width` columns, at the right."""
    text = _shortened(text, width)
    missing = width - cell_len(text)
    return " " * missing + text if missing >= 0 else fit(text, width, ellipsis)


def fit_text(text: Text, width: int, ellipsis: str = "…") -> None:
    """Cut styled text to at most `width` columns, in place."""
    if text.cell_len > width:
        text.truncate(max(0, width - 1), overflow="crop")
        text.append(ellipsis)


def _shortened(text: str, width: int) -> str:
    return printable(text[: _MAX_CHARACTERS * (max(width, 0) + 1)])
