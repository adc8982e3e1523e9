"""Checks the expressions of new objects by compiling them."""

from __future__ import annotations

from allot.cel import CelCompileError, Origin, Program, compile_derived, compile_selector
from allot.cel.cost_advice import excess_cost
from allot.features import FeatureGates
from allot.validation.expressions import CheckedExpression


class CelChecker:
    """The `ExpressionChecker` of the API server: new expressions, with the gates of the request."""

    def check_selector(self, expression: str, gates: FeatureGates) -> CheckedExpression:
        try:
            return _checked(compile_selector(expression, Origin.NEW, gates))
        except CelCompileError as error:
            return CheckedExpression(problem=error.text, internal=error.internal)

    def check_derived_attribute(self, expression: str, gates: FeatureGates) -> CheckedExpression:
        try:
            return _checked(compile_derived(expression, Origin.NEW, gates))
        except CelCompileError as error:
            return CheckedExpression(problem=error.text, internal=error.internal)


def _checked(program: Program) -> CheckedExpression:
    return CheckedExpression(cost=program.max_cost, cost_advice=excess_cost(program) or "")
