"""The floor plan: where each device of each node is drawn.

A node has a line, or several if its devices do not fit; in a wide terminal several nodes share a line:

    node-1   3/8  █ █ █ █ ▃ · · ·   node-2   8/8  · · · · · · · ·
    node-3   0/4  T T █ █
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len

from allot.api.printable_text import printable
from allot.terminal.device_index import DevicesOfNode

GAP: Final = 3
"""Between nodes in one line."""
MIN_LABEL: Final = 8
MAX_LABEL: Final = 28


class Piece(NamedTuple):
    """Devices of one group in one line."""

    x: int
    group: int
    first: int
    """The first device of the group in this line."""
    offsets: Sequence[int]
    """The column of each device, from `x` on."""

    @property
    def last(self) -> int:
        return self.first + len(self.offsets) - 1


class DevicePosition(NamedTuple):
    """A device: the number of its group, and its number in the group."""

    group: int
    device: int


class FloorPlan:
    """Lines of pieces for a width."""

    def __init__(self, groups: Sequence[DevicesOfNode], width: int) -> None:
        self.groups = groups
        self.width = width
        longest = max((cell_len(printable(each.label[:MAX_LABEL])) for each in groups), default=0)
        self.label_width = max(MIN_LABEL, min(longest, MAX_LABEL, max(width // 3, MIN_LABEL)))
        digits = len(str(max((each.size for each in groups), default=0)))
        self.count_width = 2 * digits + 1
        self.prefix = self.label_width + 1 + self.count_width + 2
        room = max(1, width - self.prefix)
        widest = max((_extent(each, 2) for each in groups), default=0)
        self.cell_width = 2 if widest <= room else 1
        widest = max((_extent(each, self.cell_width) for each in groups), default=0)
        self.block_width = self.prefix + min(widest, room)
        self.columns = max(1, (width + GAP) // (self.block_width + GAP))
        self.lines: list[list[Piece]] = []
        if self.columns > 1:
            self._arrange_in_columns()
        else:
            self._arrange_below(room)
        self._first_line: dict[int, int] = {}
        for y, line in enumerate(self.lines):
            for piece in line:
                self._first_line.setdefault(piece.group, y)

    def _arrange_in_columns(self) -> None:
        step = self.block_width + GAP
        for number, group in enumerate(self.groups):
            if not number % self.columns:
                self.lines.append([])
            offsets = _offsets(group, self.cell_width)
            self.lines[-1].append(Piece(number % self.columns * step, number, 0, offsets))

    def _arrange_below(self, room: int) -> None:
        for number, group in enumerate(self.groups):
            offsets = _offsets(group, self.cell_width)
            first = 0
            while first < len(offsets):
                start = offsets[first]
                end = bisect_left(offsets, start + room)
                taken = [each - start for each in offsets[first:end]]
                self.lines.append([Piece(0, number, first, taken)])
                first = end

    # --- finding places ---

    def line_of(self, place: DevicePosition) -> int:
        y = self._first_line[place.group]
        while y + 1 < len(self.lines):
            piece = self._piece(y, place.group)
            if piece is None or place.device <= piece.last:
                break
            y += 1
        return y

    def column_of(self, place: DevicePosition) -> int:
        piece = self._piece(self.line_of(place), place.group)
        assert piece is not None
        return piece.x + self.prefix + piece.offsets[place.device - piece.first]

    def _piece(self, y: int, group: int) -> Piece | None:
        return next((each for each in self.lines[y] if each.group == group), None)

    def nearest(self, x: int, y: int) -> DevicePosition:
        """The device in line `y` that is nearest to column `x`."""
        line = self.lines[max(0, min(y, len(self.lines) - 1))]
        found = min(
            (
                (abs(piece.x + self.prefix + offset - x), piece.group, piece.first + number)
                for piece in line
                for number, offset in enumerate(piece.offsets)
            ),
        )
        return DevicePosition(*found[1:])

    def beside(self, place: DevicePosition, step: int) -> DevicePosition:
        """The next or previous device, also across groups."""
        group, device = place.group, place.device + step
        if device < 0:
            if group == 0:
                return place
            return DevicePosition(group - 1, self.groups[group - 1].size - 1)
        if device >= self.groups[group].size:
            return DevicePosition(group + 1, 0) if group + 1 < len(self.groups) else place
        return DevicePosition(group, device)


def _offsets(group: DevicesOfNode, cell_width: int) -> list[int]:
    """The column of each device; pools are one column apart."""
    found: list[int] = []
    start = 0
    for pool in group.pools:
        found += range(start, start + len(pool) * cell_width, cell_width)
        start += len(pool) * cell_width + 1
    return found


def _extent(group: DevicesOfNode, cell_width: int) -> int:
    return group.size * cell_width + len(group.pools) - 1
