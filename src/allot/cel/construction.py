"""Building lists, maps and messages in the reference evaluator.

Each element is marked if it is an optional that may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from allot.cel import costs
from allot.cel.access import MISSING
from allot.cel.errors import EvalError
from allot.cel.frame import Closure, EvaluationFrame
from allot.cel.library.conversions import shown
from allot.cel.values import Optional, Value, is_key, to_key

MessageMaker = Callable[[dict[str, Value]], Value]


def make_list(elements: Sequence[tuple[Closure, bool]]) -> Closure:

    def build(frame: EvaluationFrame) -> Value:
        values: list[Value] = []
        for element, optional in elements:
            value = element(frame)
            if optional:
                value = _held(value, "list element")
                if value is MISSING:
                    continue
            if isinstance(value, EvalError):
                return value
            values.append(value)
        return values

    return _paying(costs.LIST, build)


def make_map(entries: Sequence[tuple[Closure, Closure, bool]]) -> Closure:

    def build(frame: EvaluationFrame) -> Value:
        values: dict[Value, Value] = {}
        for key_of, value_of, optional in entries:
            key = key_of(frame)
            if isinstance(key, EvalError):
                return key
            value = value_of(frame)
            if optional:
                value = _held(value, f"entry '{shown(key)}'")
                if value is MISSING:
                    values.pop(to_key(key), None)
                    continue
            if isinstance(value, EvalError):
                return value
            if not is_key(key):
                return EvalError("unsupported key type")
            stored = to_key(key)
            values.pop(stored, None)
            values[stored] = value
        return values

    return _paying(costs.MAP, build)


def make_message(
    type_name: str, fields: Sequence[tuple[str, Closure, bool]], make: MessageMaker | None
) -> Closure:

    def build(frame: EvaluationFrame) -> Value:
        values: dict[str, Value] = {}
        for name, value_of, optional in fields:
            value = value_of(frame)
            if optional:
                value = _held(value, f"entry '{name}'")
                if value is MISSING:
                    continue
            if isinstance(value, EvalError):
                return value
            values[name] = value
        if make is None:
            return EvalError(f"unknown type '{type_name}'")
        try:
            return make(values)
        except EvalError as error:
            return error

    return _paying(costs.MESSAGE, build)


def _held(value: Value, what: str) -> Value:
    """The value of an optional, or MISSING. Errors stay; a value that is no optional becomes one."""
    if isinstance(value, EvalError):
        return value
    if not isinstance(value, Optional):
        return EvalError(
            f"cannot initialize optional {what} from non-optional value {shown(value)}"
        )
    return value.value if value.has_value else MISSING


def _paying(cost: int, build: Closure) -> Closure:
    def evaluate(frame: EvaluationFrame) -> Value:
        value = build(frame)
        frame.pay(cost)
        return value

    return evaluate
