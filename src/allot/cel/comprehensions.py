"""Comprehensions and bindings in the reference evaluator."""

from __future__ import annotations

from typing import cast

from allot.cel import costs
from allot.cel.access import find
from allot.cel.errors import EvalError
from allot.cel.frame import Closure, EvaluationFrame
from allot.cel.plan import Append, Fold
from allot.cel.values import Value, is_list, iterate
from allot.cel.weights import weight_of_iteration


class Unevaluated:
    """The unevaluated value of a binding."""

    __slots__ = ("initial",)

    def __init__(self, initial: Closure) -> None:
        self.initial = initial


def append(node: Append, element: Closure) -> Closure:
    slot = node.accumulator.slot

    def evaluate(frame: EvaluationFrame) -> Value:
        accumulator = frame.slots[slot]
        frame.pay(1)
        value = element(frame)
        frame.pay(costs.LIST)
        frame.pay(1)
        if type(accumulator) is EvalError:
            return accumulator
        if type(value) is EvalError:
            return value
        cast("list[Value]", accumulator).append(value)
        return accumulator

    return evaluate


def bind(slot: int, initial: Closure, result: Closure) -> Closure:
    unevaluated = Unevaluated(initial)

    def evaluate(frame: EvaluationFrame) -> Value:
        frame.slots[slot] = unevaluated
        return result(frame)

    return evaluate


def fold(
    node: Fold,
    over: Closure,
    initial: Closure,
    condition: Closure,
    step: Closure,
    result: Closure,
) -> Closure:
    accumulator, variable, variable2 = node.accumulator, node.variable, node.variable2
    collects = node.collects
    weight = weight_of_iteration(node)

    def evaluate(frame: EvaluationFrame) -> Value:
        values = over(frame)
        if type(values) is EvalError:
            return values
        slots = frame.slots
        start = initial(frame)
        try:
            items = iterate(values)
        except EvalError as error:
            return error
        slots[accumulator] = start if collects is None else collects()
        by_index = variable2 is not None and is_list(values)
        for index, item in enumerate(items):
            if variable2 is None:
                slots[variable] = item
            elif by_index:
                slots[variable], slots[variable2] = index, item
            else:
                slots[variable] = item
                slots[variable2] = find(values, item)
            if condition(frame) is False:
                break
            slots[accumulator] = step(frame)
            frame.checkpoint -= weight
            if frame.cost > frame.checkpoint:
                frame.check()
        return result(frame)

    return evaluate
