"""A widget for lines of text: wrapped to its width or cut, scrolled, without any interpretation of their content."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from rich.console import Console
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from allot.api.printable_text import printable
from allot.scheduler.explain.explanation_text import Line, wrapped
from allot.terminal.text_fitting import fit_text

MAX_LINE: Final = 20_000
"""Characters of a line that are shown."""


class TextView(ScrollView, can_focus=False):
    """Lines of text."""

    def __init__(
        self,
        *,
        wraps: bool = False,
        ellipsis: str = "…",
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        super().__init__(id=id)
        self._wraps = wraps
        self._ellipsis = ellipsis
        self._lines: tuple[Line, ...] = ()
        self._shown: list[Text] = []
        self._renderer = Console(width=80, highlight=False, emoji=False, markup=False)

    def show(self, lines: Iterable[Line | Text]) -> None:
        found = tuple(
            _printable_line(line if isinstance(line, Line) else Line(0, line)) for line in lines
        )
        if found != self._lines:
            self._lines = found
            self._arrange()

    def _arrange(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        if self._wraps:
            self._shown = [
                text for line in self._lines for text in wrapped(line, self._renderer, width)
            ]
            self.virtual_size = Size(width, len(self._shown))
        else:
            self._shown = [line.text for line in self._lines]
        self.refresh()

    @property
    def plain_text(self) -> str:
        """What is shown, without styles."""
        return "\n".join(text.plain for text in self._shown)

    def on_resize(self) -> None:
        self._arrange()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        y += self.scroll_offset.y
        if y >= len(self._shown):
            return Strip.blank(width)
        text = self._shown[y].copy()
        text.end = ""
        text.no_wrap = True
        if not self._wraps:
            fit_text(text, width, self._ellipsis)
        return Strip(list(text.render(self._renderer))).adjust_cell_length(width)


class ScrolledText(TextView, can_focus=True):
    """Text that is scrolled with keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", show=False),
        Binding("down,j", "scroll_down", show=False),
        Binding("pageup,ctrl+b", "page_up", show=False),
        Binding("pagedown,ctrl+f,space", "page_down", show=False),
        Binding("home,g", "scroll_home", show=False),
        Binding("end,G", "scroll_end", show=False),
    ]


def _printable_line(line: Line) -> Line:
    plain = line.text.plain
    if len(plain) > MAX_LINE:
        plain = f"{plain[:MAX_LINE]}…"
        return Line(line.indent, Text(printable(plain), line.text.style))
    if plain.isprintable():
        return line
    return Line(line.indent, Text(printable(plain), line.text.style))
