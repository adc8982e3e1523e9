"""The state of one evaluation by the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from allot.cel.errors import CostLimitError
from allot.cel.values import Value


class Frame:
    """One evaluation: its variables, and what it has cost so far."""

    __slots__ = ("cost", "limit", "slots", "variables")

    def __init__(self, variables: Mapping[str, Value], slots: int, limit: int) -> None:
        self.variables = variables
        self.slots: list[Value] = [None] * slots
        self.cost = 0
        self.limit = limit

    def pay(self, cost: int) -> None:
        self.cost = total = self.cost + cost
        if total > self.limit:
            raise CostLimitError


Closure = Callable[[Frame], Value]
