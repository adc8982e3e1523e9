"""A cache of expression results and attribute values for the devices of one slice, shared by searches.

    expression or attribute name ──▶ one entry per device of the slice

A slice is immutable: an update is a new slice with a new cache, so entries are never outdated. Errors are
not cached. Memory is bounded per slice: `MAX_ROWS` rows of each kind, of eight bytes per device; equal
values are shared.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import Final, Generic, TypeVar

from allot.allocation.attributes import AttributeSet

MAX_ROWS: Final = 32
"""How many selectors, derived attributes and attribute names are cached, each."""

Known = TypeVar("Known")


class Rows(dict[str, list[Known | None]], Generic[Known]):
    """By expression or name: the entry of each device, None where it is not computed yet."""

    __slots__ = ("_devices",)

    def __init__(self, devices: int) -> None:
        self._devices = devices

    def remember(self, key: str, device: int, known: Known) -> None:
        row = self.get(key)
        if row is None:
            if len(self) >= MAX_ROWS:
                # Drop the oldest half: callers that use more rows than fit still find some.
                for old in list(islice(self, MAX_ROWS // 2)):
                    del self[old]
            # Interned: each claim has its own copy of an expression; slices share one.
            row = self[sys.intern(key)] = [None] * self._devices
        row[device] = known


class SliceCache:
    """Results of selectors, values of derived and of published attributes."""

    __slots__ = ("attributes", "derived", "selected")

    def __init__(self, devices: int) -> None:
        self.selected: Rows[bool] = Rows(devices)
        self.derived: Rows[AttributeSet] = Rows(devices)
        self.attributes: Rows[AttributeSet] = Rows(devices)
