"""Expressions over variables of declared types: validation rules of custom resources.

Device selectors and derived attributes are compiled in `program`.
"""

from __future__ import annotations

from typing import Final

from allot.cel.checker import check
from allot.cel.environment import Environment
from allot.cel.estimate import SizeAt, estimated_cost
from allot.cel.evaluator import Evaluator
from allot.cel.parser import parse
from allot.cel.planner import plan
from allot.cel.recursion import recursion_room
from allot.cel.source import Source
from allot.cel.syntax import depth
from allot.cel.types import Type
from allot.cel.validators import check_literals

_UNTRACKED_BELOW: Final = 10_000


class TypedExpression:
    """A compiled expression. Safe to share between threads."""

    def __init__(
        self, output_type: Type, max_cost: int, evaluator: Evaluator, names: frozenset[str]
    ) -> None:
        self.output_type = output_type
        self.max_cost = max_cost
        """The estimated cost; `sizes.MAX` without a bound."""
        self.evaluator = evaluator
        self.names = names
        """The variables it uses."""


def compile_expression(text: str, declared: Environment, size_at: SizeAt) -> TypedExpression:
    """The expression, or `CelCompileError`."""
    source = Source(text)
    syntax = parse(source, declared.macros)
    with recursion_room(depth(syntax)):
        checked = check(syntax, source, declared)
        check_literals(checked, source)
        planned = plan(checked, declared)
        max_cost = estimated_cost(checked, size_at)
        evaluator = Evaluator(planned, may_be_expensive=max_cost >= _UNTRACKED_BELOW)
        names = frozenset(name.removeprefix(".") for name in checked.names.values())
        return TypedExpression(checked.types[syntax], max_cost, evaluator, names)
