"""The widget of the floor plan. Only visible lines are rendered, so that its size does not matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from allot.api.identities import DeviceId
from allot.questions.devices import DeviceRow
from allot.terminal.device_index import DevicesOfNode
from allot.terminal.floor_plan import DevicePosition, FloorPlan, Piece
from allot.terminal.state_symbols import (
    BLOCKS,
    STYLES,
    NamespaceMarks,
    SymbolSet,
    level_symbol,
    symbol_of,
)
from allot.terminal.text_fitting import fit_name, fit_right

_CURSOR: Final = Style(reverse=True, bold=True)
_LABEL: Final = Style()
_SELECTED_LABEL: Final = Style(bold=True)
_COUNTS: Final = Style(dim=True)
_EMPTY: Final = FloorPlan((), 80)


class FloorPlanView(ScrollView, can_focus=True):
    """Nodes and their devices; one device is selected."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "beside(-1)", show=False),
        Binding("right,l", "beside(1)", show=False),
        Binding("up,k", "line(-1)", show=False),
        Binding("down,j", "line(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("pagedown,ctrl+f", "page(1)", show=False),
        Binding("home,g", "line(-1000000)", show=False),
        Binding("end,G", "line(1000000)", show=False),
        Binding("enter", "open", show=False),
    ]

    class Selected(Message):
        """Another device is selected, or none."""

    class Opened(Message):
        """Enter, or a click on the selected device."""

    def __init__(self, symbols: SymbolSet = BLOCKS, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.symbols = symbols
        self.marks = NamespaceMarks()
        self.by_namespace = False
        """Whether held devices show their namespace instead of their state."""
        self.is_overview = False
        """Whether a node is one cell."""
        self._groups: tuple[DevicesOfNode, ...] = ()
        self._rows: dict[int, Sequence[DeviceRow]] = {}
        self._plan = _EMPTY
        self._structure: object = None
        self._place = DevicePosition(0, 0)
        self._selected: DeviceId | None = None

    # --- data ---

    def show(self, groups: tuple[DevicesOfNode, ...]) -> None:
        """Draw these devices. The selected one stays selected while it exists."""
        self._groups = groups
        self._arrange()

    def toggle_namespaces(self) -> None:
        self.by_namespace = not self.by_namespace
        for group in self._groups:
            for row in group.rows:
                self.marks.of(row)
        self.refresh()

    def toggle_overview(self) -> None:
        self.is_overview = not self.is_overview
        self._structure = None
        self._arrange()

    def _arrange(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        structure = (
            width,
            self.is_overview,
            [(group.label, tuple(map(len, group.pools))) for group in self._groups],
        )
        if structure != self._structure:
            self._structure = structure
            self._plan = self._overview(width) if self.is_overview else self._devices(width)
            self.virtual_size = Size(width, len(self._plan.lines))
        else:
            self._plan.groups = self._plan_groups()
        self._rows = {}
        self._find_selected()
        self.refresh()

    def _plan_groups(self) -> tuple[DevicesOfNode, ...]:
        if not self.is_overview:
            return self._groups
        return (DevicesOfNode("", f"{len(self._groups)} nodes", (tuple(_firsts(self._groups)),)),)

    def _devices(self, width: int) -> FloorPlan:
        return FloorPlan(self._groups, width)

    def _overview(self, width: int) -> FloorPlan:
        return FloorPlan(self._plan_groups() if self._groups else (), width)

    def _rows_of(self, group: int) -> Sequence[DeviceRow]:
        found = self._rows.get(group)
        if found is None:
            found = self._rows[group] = tuple(self._plan.groups[group].rows)
        return found

    # --- selection ---

    @property
    def row(self) -> DeviceRow | None:
        """The selected device; in the overview the first of the node."""
        if not self._plan.lines:
            return None
        return self._rows_of(self._place.group)[self._place.device]

    @property
    def node(self) -> DevicesOfNode | None:
        """The node of the selected device."""
        if not self._plan.lines:
            return None
        number = self._place.device if self.is_overview else self._place.group
        return self._groups[number]

    def _find_selected(self) -> None:
        """Select the same device as before; if it is gone, the one that took its place."""
        if not self._plan.lines:
            self._place, self._selected = DevicePosition(0, 0), None
            self.post_message(self.Selected())
            return
        place = self._clamped(self._place)
        row = self._rows_of(place.group)[place.device]
        if self._selected is not None and row.id != self._selected:
            place = self._search(self._selected) or place
        self._place = place
        self._select(place)

    def _clamped(self, place: DevicePosition) -> DevicePosition:
        group = min(place.group, len(self._plan.groups) - 1)
        return DevicePosition(group, min(place.device, self._plan.groups[group].size - 1))

    def _search(self, device: DeviceId) -> DevicePosition | None:
        for group in range(len(self._plan.groups)):
            for number, row in enumerate(self._plan.groups[group].rows):
                if row.id == device:
                    return DevicePosition(group, number)
        return None

    def select_device(self, device: DeviceId) -> bool:
        """Select a device; whether it is shown."""
        self.is_overview = False
        self._arrange()
        place = self._search(device) if self._plan.lines else None
        if place is None:
            return False
        self._select(place)
        return True

    def _select(self, place: DevicePosition) -> None:
        self._place = place
        row = self._rows_of(place.group)[place.device]
        self._selected = row.id
        self._scroll_into_view()
        self.refresh()
        self.post_message(self.Selected())

    def _scroll_into_view(self) -> None:
        y = self._plan.line_of(self._place)
        region = Region(0, y, 1, 1)
        self.scroll_to_region(region, animate=False, force=True)

    # --- keys and mouse ---

    def action_beside(self, step: int) -> None:
        if self._plan.lines:
            self._select(self._plan.beside(self._place, step))

    def action_line(self, step: int) -> None:
        if self._plan.lines:
            x, y = self._plan.column_of(self._place), self._plan.line_of(self._place)
            self._select(self._plan.nearest(x, y + step))

    def action_page(self, pages: int) -> None:
        self.action_line(pages * max(1, self.scrollable_content_region.height - 1))

    def action_open(self) -> None:
        if not self._plan.lines:
            return
        if self.is_overview:
            self.toggle_overview()
            return
        self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        if self._plan.lines:
            before = self._place
            at = event.get_content_offset(self)
            if at is not None:
                self._select(self._plan.nearest(at.x, at.y + self.scroll_offset.y))
                if self._place == before:
                    self.action_open()

    def on_resize(self) -> None:
        self._arrange()

    # --- drawing ---

    def render_line(self, y: int) -> Strip:
        plan, width = self._plan, self.scrollable_content_region.width
        y += self.scroll_offset.y
        if y >= len(plan.lines):
            return Strip.blank(width)
        segments: list[Segment] = []
        x = 0
        for piece in plan.lines[y]:
            if piece.x > x:
                segments.append(Segment(" " * (piece.x - x)))
            x = piece.x + self._draw(piece, segments)
        return Strip(segments).adjust_cell_length(width)

    def _draw(self, piece: Piece, segments: list[Segment]) -> int:
        """Add the segments of a piece; its width."""
        plan = self._plan
        rows = self._rows_of(piece.group)
        is_selected = piece.group == self._place.group
        segments += self._prefix(piece, is_selected=is_selected)
        x = 0
        for number, offset in enumerate(piece.offsets, piece.first):
            if offset > x:
                segments.append(Segment(" " * (offset - x)))
            symbol, style = self._cell(number, rows[number])
            if is_selected and number == self._place.device:
                style = style + _CURSOR if self.has_focus else style + Style(underline=True)
            segments.append(Segment(symbol, style))
            x = offset + 1
        return plan.prefix + x

    def _prefix(self, piece: Piece, *, is_selected: bool) -> Iterator[Segment]:
        plan = self._plan
        if piece.first:
            yield Segment(" " * plan.prefix)
            return
        group = plan.groups[piece.group]
        label = fit_name(group.label, plan.label_width, self.symbols.ellipsis)
        yield Segment(label, _SELECTED_LABEL if is_selected else _LABEL)
        counts = "" if self.is_overview else f"{group.free}/{group.size}"
        yield Segment(" " + fit_right(counts, plan.count_width) + "  ", _COUNTS)

    def _cell(self, number: int, row: DeviceRow) -> tuple[str, Style]:
        if self.is_overview:
            node = self._groups[number]
            return level_symbol(node.held / node.size, self.symbols), STYLES[row.state]
        if self.by_namespace:
            mark = self.marks.of(row)
            if mark is not None:
                return mark
        return symbol_of(row, self.symbols), STYLES[row.state]


def _firsts(groups: Sequence[DevicesOfNode]) -> Iterator[DeviceRow]:
    return (group.pools[0][0] for group in groups)
