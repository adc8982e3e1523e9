"""The interface to CEL: an `ExpressionChecker` compiles expressions for validation.

Validation itself only checks the length of an expression; the checker reports whether it compiles, what it
returns and what it costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from allot.api.resource import DeviceSelector
from allot.features import FeatureGates
from allot.rules import EXPLAINED_COSTS
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    internal,
    invalid,
    required,
    too_long,
)
from allot.validation.formats import byte_length

MAX_EXPRESSION_LENGTH: Final = 10 * 1024
COST_LIMIT: Final = 1_000_000
TOO_COMPLEX: Final = "too complex, exceeds cost limit"


class CheckedExpression(NamedTuple):
    """The problem of an expression, if any, and its estimated cost.

    `internal` problems are reported as internal errors, as Kubernetes does.
    """

    problem: str = ""
    cost: int = 0
    internal: bool = False
    cost_advice: str = ""
    """The estimate, the limit and how to rewrite it, if the cost is above the limit."""


class ExpressionChecker(Protocol):
    """Checks CEL expressions in new objects."""

    def check_selector(self, expression: str, gates: FeatureGates) -> CheckedExpression: ...

    def check_derived_attribute(
        self, expression: str, gates: FeatureGates
    ) -> CheckedExpression: ...


class AcceptEverything:
    """Accepts every expression: for stored ones, and where CEL is not available."""

    def check_selector(self, expression: str, gates: FeatureGates) -> CheckedExpression:
        return CheckedExpression()

    def check_derived_attribute(self, expression: str, gates: FeatureGates) -> CheckedExpression:
        return CheckedExpression()


def validate_selector(
    selector: DeviceSelector, path: FieldPath, checker: ExpressionChecker, gates: FeatureGates
) -> Iterator[FieldError]:
    """One device selector; CEL is the only kind."""
    if selector.cel is None:
        yield required(path / "cel")
        return
    expression, expression_path = selector.cel.expression, path / "cel" / "expression"
    if byte_length(expression) > MAX_EXPRESSION_LENGTH:
        yield too_long(expression_path, MAX_EXPRESSION_LENGTH)
        return
    checked = checker.check_selector(expression, gates)
    yield from validate_checked_expression(expression, checked, expression_path, gates)


def validate_checked_expression(
    expression: str, checked: CheckedExpression, path: FieldPath, gates: FeatureGates
) -> Iterator[FieldError]:
    if checked.internal:
        yield internal(path, checked.problem)
    elif checked.problem:
        yield invalid(path, expression, checked.problem)
    elif checked.cost > COST_LIMIT:
        explained = EXPLAINED_COSTS in gates and checked.cost_advice
        yield forbidden(path, f"{TOO_COMPLEX}: {checked.cost_advice}" if explained else TOO_COMPLEX)
