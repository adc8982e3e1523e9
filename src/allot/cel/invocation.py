"""Calls of functions in the reference evaluator: arguments first, then the cost, then the implementation."""

from __future__ import annotations

from collections.abc import Sequence

from allot.cel import costs
from allot.cel.errors import EvalError
from allot.cel.frame import Closure, EvaluationFrame
from allot.cel.plan import Invoke
from allot.cel.values import Value


def invoke(node: Invoke, arguments: list[Closure]) -> Closure:
    call = _Call(node)
    if node.stops_at_errors or not arguments:
        return _invoke_in_turn(arguments, call)
    if len(arguments) == 1:
        return _invoke_unary(arguments[0], call, node.absorbs_errors)
    left, right = arguments
    return _invoke_binary(left, right, call)


class _Call:
    """A call with evaluated arguments. Its cost is counted before the call if it is known then."""

    __slots__ = ("_cost_of", "_implementation", "_is_paid_first", "_takes_deadline")

    def __init__(self, node: Invoke) -> None:
        self._implementation = node.implementation
        self._takes_deadline = node.takes_deadline
        self._cost_of = costs.call_cost(node.function, node.overload_id)
        self._is_paid_first = self._cost_of is None or not costs.goes_by_result(self._cost_of)

    def __call__(
        self, frame: EvaluationFrame, values: Sequence[Value], failed: EvalError | None = None
    ) -> Value:
        if self._is_paid_first:
            self._pay(frame, values, failed)
        result: Value = failed
        if failed is None:
            try:
                if self._takes_deadline:
                    result = self._implementation(frame.deadline, *values)
                else:
                    result = self._implementation(*values)
            except EvalError as error:
                result = error
        if not self._is_paid_first:
            self._pay(frame, values, result)
        return result

    def _pay(self, frame: EvaluationFrame, values: Sequence[Value], result: Value) -> None:
        cost_of = self._cost_of
        frame.pay(1 if cost_of is None else cost_of(values, result, frame.deadline))


def _invoke_unary(argument: Closure, call: _Call, absorbs_errors: bool) -> Closure:
    def evaluate(frame: EvaluationFrame) -> Value:
        value = argument(frame)
        if type(value) is EvalError and not absorbs_errors:
            return call(frame, (value,), value)
        return call(frame, (value,))

    return evaluate


def _invoke_binary(left_of: Closure, right_of: Closure, call: _Call) -> Closure:
    def evaluate(frame: EvaluationFrame) -> Value:
        left = left_of(frame)
        right = right_of(frame)
        if type(left) is EvalError:
            return call(frame, (left, right), left)
        if type(right) is EvalError:
            return call(frame, (left, right), right)
        return call(frame, (left, right))

    return evaluate


def _invoke_in_turn(arguments: list[Closure], call: _Call) -> Closure:
    last = len(arguments) - 1

    def evaluate(frame: EvaluationFrame) -> Value:
        values: list[Value] = []
        failed: EvalError | None = None
        for index, argument in enumerate(arguments):
            value = argument(frame)
            values.append(value)
            if type(value) is EvalError:
                if index < last:
                    return value
                failed = value
        return call(frame, values, failed)

    return evaluate
