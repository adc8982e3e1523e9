"""A table of which only visible rows are rendered, so that 100,000 rows are as fast as ten."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from allot.terminal.text_fitting import fit, fit_name, fit_right

T = TypeVar("T")

GAP: Final = 2
SAMPLED_ROWS: Final = 200
"""Widths of columns are those of so many rows around the visible ones."""
_HEADING: Final = Style(bold=True, dim=True)
_CURSOR: Final = Style(reverse=True)
_PLAIN: Final = Style()


class TableColumn(NamedTuple, Generic[T]):
    """A heading, the text of a row, and how it shares the width."""

    heading: str
    text: Callable[[T], str]
    style: Callable[[T], Style] | None = None
    is_number: bool = False
    is_name: bool = False
    """Whether it is cut in its middle rather than at its end."""
    min_width: int = 4
    takes_rest: bool = False
    """Whether it gets the width that is left over; one column of a table."""
    rank: int = 0
    """Columns of a higher rank are left out first where there is too little room."""


class RowTable(ScrollView, Generic[T], can_focus=True):
    """Rows with a cursor. The row under the cursor stays under it while it exists."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("pagedown,ctrl+f", "page(1)", show=False),
        Binding("home,g", "move(-1000000000)", show=False),
        Binding("end,G", "move(1000000000)", show=False),
        Binding("enter", "open", show=False),
    ]

    class Selected(Message):
        """The cursor is on another row."""

        def __init__(self, table: RowTable[Any]) -> None:
            super().__init__()
            self.table = table

    class Opened(Message):
        """Enter, or a click on the selected row."""

        def __init__(self, table: RowTable[Any]) -> None:
            super().__init__()
            self.table = table

    def __init__(
        self,
        columns: Sequence[TableColumn[T]],
        key: Callable[[T], Hashable],
        *,
        empty: str,
        ellipsis: str = "…",
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        super().__init__(id=id)
        self._columns = tuple(columns)
        self._key = key
        self._empty = empty
        self._ellipsis = ellipsis
        self._rows: Sequence[T] = ()
        self._cursor = 0
        self._widths: list[tuple[TableColumn[T], int]] = []

    # --- data ---

    def show(self, rows: Sequence[T], empty: str | None = None) -> None:
        """Draw these rows; without any, the text `empty`."""
        selected = self._key(self.row) if self.row is not None else None
        self._rows = rows
        if empty is not None:
            self._empty = empty
        if rows and selected is not None and not self._is_at(self._cursor, selected):
            keys = map(self._key, rows)
            found = next((n for n, key in enumerate(keys) if key == selected), None)
            self._cursor = self._cursor if found is None else found
        self._cursor = max(0, min(self._cursor, len(rows) - 1))
        self.virtual_size = Size(0, len(rows) + 1)
        self._measure()
        self._scroll_into_view()
        self.refresh()
        self.post_message(self.Selected(self))

    def _is_at(self, position: int, key: Hashable) -> bool:
        return position < len(self._rows) and self._key(self._rows[position]) == key

    @property
    def row(self) -> T | None:
        """The selected row."""
        return self._rows[self._cursor] if self._cursor < len(self._rows) else None

    # --- widths ---

    def _measure(self) -> None:
        top = self.scroll_offset.y
        sample = self._rows[max(0, top - SAMPLED_ROWS // 2) : top + SAMPLED_ROWS]
        room = self.scrollable_content_region.width
        natural = [
            max((cell_len(column.text(row)[:room]) for row in sample), default=0)
            for column in self._columns
        ]
        # A column without any value is left out.
        shown = [
            (column, max(width, len(column.heading)))
            for column, width in zip(self._columns, natural, strict=True)
            if width or not sample
        ]
        while len(shown) > 2 and _least(shown) > room:
            shown.remove(max(reversed(shown), key=lambda each: each[0].rank))
        self._widths = _shared(shown, room)

    def on_resize(self) -> None:
        self._measure()
        self._scroll_into_view()

    # --- cursor ---

    def action_move(self, step: int) -> None:
        if self._rows:
            self._cursor = max(0, min(self._cursor + step, len(self._rows) - 1))
            self._scroll_into_view()
            self._measure()
            self.refresh()
            self.post_message(self.Selected(self))

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.scrollable_content_region.height - 2))

    def action_open(self) -> None:
        if self._rows:
            self.post_message(self.Opened(self))

    def select(self, matches: Callable[[T], bool]) -> bool:
        """Move the cursor to the first such row; whether there is one."""
        for position, row in enumerate(self._rows):
            if matches(row):
                self.action_move(position - self._cursor)
                return True
        return False

    def _scroll_into_view(self) -> None:
        """The heading stays in the first line, so that rows begin one line below."""
        height = self.scrollable_content_region.height - 1
        top = self.scroll_offset.y
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False, force=True)
        elif height > 0 and self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1, animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None or at.y < 1 or not self._rows:
            return
        position = at.y - 1 + self.scroll_offset.y
        if position == self._cursor:
            self.action_open()
        elif position < len(self._rows):
            self.action_move(position - self._cursor)

    # --- drawing ---

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if not self._rows:
            text = f" {self._empty}" if y == 1 else ""
            return Strip([Segment(fit(text, width, self._ellipsis), _HEADING)])
        if y == 0:
            segments = [
                Segment(self._cell(column, column.heading, size) + " " * GAP, _HEADING)
                for column, size in self._widths
            ]
            return Strip(segments).adjust_cell_length(width)
        position = y - 1 + self.scroll_offset.y
        if position >= len(self._rows):
            return Strip.blank(width)
        row = self._rows[position]
        segments = []
        for column, size in self._widths:
            style = column.style(row) if column.style is not None else _PLAIN
            segments.append(Segment(self._cell(column, column.text(row), size), style))
            segments.append(Segment(" " * GAP))
        strip = Strip(segments).adjust_cell_length(width)
        if position == self._cursor:
            style = _CURSOR if self.has_focus else Style(underline=True)
            strip = strip.apply_style(style)
        return strip

    def _cell(self, column: TableColumn[T], text: str, width: int) -> str:
        fitted = fit_right if column.is_number else fit_name if column.is_name else fit
        return fitted(text, width, self._ellipsis)


def _least(columns: Sequence[tuple[TableColumn[Any], int]]) -> int:
    return sum(min(width, column.min_width) + GAP for column, width in columns) - GAP


def _shared(
    columns: Sequence[tuple[TableColumn[Any], int]], room: int
) -> list[tuple[TableColumn[Any], int]]:
    """The columns in the width that there is: one takes what is left over, and is cut first; then the widest."""
    widths = [width for _, width in columns]
    least = [min(width, column.min_width) for column, width in columns]
    total = room - GAP * (len(columns) - 1)
    for number, (column, _) in enumerate(columns):
        if column.takes_rest:
            excess = max(0, sum(widths) - total)
            widths[number] = max(least[number], widths[number] - excess)
    while sum(widths) > total:
        candidates = [number for number in range(len(widths)) if widths[number] > least[number]]
        if not candidates:
            break
        widths[max(candidates, key=widths.__getitem__)] -= 1
    rest = total - sum(widths)
    return [
        (column, width + (rest if column.takes_rest and rest > 0 else 0))
        for (column, _), width in zip(columns, widths, strict=True)
    ]
