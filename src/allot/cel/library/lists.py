"""Functions on lists: CEL's list extension."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Final, cast

from allot.cel.comparison import is_equal
from allot.cel.declarations import Overload, function, overload
from allot.cel.errors import NO_SUCH_OVERLOAD, CostLimitError, EvalError
from allot.cel.library.list_order import (
    COMPARABLE,
    COMPARABLE_NAMES,
    ORDERED_BY_PYTHON,
    is_hashed_as_equal,
    order_or_equal,
)
from allot.cel.steps import BLOCK, FEW, PIECE, in_pieces, in_steps
from allot.cel.values import (
    MAX_ELEMENTS,
    NONE,
    CelList,
    JoinedList,
    Optional,
    Value,
    element,
    elements,
    is_list,
    optional_of,
    type_of,
)
from allot.deadline import Deadline

MAX_RANGE: Final = 1_000_000


def _slice(items: CelList, start: int, end: int) -> list[Value]:
    if start < 0 or end < 0:
        raise EvalError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvalError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if len(items) < end:
        raise EvalError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end] if type(items) is list else cast("JoinedList", items).slice(start, end)


def _flatten(deadline: Deadline, items: Value, *depths: Value) -> list[Value]:
    depth = depths[0] if depths else 1
    if not is_list(items) or type(depth) is not int:
        shown = ", ".join(type_of(given).name for given in depths)
        raise EvalError(f"{NO_SUCH_OVERLOAD}: {type_of(items).name}.flatten({shown})")
    if depth < 0:
        raise EvalError("level must be non-negative")
    level = elements(cast("CelList", items), deadline)
    for _ in range(min(depth, _DEEPEST)):
        if not any(any(map(is_list, piece)) for piece in in_pieces(level, deadline)):
            break
        level = _one_level_flatter(deadline, level)
    return level


def _one_level_flatter(deadline: Deadline, level: list[Value]) -> list[Value]:
    flatter: list[Value] = []
    for item in in_steps(level, deadline):
        if not is_list(item):
            flatter.append(item)
        elif len(flatter) + len(cast("CelList", item)) > MAX_ELEMENTS:
            raise CostLimitError
        else:
            for piece in in_pieces(elements(cast("CelList", item), deadline), deadline):
                if len(piece) > FEW:
                    deadline()
                flatter += piece
    return flatter


_DEEPEST: Final = 1_000


def _range(deadline: Deadline, count: int) -> list[Value]:
    if count < 0:
        raise EvalError(f"lists.range: size must be non-negative, got {count}")
    if count > MAX_RANGE:
        raise EvalError(f"lists.range: size {count} exceeds maximum allowed ({MAX_RANGE})")
    numbers: list[Value] = []
    for start in range(0, count, PIECE):
        deadline()
        numbers += range(start, min(start + PIECE, count))
    return numbers


def _distinct(deadline: Deadline, items: CelList) -> list[Value]:
    """The elements without duplicates, in order."""
    candidates = elements(items, deadline)
    if is_hashed_as_equal(deadline, candidates):
        return list(dict.fromkeys(candidates))
    unique: list[Value] = []
    for item in candidates:
        if not any(is_equal(deadline, item, other) for other in in_steps(unique, deadline)):
            unique.append(item)
    return unique


def _sort_by_keys(deadline: Deadline, items: CelList, keys: CelList) -> list[Value]:
    sorted_items, sorted_by = elements(items, deadline), elements(keys, deadline)
    if len(sorted_items) != len(sorted_by):
        raise EvalError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys "
            f"list, but got {len(sorted_items)} and {len(sorted_by)} elements respectively"
        )
    if not sorted_by:
        return sorted_items
    first = type_of(sorted_by[0])
    if first.name not in COMPARABLE_NAMES:
        raise EvalError("list elements must be comparable")
    if any(type_of(key) != first for key in in_steps(sorted_by, deadline)):
        raise EvalError("list elements must have the same type")
    if type(sorted_by[0]) in ORDERED_BY_PYTHON and len(sorted_by) <= PIECE:
        order = cast("list[str]", sorted_by).__getitem__
        in_order = sorted(range(len(sorted_by)), key=order)
    else:
        in_order = _sorted_in_steps(deadline, sorted_by)
    return [sorted_items[index] for index in in_order]


def _sorted_in_steps(deadline: Deadline, keys: list[Value]) -> list[int]:
    """The indices of the keys in sorted order. The deadline is checked at regular steps."""
    comparisons = 0

    def order(left: int, right: int) -> int:
        nonlocal comparisons
        comparisons += 1
        if comparisons % BLOCK == 0:
            deadline()
        return order_or_equal(keys[left], keys[right])

    return sorted(range(len(keys)), key=cmp_to_key(order))


def _sort(deadline: Deadline, items: CelList) -> list[Value]:
    return _sort_by_keys(deadline, items, items)


def reverse(deadline: Deadline, items: CelList) -> list[Value]:
    backwards: list[Value] = []
    forwards = elements(items, deadline)
    for end in range(len(forwards), 0, -PIECE):
        if end > PIECE:
            deadline()
        backwards += forwards[max(end - PIECE, 0) : end][::-1]
    return backwards


def _sorts(id_suffix: str, signature: str) -> tuple[Overload, ...]:
    return tuple(
        overload(f"list_{name}_{id_suffix}", signature.replace("U", type_))
        for type_, name in COMPARABLE
    )


def _first(items: CelList) -> Optional:
    return optional_of(element(items, 0)) if len(items) else NONE


def _last(items: CelList) -> Optional:
    return optional_of(element(items, len(items) - 1)) if len(items) else NONE


EXTENDED: Final = (
    function("slice", overload("list_slice", "list(T).(int, int) -> list(T)", _slice)),
    function(
        "flatten",
        overload("list_flatten", "list(list(T)).() -> list(T)"),
        overload("list_flatten_int", "list(dyn).(int) -> list(dyn)"),
        implementation=_flatten,
        takes_deadline=True,
    ),
    function(
        "sort",
        *_sorts("sort", "list(U).() -> list(U)"),
        implementation=_sort,
        trait=is_list,
        takes_deadline=True,
    ),
    function(
        "@sortByAssociatedKeys",
        *_sorts("sortByAssociatedKeys", "list(T).(list(U)) -> list(T)"),
        implementation=_sort_by_keys,
        trait=is_list,
        takes_deadline=True,
    ),
    function(
        "lists.range", overload("lists_range", "(int) -> list(int)", _range, takes_deadline=True)
    ),
    function(
        "reverse", overload("list_reverse", "list(T).() -> list(T)", reverse, takes_deadline=True)
    ),
    function(
        "distinct",
        overload("list_distinct", "list(T).() -> list(T)", _distinct, takes_deadline=True),
    ),
)

ENDS: Final = (
    function("first", overload("list_first", "list(T).() -> optional(T)", _first)),
    function("last", overload("list_last", "list(T).() -> optional(T)", _last)),
)
