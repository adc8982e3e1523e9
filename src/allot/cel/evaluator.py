"""Evaluation of a plan on a device: generated code where possible, the reference evaluator otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from allot.cel.codegen import (
    CountingFunction,
    FastFunction,
    counting_function,
    fast_function,
)
from allot.cel.errors import COST_LIMIT_TEXT, CelEvaluationError, CostLimitError, EvalError
from allot.cel.frame import Closure, EvaluationFrame
from allot.cel.interpreter import interpretable
from allot.cel.plan import EvaluationPlan
from allot.cel.recursion import SHALLOW_LEVELS, recursion_room
from allot.cel.values import Value
from allot.deadline import Deadline, DeadlineExceededError, no_deadline

COST_LIMIT: Final = 1_000_000
"""The limit of the cost of an evaluation, and of the estimated cost of an expression."""


class Inputs(Protocol):
    """What an expression is evaluated on: a prepared device, or values of other variables."""

    @property
    def variables(self) -> Mapping[str, Value]: ...


class EvaluationResult(NamedTuple):
    """The result of one evaluation: a value or an error, and its cost."""

    value: Value
    error: str | None
    cost: int


class Evaluator:
    """All ways to evaluate a plan: exactly, fast and counting, fast and not counting.

    Each is created on first use: compiling an expression needs none of them.
    """

    def __init__(self, plan: EvaluationPlan, *, may_be_expensive: bool) -> None:
        self._plan = plan
        self._may_be_expensive = may_be_expensive

    @cached_property
    def _interpret(self) -> Closure:
        return interpretable(self._plan)

    @cached_property
    def _compute(self) -> FastFunction | None:
        return None if self._may_be_expensive else fast_function(self._plan)

    @cached_property
    def _count(self) -> CountingFunction | None:
        return counting_function(self._plan)

    def reference(
        self, device: Inputs, limit: int = COST_LIMIT, deadline: Deadline = no_deadline
    ) -> EvaluationResult:
        """Value or error, at its exact cost."""
        frame = EvaluationFrame(device.variables, self._plan.slots, limit, deadline)
        try:
            if self._plan.depth <= SHALLOW_LEVELS:
                value = self._interpret(frame)
            else:
                with recursion_room(self._plan.depth):
                    value = self._interpret(frame)
        except CostLimitError:
            return EvaluationResult(None, COST_LIMIT_TEXT, max(frame.cost, limit + 1))
        if isinstance(value, EvalError):
            return EvaluationResult(None, value.message, frame.cost)
        return EvaluationResult(value, None, frame.cost)

    def evaluate(
        self, device: Inputs, limit: int = COST_LIMIT, deadline: Deadline = no_deadline
    ) -> EvaluationResult:
        """The same, by generated code where possible.

        Generated code handles only evaluations without errors. All others are evaluated again by the
        reference, which defines how errors propagate.
        """
        try:
            counted = self._counted(device, limit, deadline)
        except CostLimitError:
            counted = None  # the reference computes the exact cost
        return counted or self.reference(device, limit, deadline)

    def _counted(self, device: Inputs, limit: int, deadline: Deadline) -> EvaluationResult | None:
        """The result of generated code; None if it cannot evaluate this, CostLimitError above the limit."""
        if self._count is None:
            return None
        try:
            value, cost = self._count(device.variables, limit, deadline)
        except (CostLimitError, DeadlineExceededError):
            raise
        except Exception:  # noqa: BLE001
            return None
        if cost > limit:
            raise CostLimitError
        return EvaluationResult(value, None, cost)

    def value(self, device: Inputs, deadline: Deadline = no_deadline) -> Value:
        """The value without its cost, which is faster; CelEvaluationError if evaluation fails."""
        if self._compute is not None:
            try:
                return self._compute(device.variables, deadline)
            except DeadlineExceededError:
                raise
            except Exception:  # noqa: BLE001
                return _value_of(self.reference(device, COST_LIMIT, deadline))
        try:
            counted = self._counted(device, COST_LIMIT, deadline)
        except CostLimitError:
            raise CelEvaluationError(COST_LIMIT_TEXT, COST_LIMIT + 1) from None
        return _value_of(counted or self.reference(device, COST_LIMIT, deadline))


def _value_of(outcome: EvaluationResult) -> Value:
    if outcome.error is not None:
        raise CelEvaluationError(outcome.error, outcome.cost)
    return outcome.value
