"""Building lists, maps and messages in the reference evaluator.

Of every element it is known whether it is an optional that may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from allot.cel import costs
from allot.cel.errors import EvalError
from allot.cel.frame import Closure, Frame
from allot.cel.library.conversions import shown
from allot.cel.values import Optional, Value, is_key, to_key

MessageMaker = Callable[[dict[str, Value]], Value]


def make_list(elements: Sequence[tuple[Closure, bool]]) -> Closure:

    def build(frame: Frame) -> Value:
        values: list[Value] = []
        for element, optional in elements:
            value = element(frame)
            if isinstance(value, EvalError):
                return value
            if optional:
                if not isinstance(value, Optional):
                    return EvalError(
                        f"cannot initialize optional list element from non-optional value {shown(value)}"
                    )
                if not value.has_value:
                    continue
                value = value.value
            values.append(value)
        return values

    def evaluate(frame: Frame) -> Value:
        value = build(frame)
        frame.pay(costs.LIST)
        return value

    return evaluate


def make_map(entries: Sequence[tuple[Closure, Closure, bool]]) -> Closure:

    def build(frame: Frame) -> Value:
        values: dict[Value, Value] = {}
        for key_of, value_of, optional in entries:
            key = key_of(frame)
            if isinstance(key, EvalError):
                return key
            value = value_of(frame)
            if isinstance(value, EvalError):
                return value
            if optional:
                if not isinstance(value, Optional):
                    return EvalError(
                        f"cannot initialize optional entry '{shown(key)}' from non-optional value {shown(value)}"
                    )
                if not value.has_value:
                    values.pop(to_key(key), None)
                    continue
                value = value.value
            if not is_key(key):
                return EvalError(UNSUPPORTED_KEY)
            stored = to_key(key)
            values.pop(stored, None)
            values[stored] = value
        return values

    def evaluate(frame: Frame) -> Value:
        value = build(frame)
        frame.pay(costs.MAP)
        return value

    return evaluate


UNSUPPORTED_KEY: Final = "unsupported key type"


def make_message(
    type_name: str, fields: Sequence[tuple[str, Closure, bool]], make: MessageMaker | None
) -> Closure:

    def build(frame: Frame) -> Value:
        values: dict[str, Value] = {}
        for name, value_of, optional in fields:
            value = value_of(frame)
            if isinstance(value, EvalError):
                return value
            if optional:
                if not isinstance(value, Optional):
                    return EvalError(
                        f"cannot initialize optional entry '{name}' from non-optional value {shown(value)}"
                    )
                if not value.has_value:
                    continue
                value = value.value
            values[name] = value
        if make is None:
            return EvalError(f"unknown type '{type_name}'")
        try:
            return make(values)
        except EvalError as error:
            return error

    def evaluate(frame: Frame) -> Value:
        value = build(frame)
        frame.pay(costs.MESSAGE)
        return value

    return evaluate
