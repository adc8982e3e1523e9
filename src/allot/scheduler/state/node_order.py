"""The order in which nodes are tried: alternating between zones."""

from __future__ import annotations

from typing import Generic, TypeVar

Item = TypeVar("Item")


class ZoneOrder(Generic[Item]):
    """Names grouped by zone, in order of insertion."""

    def __init__(self) -> None:
        self._names_by_zone: dict[tuple[str, str], dict[str, Item]] = {}
        self._order: list[Item] | None = []

    def add(self, zone: tuple[str, str], name: str, item: Item) -> None:
        self._names_by_zone.setdefault(zone, {})[name] = item
        self._order = None

    def remove(self, zone: tuple[str, str], name: str) -> None:
        names = self._names_by_zone[zone]
        del names[name]
        if not names:
            del self._names_by_zone[zone]
        self._order = None

    def items(self) -> list[Item]:
        """One node of each zone, then the next of each zone, and so on. Do not modify it."""
        if self._order is None:
            self._order = self._interleaved()
        return self._order

    def _interleaved(self) -> list[Item]:
        rows = [list(names.values()) for names in self._names_by_zone.values()]
        if len(rows) == 1:
            return rows[0]
        longest = max(map(len, rows), default=0)
        return [row[turn] for turn in range(longest) for row in rows if turn < len(row)]
