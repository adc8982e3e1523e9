"""What the floor plan and its figures were since history begins, in bounded memory.

The floor plan at an earlier moment is the present one with the changes since then undone, the newest first. When there
are too many changes, the oldest are forgotten, and history begins later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from allot.dashboard.figures import Figures
from allot.dashboard.floor_plan import Cell, FloorChange, PoolPlan

MAX_CHANGES: Final = 200_000
MAX_FIGURES: Final = 3_600


class DeviceChange(msgspec.Struct, frozen=True):
    """A device that came into a state."""

    at: float
    cell: Cell | None
    """None: the device was gone."""


class History(Protocol):
    """What was, for the page: kept in memory here, or read from a recording."""

    @property
    def begins_at(self) -> float:
        """Seconds since the epoch."""

    def figures(self) -> Sequence[Figures]:
        """Figures by time."""

    def floor_at(self, at: float) -> FloorChange:
        """The floor plan at a moment, as the difference to the present one."""

    def of_device(self, number: int) -> Sequence[DeviceChange]:
        """The changes of one device, the oldest first."""


class _Change(NamedTuple):
    at: float
    number: int
    before: Cell | None
    after: Cell | None


class _PoolChange(NamedTuple):
    at: float
    before: PoolPlan | None
    after: PoolPlan | None


class RecentHistory:
    """A `History` of the last changes, in memory."""

    def __init__(self, now: float, max_changes: int = MAX_CHANGES) -> None:
        self.begins_at = now
        self._figures: deque[Figures] = deque(maxlen=MAX_FIGURES)
        self._changes: deque[_Change | _PoolChange] = deque(maxlen=max_changes)
        self._cells: dict[int, Cell] = {}
        self._plans: dict[int, PoolPlan] = {}

    def begin(self, change: FloorChange) -> None:
        """Take what exists when history begins; in several steps, if it is much."""
        for plan in change.pools:
            self._remove(plan.number)
            self._put(plan)
        for number in change.gone:
            self._remove(number)
        self._cells.update(change.cells)

    def record(self, change: FloorChange, at: float) -> None:
        """Take a change."""
        for plan in change.pools:
            self._replace(plan.number, plan, at)
        for number in change.gone:
            self._replace(number, None, at)
        for number, cell in change.cells:
            self._keep(_Change(at, number, self._cells.get(number), cell))
            self._cells[number] = cell

    def record_figures(self, figures: Figures) -> None:
        self._figures.append(figures)

    def _replace(self, number: int, plan: PoolPlan | None, at: float) -> None:
        before = self._current(number)
        self._keep(_PoolChange(at, before, plan))
        self._remove(number)
        if plan is not None:
            self._put(plan)

    def _remove(self, number: int) -> None:
        plan = self._plans.pop(number, None)
        for place in plan.places if plan is not None else ():
            self._cells.pop(place.number, None)

    def _put(self, plan: PoolPlan) -> None:
        self._plans[plan.number] = plan
        self._cells.update((p.number, c) for p, c in zip(plan.places, plan.cells, strict=True))

    def _current(self, number: int) -> PoolPlan | None:
        """The pool with the present cells."""
        plan = self._plans.get(number)
        if plan is None:
            return None
        cells = tuple(self._cells[place.number] for place in plan.places)
        return msgspec.structs.replace(plan, cells=cells)

    def _keep(self, change: _Change | _PoolChange) -> None:
        if len(self._changes) == self._changes.maxlen:
            self.begins_at = self._changes[0].at
        self._changes.append(change)

    # --- reading ---

    def figures(self) -> Sequence[Figures]:
        return tuple(self._figures)

    def floor_at(self, at: float) -> FloorChange:
        cells: dict[int, Cell] = {}
        pools: dict[int, PoolPlan | None] = {}
        for change in reversed(self._changes):
            if change.at <= at:
                break
            if isinstance(change, _PoolChange):
                plan = change.before or change.after
                assert plan is not None
                pools[plan.number] = change.before
                for place in (change.after or plan).places:
                    cells.pop(place.number, None)
            elif change.before is not None:
                cells[change.number] = change.before
        then = tuple(_with_cells(plan, cells) for plan in pools.values() if plan is not None)
        gone = tuple(number for number, plan in pools.items() if plan is None)
        different = (
            (number, cell)
            for number, cell in cells.items()
            if number in self._cells and self._cells[number] != cell
        )
        return FloorChange(then, gone, tuple(different))

    def of_device(self, number: int) -> Sequence[DeviceChange]:
        found: list[DeviceChange] = []
        for change in self._changes:
            if isinstance(change, _Change):
                if change.number == number:
                    found.append(DeviceChange(change.at, change.after))
                continue
            before, after = (_cell_in(plan, number) for plan in (change.before, change.after))
            if before != after:
                found.append(DeviceChange(change.at, after))
        return found


def _with_cells(plan: PoolPlan, cells: dict[int, Cell]) -> PoolPlan:
    """The pool with these cells where its devices have one; they are taken out of `cells`."""
    pairs = zip(plan.places, plan.cells, strict=True)
    changed = tuple(cells.pop(place.number, cell) for place, cell in pairs)
    return msgspec.structs.replace(plan, cells=changed)


def _cell_in(plan: PoolPlan | None, number: int) -> Cell | None:
    if plan is None:
        return None
    pairs = zip(plan.places, plan.cells, strict=True)
    return next((cell for place, cell in pairs if place.number == number), None)
