"""Functions on lists as sets: `sets.contains`, `sets.equivalent`, `sets.intersects`."""

from __future__ import annotations

from typing import Final

from allot.cel.comparison import contains
from allot.cel.declarations import function, overload
from allot.cel.library.list_order import is_hashed_as_equal
from allot.cel.steps import in_steps
from allot.cel.values import CelList, elements
from allot.deadline import Deadline


def _contains_all(deadline: Deadline, items: CelList, wanted: CelList) -> bool:
    present, asked_for = elements(items, deadline), elements(wanted, deadline)
    if is_hashed_as_equal(deadline, present, asked_for):
        return set(present).issuperset(asked_for)
    return all(contains(deadline, present, item) for item in in_steps(asked_for, deadline))


def _equivalent(deadline: Deadline, left: CelList, right: CelList) -> bool:
    return _contains_all(deadline, left, right) and _contains_all(deadline, right, left)


def _intersects(deadline: Deadline, left: CelList, right: CelList) -> bool:
    one, other = elements(left, deadline), elements(right, deadline)
    if is_hashed_as_equal(deadline, one, other):
        return not set(other).isdisjoint(one)
    return any(contains(deadline, other, item) for item in in_steps(one, deadline))


FUNCTIONS: Final = tuple(
    function(
        f"sets.{name}",
        overload(
            f"list_sets_{name}_list",
            "(list(T), list(T)) -> bool",
            implementation,
            takes_deadline=True,
        ),
    )
    for name, implementation in (
        ("contains", _contains_all),
        ("equivalent", _equivalent),
        ("intersects", _intersects),
    )
)
