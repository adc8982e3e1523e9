"""Estimated cost of calls, by function and overload, and the size of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from allot.cel import types
from allot.cel.costs import LIST, REGEX, TRAVERSAL
from allot.cel.library.list_order import COMPARABLE
from allot.cel.sizes import MAX, ONE, UNKNOWN, Range, exactly, plus, times
from allot.cel.types import Type, TypeKind


class Argument(NamedTuple):
    """What is known about an argument."""

    type: Type
    size: Range | None
    constant: object
    element_size: Range | None = None
    """The size of the elements of a list, if the declarations bound it."""

    @property
    def size_or_unknown(self) -> Range:
        return self.size or UNKNOWN


class CallEstimate(NamedTuple):
    """The cost of the call itself, and the size of its result if known."""

    cost: Range
    result_size: Range | None = None


Arguments = Sequence[Argument]
Estimate = Callable[[str, Argument | None, Arguments], CallEstimate | None]


def estimate_call(
    function: str, overload_id: str, target: Argument | None, arguments: Arguments
) -> CallEstimate:
    """The cost of calling an overload, without the cost of its arguments."""
    for estimate in (
        _BY_LIST_OVERLOAD.get(overload_id),
        _BY_FUNCTION.get(function),
        _BY_OVERLOAD.get(overload_id),
    ):
        if estimate is not None:
            found = estimate(overload_id, target, arguments)
            if found is not None:
                return found
    return CallEstimate(ONE)


# --- lists ---


def _allocation(factor: float, size: Range) -> CallEstimate:
    return CallEstimate(size.times_factor(factor).plus(exactly(1 + LIST)), size)


def _uint_constant(argument: Argument, otherwise: int) -> int:
    """The value of a constant that is not negative."""
    value = argument.constant
    if isinstance(value, int) and not isinstance(value, bool):
        return max(int(value), 0)
    return otherwise


def _slice(_id: str, target: Argument | None, arguments: Arguments) -> CallEstimate | None:
    if target is None or len(arguments) != 2:
        return None
    start = _uint_constant(arguments[0], 0)
    end = _uint_constant(arguments[1], target.size_or_unknown.high)
    return _allocation(1, exactly((end - start) % (MAX + 1)))


def _range(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    return _allocation(1, exactly(_uint_constant(arguments[0], MAX)))


def _reverse(_id: str, target: Argument | None, _arguments: Arguments) -> CallEstimate | None:
    return None if target is None else _allocation(1, target.size_or_unknown)


def _flatten(_id: str, target: Argument | None, arguments: Arguments) -> CallEstimate | None:
    if target is None:
        return None
    depth = _uint_constant(arguments[0], MAX) if arguments else 1
    return _allocation(float(depth), target.size_or_unknown)


def _self_comparison(type_: str, *, by_keys: bool) -> Estimate:
    factor = 2.0 + (TRAVERSAL if type_ in ("string", "bytes") else 0)

    def estimate(_id: str, target: Argument | None, arguments: Arguments) -> CallEstimate | None:
        compared = arguments[0] if by_keys else target
        if compared is None:
            return None
        size = compared.size_or_unknown
        return _allocation(factor, size.times(size))

    return estimate


def _set_product(factor: int) -> Estimate:
    def estimate(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
        left, right = (argument.size_or_unknown for argument in arguments)
        return CallEstimate(left.times(right).times_factor(factor).plus(ONE))

    return estimate


_BY_LIST_OVERLOAD: Final[dict[str, Estimate]] = {
    "list_slice": _slice,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": _self_comparison("int", by_keys=False),
    **{f"list_{name}_sort": _self_comparison(type_, by_keys=False) for type_, name in COMPARABLE},
    **{
        f"list_{name}_sortByAssociatedKeys": _self_comparison(type_, by_keys=True)
        for type_, name in COMPARABLE
    },
    "list_sets_contains_list": _set_product(1),
    "list_sets_intersects_list": _set_product(1),
    "list_sets_equivalent_list": _set_product(2),
}


# --- Kubernetes ---


def _walk(_id: str, target: Argument | None, _arguments: Arguments) -> CallEstimate | None:
    if target is None:
        return None
    size = target.size_or_unknown
    if not target.type.parameters:
        return CallEstimate(size.times_factor(TRAVERSAL))
    each = ONE
    if target.type.parameters[0].kind in (TypeKind.STRING, TypeKind.BYTES):
        each = each.plus((target.element_size or UNKNOWN).times_factor(TRAVERSAL))
    return CallEstimate(size.times(each))


def _includes(id_: str, target: Argument | None, arguments: Arguments) -> CallEstimate | None:
    if target is None or target.type.parameters:
        return _walk(id_, target, arguments)
    return CallEstimate(target.size_or_unknown)


def _parsing(factor: float) -> Estimate:
    def estimate(_id: str, target: Argument | None, arguments: Arguments) -> CallEstimate | None:
        if target is not None:
            return None
        return CallEstimate(arguments[0].size_or_unknown.times_factor(factor))

    return estimate


def _url(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    size = arguments[0].size_or_unknown
    return CallEstimate(size.times_factor(TRAVERSAL), size)


def _same_size(_id: str, target: Argument | None, _arguments: Arguments) -> CallEstimate | None:
    if target is None:
        return None
    size = target.size_or_unknown
    return CallEstimate(size.times_factor(TRAVERSAL), size)


def _replace(_id: str, target: Argument | None, arguments: Arguments) -> CallEstimate | None:
    if target is None or len(arguments) < 2:
        return None
    size = target.size_or_unknown
    old, new = arguments[0].size_or_unknown, arguments[1].size_or_unknown
    # Longest result: the shortest string replaced by the longest, as often as possible.
    if old.low == 0:
        most, kept_high = plus(size.high, 1), size.high
    elif new.high <= old.low:
        most, kept_high = 0, size.high
    else:
        most, kept_high = -(-size.high // old.low), 0
    # Shortest result: the longest string replaced by the shortest.
    if old.high == 0:
        least, kept_low = plus(size.low, 1), size.low
    elif old.high <= new.low:
        least, kept_low = 0, size.low
    else:
        least, kept_low = -(-size.low // old.high), 0
    result = Range(plus(times(least, new.low), kept_low), plus(times(most, new.high), kept_high))
    return CallEstimate(size.times_factor(2 * TRAVERSAL), result)


def _split(_id: str, target: Argument | None, arguments: Arguments) -> CallEstimate | None:
    if target is None:
        return None
    size = target.size_or_unknown
    most = size.high
    if len(arguments) > 1 and type(arguments[1].constant) is int:
        most = arguments[1].constant % (MAX + 1)
    return CallEstimate(size.times_factor(2 * TRAVERSAL), Range(0, most))


def _join(_id: str, target: Argument | None, arguments: Arguments) -> CallEstimate | None:
    if target is None:
        return None
    count = target.size_or_unknown
    size = count.times(target.element_size or UNKNOWN) if target.type.parameters else exactly(0)
    if arguments:
        separators = Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.plus(arguments[0].size_or_unknown.times(separators))
    return CallEstimate(size.times_factor(TRAVERSAL), size)


def _regex_cost(text: Range, pattern: Range) -> Range:
    return text.plus(ONE).times_factor(TRAVERSAL).times(pattern.times_factor(REGEX))


def _find(_id: str, target: Argument | None, arguments: Arguments) -> CallEstimate | None:
    if target is None:
        return None
    size = target.size_or_unknown
    cost = _regex_cost(size, arguments[0].size_or_unknown)
    return CallEstimate(cost, Range(0, size.high))


_ADDRESS: Final = Range(4, 16)


def _contains_ip(id_: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    cost = _ADDRESS.plus(_ADDRESS).times_factor(TRAVERSAL)
    if id_ == "cidr_contains_ip_string":
        cost = cost.plus(arguments[0].size_or_unknown.times_factor(TRAVERSAL))
    return CallEstimate(cost)


def _contains_cidr(id_: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    cost = _ADDRESS.plus(_ADDRESS).times_factor(TRAVERSAL)
    cost = cost.plus(_ADDRESS.times_factor(TRAVERSAL)).plus(ONE)
    if id_ == "cidr_contains_cidr_string":
        cost = cost.plus(arguments[0].size_or_unknown.times_factor(TRAVERSAL))
    return CallEstimate(cost)


_LONGEST_NAME_REGEX: Final = 128
_LONGEST_FORMAT: Final = 64


def _validate(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    text = arguments[0].size_or_unknown.times_factor(TRAVERSAL)
    return CallEstimate(text.times_factor(_LONGEST_NAME_REGEX * REGEX))


def _equality(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate | None:
    left, right = arguments
    if left.type != right.type:
        return None
    if left.type in (types.IP, types.CIDR, types.QUANTITY, types.SEMVER):
        return CallEstimate(ONE)
    if left.type == types.FORMAT:
        return CallEstimate(Range(1, _LONGEST_FORMAT).times_factor(TRAVERSAL))
    if left.type == types.URL:
        size = right.size or ONE
        return CallEstimate(Range(1, size.high).times_factor(TRAVERSAL))
    return None


_BY_FUNCTION: Final[dict[str, Estimate]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _walk),
    "includes": _includes,
    **dict.fromkeys(
        ("quantity", "isQuantity", "semver", "isSemver", "ip", "isIP", "cidr", "isCIDR"),
        _parsing(TRAVERSAL),
    ),
    "ip.isCanonical": _parsing(2 * TRAVERSAL),
    "url": _url,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _same_size),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equality,
}


# --- the language itself ---


def _argument_traversal(index: int = 0) -> Estimate:
    def estimate(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
        return CallEstimate(arguments[index].size_or_unknown.times_factor(TRAVERSAL))

    return estimate


def _to_bytes(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    size = arguments[0].size_or_unknown
    return CallEstimate(size.times_factor(TRAVERSAL), Range(size.low, size.high * 4 % (MAX + 1)))


def _from_bytes(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    size = arguments[0].size_or_unknown
    return CallEstimate(size.times_factor(TRAVERSAL), Range(size.low // 4, size.high))


def _quote(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    size = arguments[0].size_or_unknown
    result = Range(size.low + 2, (size.high * 2 + 2) % (MAX + 1))
    return CallEstimate(size.times_factor(TRAVERSAL), result)


def _format(_id: str, target: Argument | None, _arguments: Arguments) -> CallEstimate | None:
    if target is None:
        return None
    return CallEstimate(target.size_or_unknown.times_factor(TRAVERSAL))


def _in_list(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    return CallEstimate(arguments[1].size_or_unknown.times_factor(1))


def _matches(_id: str, target: Argument | None, arguments: Arguments) -> CallEstimate | None:
    if target is None:
        return None
    return CallEstimate(_regex_cost(target.size_or_unknown, arguments[0].size_or_unknown))


def _matches_function(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    text, pattern = arguments
    return CallEstimate(_regex_cost(text.size_or_unknown, pattern.size_or_unknown))


def _contains(_id: str, target: Argument | None, arguments: Arguments) -> CallEstimate | None:
    if target is None:
        return None
    text = target.size_or_unknown.times_factor(TRAVERSAL)
    return CallEstimate(text.times(arguments[0].size_or_unknown.times_factor(TRAVERSAL)))


def _sum(id_: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    size = arguments[0].size_or_unknown.plus(arguments[1].size_or_unknown)
    return CallEstimate(ONE if id_ == "add_list" else size.times_factor(TRAVERSAL), size)


def _smaller(_id: str, _target: Argument | None, arguments: Arguments) -> CallEstimate:
    high = min(argument.size_or_unknown.high for argument in arguments)
    return CallEstimate(Range(min(high, 1), high).times_factor(TRAVERSAL))


_BY_OVERLOAD: Final[dict[str, Estimate]] = {
    "string_format": _format,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _from_bytes,
    "strings_quote": _quote,
    "starts_with_string": _argument_traversal(),
    "ends_with_string": _argument_traversal(),
    "in_list": _in_list,
    "matches": _matches_function,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_string": _sum,
    "add_bytes": _sum,
    "add_list": _sum,
    "equals": _smaller,
    "not_equals": _smaller,
    **{
        f"{operator}_{type_}": _smaller
        for operator in ("less", "less_equals", "greater", "greater_equals")
        for type_ in ("string", "bytes")
    },
}
