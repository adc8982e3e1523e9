"""Programs: expressions compiled once, evaluated on many devices."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from enum import Enum
from itertools import islice
from typing import Final

from allot.cel import results
from allot.cel.checker import check
from allot.cel.device import AttributeValue, CelDevice, Place
from allot.cel.errors import CelCompileError, CelEvaluationError, EvalError
from allot.cel.estimate import estimated_cost
from allot.cel.evaluator import COST_LIMIT, EvaluationResult, Evaluator
from allot.cel.inputs import places_read
from allot.cel.kubernetes import Origin, attribute_type, environment
from allot.cel.parser import parse
from allot.cel.planner import plan
from allot.cel.recursion import recursion_room
from allot.cel.sizes import MAX
from allot.cel.source import Source
from allot.cel.syntax import Expression, depth
from allot.cel.types import Type
from allot.cel.validators import check_literals
from allot.cel.values import Value
from allot.deadline import Deadline, no_deadline
from allot.features import LIST_TYPE_ATTRIBUTES, FeatureGates
from allot.lru_cache import LRUCache

UNBOUNDED_COST: Final = MAX
"""The estimate of an expression without a bound."""

_UNTRACKED_BELOW: Final = 10_000
"""Estimates are not strict bounds, but an evaluation never costs ten times its estimate."""

_MEMO_SIZE: Final = 4_096
_NO_GATES: Final = FeatureGates(())


class Use(Enum):
    """The purpose of an expression."""

    SELECTOR = "selector"
    DERIVED = "derived"


class Program:
    """A compiled expression. Safe to share between threads."""

    def __init__(
        self,
        expression: str,
        use: Use,
        output_type: Type,
        max_cost: int,
        reads: tuple[Place, ...],
        evaluator: Evaluator,
    ) -> None:
        self.expression = expression
        self.use = use
        self.output_type = output_type
        self.max_cost = max_cost
        """The estimated cost; `UNBOUNDED_COST` without a bound."""
        self.reads = reads
        """The parts of a device that the expression reads."""
        self.evaluations = 0
        """The number of evaluations, without answers from the cache."""
        self.evaluator = evaluator
        self._answers: dict[Hashable, Value | CelEvaluationError] = {}
        self._lock = threading.Lock()

    def evaluate(
        self, device: CelDevice, limit: int = COST_LIMIT, deadline: Deadline = no_deadline
    ) -> EvaluationResult:
        """Value and exact cost on one device, without the cache.

        `DeadlineExceededError` if the deadline passes first.
        """
        if device.error is not None:
            return EvaluationResult(None, device.error, 0)
        outcome = self.evaluator.evaluate(device, limit, deadline)
        if outcome.error is not None:
            return outcome
        try:
            return EvaluationResult(
                _converted(self.use, outcome.value, deadline), None, outcome.cost
            )
        except EvalError as error:
            return EvaluationResult(None, error.message, outcome.cost)

    def answer(self, device: CelDevice, deadline: Deadline = no_deadline) -> Value:
        """The value for one device; CelEvaluationError if evaluation fails.

        Cached by the parts that the expression reads: one evaluation serves all devices of a model.
        `DeadlineExceededError` if the deadline passes first.
        """
        if device.error is not None:
            raise CelEvaluationError(device.error)
        key = device.fingerprint(self.reads)
        answer = self._answers.get(key, _UNKNOWN)
        if answer is _UNKNOWN:
            deadline()
            answer = self._computed(device, deadline)
            with self._lock:
                self.evaluations += 1
                if len(self._answers) >= _MEMO_SIZE:
                    # Only the oldest half: a loop over more devices than fit still finds some.
                    for old in list(islice(self._answers, _MEMO_SIZE // 2)):
                        del self._answers[old]
                self._answers[key] = answer
        if isinstance(answer, CelEvaluationError):
            raise CelEvaluationError(answer.text, answer.cost)
        return answer

    def _computed(self, device: CelDevice, deadline: Deadline) -> Value | CelEvaluationError:
        try:
            return _converted(self.use, self.evaluator.value(device, deadline), deadline)
        except EvalError as error:
            return CelEvaluationError(error.message)
        except CelEvaluationError as error:
            return error


_UNKNOWN: Final = object()


class Selector(Program):
    """A compiled device selector."""

    def matches(self, device: CelDevice, deadline: Deadline = no_deadline) -> bool:
        """Whether the device is selected; CelEvaluationError if evaluation fails."""
        return self.answer(device, deadline) is True


class DerivedAttribute(Program):
    """A compiled derived attribute."""

    def attribute(self, device: CelDevice, deadline: Deadline = no_deadline) -> AttributeValue:
        """The attribute's value on a device; CelEvaluationError if it has none."""
        answer = self.answer(device, deadline)
        assert isinstance(answer, AttributeValue)
        return answer


def _converted(use: Use, value: Value, deadline: Deadline) -> Value:
    if use is Use.SELECTOR:
        return results.as_decision(value)
    return results.as_attribute(value, deadline)


# --- compiling ---


def compile_selector(
    expression: str, origin: Origin = Origin.STORED, gates: FeatureGates | None = None
) -> Selector:
    """The selector, or CelCompileError. `gates` matter for new expressions only."""
    program = _compiled(expression, Use.SELECTOR, origin, gates)
    assert isinstance(program, Selector)
    return program


def compile_derived(
    expression: str, origin: Origin = Origin.STORED, gates: FeatureGates | None = None
) -> DerivedAttribute:
    """The derived attribute, or CelCompileError. `gates` matter for new expressions only."""
    program = _compiled(expression, Use.DERIVED, origin, gates)
    assert isinstance(program, DerivedAttribute)
    return program


def _compiled(expression: str, use: Use, origin: Origin, gates: FeatureGates | None) -> Program:
    gates = gates or _NO_GATES
    key = (expression, use is Use.SELECTOR, origin is Origin.STORED, environment(origin, gates))
    return _programs.get_or_make(key, lambda: _compile(expression, use, origin, gates))


def _compile(expression: str, use: Use, origin: Origin, gates: FeatureGates) -> Program:
    declared = environment(origin, gates)
    source = Source(expression)
    syntax = parse(source, declared.macros)
    with recursion_room(depth(syntax)):
        return _program(syntax, source, use, origin, gates)


def _program(
    syntax: Expression, source: Source, use: Use, origin: Origin, gates: FeatureGates
) -> Program:
    declared = environment(origin, gates)
    checked = check(syntax, source, declared)
    check_literals(checked, source)
    output_type = checked.types[syntax]
    if use is Use.SELECTOR:
        problem = results.selector_type_problem(output_type, attribute_type(origin, gates))
    else:
        lists_allowed = origin is Origin.STORED or LIST_TYPE_ATTRIBUTES in gates
        problem = results.derived_type_problem(output_type, lists_allowed=lists_allowed)
    if problem is not None:
        raise CelCompileError(problem)
    planned = plan(checked, declared)
    max_cost = estimated_cost(checked)
    evaluator = Evaluator(planned, may_be_expensive=max_cost >= _UNTRACKED_BELOW)
    kind = Selector if use is Use.SELECTOR else DerivedAttribute
    return kind(source.text, use, output_type, max_cost, places_read(planned.root), evaluator)


_programs: Final[LRUCache[Hashable, Program]] = LRUCache(
    1_024, 512 * 1024, lambda program: len(program.expression)
)
"""Bounded in characters, too: a program takes about 130 times as much memory as its expression.

Expressions that do not compile are not kept.
"""
