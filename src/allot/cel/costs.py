"""Actual cost of calls at run time.

Costs are looked up by overload id first (where the checker found exactly one overload), then by
function, as Kubernetes does. All other calls cost 1. An error counts as a value of size 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import floordiv
from typing import Final, cast

from allot.api.quantity import Quantity
from allot.api.semver import Semver
from allot.cel.library.formats import Format
from allot.cel.library.list_order import COMPARABLE
from allot.cel.library.lists import MAX_RANGE
from allot.cel.library.network import Cidr, Ip
from allot.cel.library.urls import Url
from allot.cel.steps import in_pieces
from allot.cel.values import CelList, Uint, Value, element, elements, is_list, leaves, size
from allot.deadline import Deadline

Cost = Callable[[Sequence[Value], Value, Deadline], int]
"""From arguments and result to cost. A cost that takes long to compute checks the deadline."""

TRAVERSAL: Final = 0.1
REGEX: Final = 0.25
LIST: Final = 10
MAP: Final = 30
MESSAGE: Final = 40
ACCESS_CHECK: Final = 350_000
"""Asking whether a user may do something."""


def _part(size_: float, factor: float) -> int:
    return math.ceil(size_ * factor)


def _traversal(index: int, factor: float = TRAVERSAL) -> Cost:
    return lambda arguments, _result, _deadline: _part(_size(arguments[index]), factor)


def _size(value: Value) -> int:
    if type(value) is str:
        return len(value)
    return value.byte_size if isinstance(value, Cidr | Ip) else size(value)


def _smaller(arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
    return _part(min(_size(arguments[0]), _size(arguments[1])), TRAVERSAL)


def _both(arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
    return _part(_size(arguments[0]) + _size(arguments[1]), TRAVERSAL)


def _regex(arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
    return _part(1 + _size(arguments[0]), TRAVERSAL) * _part(_size(arguments[1]), REGEX)


def _substring_search(arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
    return _part(_size(arguments[0]), TRAVERSAL) * _part(_size(arguments[1]), TRAVERSAL)


def _one(_arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
    return 1


def _joined(_arguments: Sequence[Value], result: Value, _deadline: Deadline) -> int:
    return _part(_size(result), 2 * TRAVERSAL)


def _allocation(factor: float, size_: int) -> int:
    return int(size_ * factor) + 1 + LIST


def _result_size(_arguments: Sequence[Value], result: Value, _deadline: Deadline) -> int:
    return _allocation(1, _size(result))


def _ranged(arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
    count = arguments[0]
    is_possible = type(count) is int and 0 <= count <= MAX_RANGE
    return _allocation(1, cast("int", count) if is_possible else 1)


def _flattening(arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
    depth = arguments[1] if len(arguments) == 2 and isinstance(arguments[1], int) else 1
    return max(_allocation(depth, _size(arguments[0])), 1 + LIST)


def _self_comparison(index: int) -> Cost:
    def cost(arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
        compared = arguments[index]
        factor = 2.0
        if is_list(compared) and _size(compared):
            first = element(cast("CelList", compared), 0)
            if isinstance(first, str | bytes):
                factor += TRAVERSAL
        return _allocation(factor, _size(compared) ** 2)

    return cost


def _walk(value: Value, deadline: Deadline) -> int:
    """The cost of visiting every part of a value once."""
    if is_list(value):
        listed = elements(cast("CelList", value), deadline)
        total = _simple_walk(listed, deadline)
        if total is not None:
            return total
    total = 0
    for leaf in leaves(value, deadline):
        if isinstance(leaf, str):
            length = len(leaf if leaf.isascii() else leaf.encode("utf-8", "surrogatepass"))
            total += int(length * TRAVERSAL)
        elif isinstance(leaf, bytes):
            total += int(len(leaf) * TRAVERSAL)
        else:
            total += 1
    return total


def _simple_walk(values: list[Value], deadline: Deadline) -> int | None:
    """The same for a list of numbers or of strings; None for any other value."""
    total = 0
    for piece in in_pieces(values, deadline):
        kinds = {*map(type, piece)}
        if kinds <= _NUMBERS:
            total += len(piece)
        elif kinds == {str} and all(map(str.isascii, cast("list[str]", piece))):
            total += sum(map(floordiv, map(len, cast("list[str]", piece)), repeat(_PER_UNIT)))
        else:
            return None
    return total


_NUMBERS: Final = frozenset({int, Uint, float, bool})
_PER_UNIT: Final = round(1 / TRAVERSAL)


def _target_walk(arguments: Sequence[Value], _result: Value, deadline: Deadline) -> int:
    return _walk(arguments[0], deadline)


def _compared_prefix(arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
    return _part(2 * _size(arguments[0]), TRAVERSAL)


def _compared_network(arguments: Sequence[Value], result: Value, deadline: Deadline) -> int:
    masked = _part(_size(arguments[0]), TRAVERSAL) + 1
    return _compared_prefix(arguments, result, deadline) + masked


def _with_parsing(cost: Cost) -> Cost:
    def total(arguments: Sequence[Value], result: Value, deadline: Deadline) -> int:
        return cost(arguments, result, deadline) + _part(_size(arguments[1]), TRAVERSAL)

    return total


def _validation(arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
    format_ = arguments[0]
    if not isinstance(format_, Format):
        return 1
    text = _part(1 + _size(arguments[1]), TRAVERSAL)
    return text * _part(format_.max_regex_size, REGEX)


_SIMPLY_EQUAL: Final = frozenset({Quantity, Semver, Ip, Cidr, Format, Url})


def equality(arguments: Sequence[Value], result: Value, deadline: Deadline) -> int:
    return 1 if type(arguments[0]) in _SIMPLY_EQUAL else _smaller(arguments, result, deadline)


def _set_product(factor: int) -> Cost:
    def cost(arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
        return 1 + factor * _size(arguments[0]) * _size(arguments[1])

    return cost


_BY_OVERLOAD: Final[dict[str, Cost]] = {
    "list_slice": _result_size,
    "lists_range": _ranged,
    "list_reverse": _result_size,
    "list_flatten": _flattening,
    "list_flatten_int": _flattening,
    "list_distinct": _self_comparison(0),
    **{f"list_{name}_sort": _self_comparison(0) for _, name in COMPARABLE},
    **{f"list_{name}_sortByAssociatedKeys": _self_comparison(1) for _, name in COMPARABLE},
    "list_sets_contains_list": _set_product(1),
    "list_sets_intersects_list": _set_product(1),
    "list_sets_equivalent_list": _set_product(2),
    "cidr_ip": _one,
    "cidr_contains_ip_string": _with_parsing(_compared_prefix),
    "cidr_contains_cidr_string": _with_parsing(_compared_network),
    "not_equals": _smaller,
    "starts_with_string": _traversal(1),
    "ends_with_string": _traversal(1),
    "string_to_bytes": _traversal(0),
    "bytes_to_string": _traversal(0),
    "strings_quote": _traversal(0),
    "string_format": _traversal(0),
    "in_list": lambda arguments, _result, _deadline: _size(arguments[1]),
    **{
        f"{operator}_{type_}": _smaller
        for operator in ("less", "less_equals", "greater", "greater_equals")
        for type_ in ("string", "bytes")
    },
    "add_string": _both,
    "add_bytes": _both,
    "matches": _regex,
    "matches_string": _regex,
    "contains_string": _substring_search,
}


def _access_check(_arguments: Sequence[Value], _result: Value, _deadline: Deadline) -> int:
    return ACCESS_CHECK


_BY_FUNCTION: Final[dict[str, Cost]] = {
    "check": _access_check,
    "_==_": equality,
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _target_walk
    ),
    **dict.fromkeys(
        (
            *("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR"),
            *("ip", "quantity", "isQuantity", "semver", "isSemver"),
        ),
        _traversal(0),
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _traversal(0, 2 * TRAVERSAL)),
    "join": _joined,
    "find": _regex,
    "findAll": _regex,
    "containsIP": _compared_prefix,
    "containsCIDR": _compared_network,
    "validate": _validation,
}


_BY_RESULT: Final = frozenset({_joined, _result_size})


def goes_by_result(cost: Cost) -> bool:
    """Whether the cost depends on the result. All other costs are counted before the call."""
    return cost in _BY_RESULT


def call_cost(function: str, overload_id: str) -> Cost | None:
    """The cost of a call; None if it is always 1."""
    return _BY_OVERLOAD.get(overload_id) or _BY_FUNCTION.get(function)
