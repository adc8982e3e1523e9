"""What searches have found out about the devices of one slice, for the searches that follow.

    expression or attribute name ──▶ one entry per device of the slice

A slice never changes: an update brings another one, with a cache of its own, so nothing here can be
out of date. Errors are not kept: the search that meets one again evaluates again. Memory is bounded
per slice: `MAX_ROWS` rows of each kind, of eight bytes per device; values that are equal are shared.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import Final, Generic, TypeVar

from allot.allocation.attributes import AttributeSet

MAX_ROWS: Final = 32
"""How many selectors, derived attributes and attribute names are remembered, each."""

Known = TypeVar("Known")


class Rows(dict[str, list[Known | None]], Generic[Known]):
    """By expression or name: what is known of each device, None where nothing is yet."""

    __slots__ = ("_devices",)

    def __init__(self, devices: int) -> None:
        self._devices = devices

    def remember(self, key: str, device: int, known: Known) -> None:
        row = self.get(key)
        if row is None:
            if len(self) >= MAX_ROWS:
                # The oldest half: callers that use more than fit still find some.
                for old in list(islice(self, MAX_ROWS // 2)):
                    del self[old]
            # Interned: every claim brings an expression of its own, all slices share one.
            row = self[sys.intern(key)] = [None] * self._devices
        row[device] = known


class SliceCache:
    """The answers of selectors, the values of derived and of published attributes."""

    __slots__ = ("attributes", "derived", "selected")

    def __init__(self, devices: int) -> None:
        self.selected: Rows[bool] = Rows(devices)
        self.derived: Rows[AttributeSet] = Rows(devices)
        self.attributes: Rows[AttributeSet] = Rows(devices)
