"""Constants that are cheap enough to compute while code is generated."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.cel import costs
from allot.cel.errors import CostLimitError, EvalError
from allot.cel.plan import Const, Fixed, Invoke, MakeList, MakeMap, Node, is_small
from allot.cel.values import Value
from allot.deadline import no_deadline

_MOST: Final = 1_000
"""The cost up to which a call is made at once."""


class Known(NamedTuple):
    """The value of a constant part, and what it costs to evaluate it."""

    value: Value
    cost: int


def quickly_known(node: Node) -> Known | None:
    """The value of a part; None if it is not constant, fails, or is too expensive to compute ahead."""
    match node:
        case Const():
            return Known(node.value, 0)
        case Fixed():
            return _remembered(node)
        case Invoke() if node.arguments and not node.absorbs_errors:
            return _called(node)
        case MakeList() if not node.optional:
            parts = _all_known(node.elements)
            if parts is None:
                return None
            return Known([part.value for part in parts], costs.LIST + sum(p.cost for p in parts))
        case MakeMap():
            return _map(node)
        case _:
            return None


def _remembered(node: Fixed) -> Known | None:
    once = node.once
    if not once.is_known:
        known = quickly_known(node.node)
        if known is None:
            return None
        once.remember(*known)
    return Known(once.value, once.cost) if once.is_value else None


def _all_known(nodes: tuple[Node, ...]) -> list[Known] | None:
    known: list[Known] = []
    for node in nodes:
        one = quickly_known(node)
        if one is None or not is_small(one.value):
            return None
        known.append(one)
    return known


def _called(node: Invoke) -> Known | None:
    arguments = _all_known(node.arguments)
    if arguments is None:
        return None
    values = [argument.value for argument in arguments]
    cost_of = costs.call_cost(node.function, node.overload_id)
    cost = 1
    if cost_of is not None and not costs.goes_by_result(cost_of):
        cost = cost_of(values, None, no_deadline)
    if cost > _MOST:
        return None
    try:
        passed = [no_deadline, *values] if node.takes_deadline else values
        value = node.implementation(*passed)
    except (EvalError, CostLimitError):
        return None
    if cost_of is not None and costs.goes_by_result(cost_of):
        cost = cost_of(values, value, no_deadline)
    return Known(value, cost + sum(argument.cost for argument in arguments))


def _map(node: MakeMap) -> Known | None:
    parts = _all_known(tuple(part for key, value, _ in node.entries for part in (key, value)))
    if parts is None or any(optional for _, _, optional in node.entries):
        return None
    keys = [part.value for part in parts[::2]]
    if not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
        return None
    values = [part.value for part in parts[1::2]]
    cost = costs.MAP + sum(part.cost for part in parts)
    return Known(dict(zip(keys, values, strict=True)), cost)
