"""Output for people. Control characters in names, messages and attributes of objects are shown, not sent to the terminal.

Everything that is not a document (`-o json`, `-o yaml`) is printed by a `PrintableConsole`, or by `echo_text` of `echo`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Span, Text

from allot.api.printable_text import printable


class PrintableConsole(Console):
    """A console that shows escapes such as `\\x1b` for characters without a glyph, also inside tables."""

    def __init__(
        self, *, width: int | None = None, soft_wrap: bool = False, stderr: bool = False
    ) -> None:
        super().__init__(
            highlight=False, emoji=False, width=width, soft_wrap=soft_wrap, stderr=stderr
        )

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        shown = printable_text(renderable) if isinstance(renderable, Text) else renderable
        return super().render(shown, options)

    def render_str(self, text: str, **options: Any) -> Text:
        return printable_text(super().render_str(text, **options))

    def lines(self, renderable: RenderableType, *, soft_wrap: bool = False) -> Iterator[str]:
        """What would be printed, without trailing spaces."""
        with self.capture() as capture:
            self.print(renderable, soft_wrap=soft_wrap or None)
        yield from (line.rstrip() for line in capture.get().split("\n")[:-1])


def printable_text(text: Text, *, is_line: bool = False) -> Text:
    """The text with its styles, as `printable` shows it. Line breaks are kept unless it `is_line`."""
    plain = text.plain
    if plain.isprintable() or (not is_line and plain.replace("\n", "").isprintable()):
        return text
    pieces = [each if each == "\n" and not is_line else printable(each) for each in plain]
    offsets = [0]
    for piece in pieces:
        offsets.append(offsets[-1] + len(piece))
    last = len(pieces)
    shown = text.blank_copy("".join(pieces))
    shown.spans = [
        Span(offsets[min(start, last)], offsets[min(end, last)], style)
        for start, end, style in text.spans
    ]
    return shown
