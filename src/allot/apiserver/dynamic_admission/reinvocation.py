"""Reinvocation: if the object changes after a policy or webhook saw it, those that ask for it see it once more."""

from __future__ import annotations

from collections.abc import Hashable


class Reinvocation:
    """What was invoked for one request, and what has to be invoked again."""

    def __init__(self) -> None:
        self.is_second_round = False
        self.is_needed = False
        """Whether the object changed in the first round."""
        self._invoked: set[Hashable] = set()
        self._again: set[Hashable] = set()

    def should_invoke(self, key: Hashable) -> bool:
        return not self.is_second_round or key in self._again

    def changed(self) -> None:
        """The object changed: all invoked so far have seen another one."""
        self._again |= self._invoked
        self._invoked.clear()
        self.is_needed = True

    def invoked(self, key: Hashable) -> None:
        """One that asks for reinvocation was invoked, and has seen its own change."""
        self._invoked.add(key)

    def begin_second_round(self, *, object_changed: bool) -> None:
        """`object_changed`: built-in plugins changed the object meanwhile."""
        if object_changed:
            self.changed()
        self.is_second_round = True
