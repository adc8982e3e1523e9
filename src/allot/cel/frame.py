"""The state of one evaluation by the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from allot.cel.errors import CostLimitError
from allot.cel.steps import STRIDE
from allot.cel.values import Value
from allot.deadline import Deadline


class EvaluationFrame:
    """One evaluation: its variables and its cost so far."""

    __slots__ = ("checkpoint", "cost", "deadline", "limit", "slots", "variables")

    def __init__(
        self, variables: Mapping[str, Value], slots: int, limit: int, deadline: Deadline
    ) -> None:
        self.variables = variables
        self.slots: list[Value] = [None] * slots
        self.cost = 0
        self.limit = limit
        self.deadline = deadline
        self.checkpoint = min(limit, STRIDE)
        """The cost at which `check` is due. Loops lower it, so that iterations without cost count too."""

    def pay(self, cost: int) -> None:
        self.cost = total = self.cost + cost
        if total > self.checkpoint:
            self.check()

    def check(self) -> None:
        self.checkpoint = next_checkpoint(self.cost, self.limit, self.deadline)


def next_checkpoint(cost: int, limit: int, deadline: Deadline) -> int:
    """The cost at which to check again; raises if the evaluation may not continue."""
    if cost > limit:
        raise CostLimitError
    deadline()
    return min(limit, cost + STRIDE)


Closure = Callable[[EvaluationFrame], Value]
