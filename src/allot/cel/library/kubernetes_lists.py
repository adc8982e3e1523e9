"""Kubernetes' own functions on lists: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`, `includes`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from operator import le
from typing import Final, cast

from allot.cel.comparison import COMPARED_BY_PYTHON, is_equal, position
from allot.cel.declarations import function, overload
from allot.cel.errors import EvalError
from allot.cel.library.arithmetic import add
from allot.cel.library.list_order import COMPARABLE, is_ordered_by_python, order_of
from allot.cel.library.lists import reverse
from allot.cel.steps import in_pieces, in_steps
from allot.cel.values import CelList, Duration, Uint, Value, elements, is_list
from allot.deadline import Deadline


def _is_sorted(deadline: Deadline, items: CelList) -> bool:
    listed = elements(items, deadline)
    if is_ordered_by_python(deadline, listed):
        texts = cast("list[str]", listed)
        last = texts[:1]
        for piece in in_pieces(texts, deadline):
            in_turn = last + piece
            if not all(map(le, in_turn, piece)):
                return False
            last = piece[-1:]
        return True
    in_order = pairwise(in_steps(listed, deadline))
    return all(order_of(before, after) <= 0 for before, after in in_order)


def _sum_from(zero: Value) -> Callable[[Deadline, CelList], Value]:
    def total(deadline: Deadline, items: CelList) -> Value:
        result = zero
        for item in in_steps(elements(items, deadline), deadline):
            result = add(result, item)
        return result

    return total


def _extreme(name: str, sign: int) -> Callable[[Deadline, CelList], Value]:
    of_python = max if sign > 0 else min

    def extreme(deadline: Deadline, items: CelList) -> Value:
        listed = elements(items, deadline)
        if is_ordered_by_python(deadline, listed):
            pieces = in_pieces(cast("list[str]", listed), deadline)
            return of_python(of_python(piece) for piece in pieces)
        candidates = in_steps(listed, deadline)
        best = next(candidates, _NOTHING)
        if best is _NOTHING:
            raise EvalError(f"{name} called on empty list")
        for candidate in candidates:
            if order_of(best, candidate) * sign < 0:
                best = candidate
        return best

    return extreme


_NOTHING: Final = object()


def _index_of(deadline: Deadline, items: CelList, wanted: Value) -> int:
    listed = elements(items, deadline)
    if type(wanted) in COMPARED_BY_PYTHON:
        return position(deadline, listed, wanted)
    for index, item in enumerate(in_steps(listed, deadline)):
        if is_equal(deadline, item, wanted):
            return index
    return -1


def _last_index_of(deadline: Deadline, items: CelList, wanted: Value) -> int:
    backwards = reverse(deadline, items)
    found = _index_of(deadline, backwards, wanted)
    return found if found < 0 else len(backwards) - 1 - found


def _includes(deadline: Deadline, target: Value, wanted: Value) -> bool:
    if is_list(target):
        return _index_of(deadline, cast("CelList", target), wanted) >= 0
    return is_equal(deadline, target, wanted)


_SUMMABLE: Final[tuple[tuple[str, Value], ...]] = (
    ("int", 0), ("uint", Uint(0)), ("double", 0.0), ("duration", Duration(0)),
)  # fmt: skip

FUNCTIONS: Final = (
    function(
        "isSorted",
        *(
            overload(
                f"list_{name}_is_sorted_bool",
                f"list({name}).() -> bool",
                _is_sorted,
                takes_deadline=True,
            )
            for name, _ in COMPARABLE
        ),
    ),
    function(
        "sum",
        *(
            overload(
                f"list_{name}_sum_{name}",
                f"list({name}).() -> {name}",
                _sum_from(zero),
                takes_deadline=True,
            )
            for name, zero in _SUMMABLE
        ),
    ),
    *(
        function(
            which,
            *(
                overload(
                    f"list_{name}_{which}_{name}",
                    f"list({name}).() -> {name}",
                    _extreme(which, sign),
                    takes_deadline=True,
                )
                for name, _ in COMPARABLE
            ),
        )
        for which, sign in (("max", 1), ("min", -1))
    ),
    function(
        "indexOf",
        overload("list_a_index_of_int", "list(A).(A) -> int", _index_of, takes_deadline=True),
    ),
    function(
        "lastIndexOf",
        overload(
            "list_a_last_index_of_int", "list(A).(A) -> int", _last_index_of, takes_deadline=True
        ),
    ),
)
INCLUDES: Final = (
    function(
        "includes",
        overload("list_includes_dyn_dyn", "dyn.(dyn) -> bool", _includes, takes_deadline=True),
    ),
)
