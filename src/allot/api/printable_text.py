"""Text of unknown origin, made safe for terminals: control characters are shown, never obeyed.

Names, attributes and messages of objects may contain escape sequences, line breaks and characters that reorder text.
"""

from __future__ import annotations

from typing import Final

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """The text, with an escape such as `\\x1b` for every character that has no glyph of its own."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def printable_lines(text: str) -> str:
    """The same, with line breaks kept."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def _escaped(character: str) -> str:
    short = _SHORT.get(character)
    if short is not None:
        return short
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
