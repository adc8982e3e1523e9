"""Correlation: the old value that belongs to a new one, for transition rules and ratcheting.

Fields and map values belong together by name, items of a list of type map by their keys. Items of other lists have
no old value.
"""

from __future__ import annotations

from typing import Any, Final

from allot.validation.structural.schemas import Schema

NO_OLD: Final = object()
"""The old value of what is new or ambiguous."""


class OutOfStepsError(Exception):
    """A validation took too many steps."""


class StepBudget:
    """How many parts of schemas a validation may still apply."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OutOfStepsError


class Correlation:
    """A new value, and the old value in its place. Comparisons are made once."""

    __slots__ = ("_equal", "_items", "budget", "new", "old", "schema")

    def __init__(
        self, new: Any, old: Any, schema: Schema, budget: StepBudget | None = None
    ) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self.budget = budget
        """Shared with all values below."""
        self._equal: bool | None = None
        self._items: dict[tuple[Any, ...], Any] | None = None

    @property
    def has_old(self) -> bool:
        return self.old is not NO_OLD

    @property
    def is_unchanged(self) -> bool:
        if self._equal is None:
            self._equal = self.has_old and same(self.new, self.old)
        return self._equal

    def field(self, name: str, child: Schema) -> Correlation:
        """The value of a field or of a map's key."""
        old = self.old.get(name, NO_OLD) if isinstance(self.old, dict) else NO_OLD
        return Correlation(self.new[name], old, child, self.budget)

    def item(self, index: int, child: Schema) -> Correlation:
        new = self.new[index]
        old = NO_OLD
        if self.schema.list_type == "map" and isinstance(self.old, list):
            key = _key(new, self.schema)
            if key is not None:
                old = self._old_items.get(key, NO_OLD)
        return Correlation(new, old, child, self.budget)

    @property
    def _old_items(self) -> dict[tuple[Any, ...], Any]:
        if self._items is None:
            self._items = {}
            for item in self.old:
                key = _key(item, self.schema)
                if key is not None:
                    self._items[key] = item
        return self._items


def _key(item: Any, schema: Schema) -> tuple[Any, ...] | None:
    if not isinstance(item, dict):
        return None
    key = tuple(item.get(name) for name in schema.list_map_keys)
    return None if any(isinstance(part, dict | list) for part in key) else key


def same(new: Any, old: Any) -> bool:
    """Whether two JSON values are equal; true and 1 are not."""
    if isinstance(new, dict):
        if not isinstance(old, dict) or new.keys() != old.keys():
            return False
        return all(same(value, old[name]) for name, value in new.items())
    if isinstance(new, list):
        if not isinstance(old, list) or len(new) != len(old):
            return False
        return all(map(same, new, old))
    if isinstance(new, bool) or isinstance(old, bool):
        return new is old
    return bool(new == old) and (new is None) == (old is None)
