"""Functions on lists: the language's extension, sets, and Kubernetes' own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from operator import le
from typing import Final, cast

from allot.cel.comparison import COMPARED_BY_PYTHON, compare, contains, is_equal, position
from allot.cel.declarations import Overload, function, overload
from allot.cel.errors import NO_SUCH_OVERLOAD, CostLimitError, EvalError
from allot.cel.library.arithmetic import add
from allot.cel.library.conversions import shown
from allot.cel.steps import BLOCK, FEW, PIECE, in_pieces, in_steps
from allot.cel.values import (
    MAX_ELEMENTS,
    NONE,
    CelList,
    Duration,
    JoinedList,
    Optional,
    Uint,
    Value,
    element,
    elements,
    from_key,
    is_list,
    optional_of,
    to_key,
    type_of,
)
from allot.deadline import Deadline

COMPARABLE: Final = (
    ("int", "int"),
    ("uint", "uint"),
    ("double", "double"),
    ("bool", "bool"),
    ("duration", "google.protobuf.Duration"),
    ("timestamp", "google.protobuf.Timestamp"),
    ("string", "string"),
    ("bytes", "bytes"),
)
"""Types with an order, and the names they have in overload ids."""

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
    if _told_apart_by_hash(deadline, candidates):
        return list(dict.fromkeys(candidates))
    unique: list[Value] = []
    for item in candidates:
        if not any(is_equal(deadline, item, other) for other in in_steps(unique, deadline)):
            unique.append(item)
    return unique


def _told_apart_by_hash(deadline: Deadline, *lists: list[Value]) -> bool:
    """Whether all elements are of one class that Python compares, and hashes, as CEL does."""
    kinds: set[type] = set()
    for items in lists:
        for piece in in_pieces(items, deadline):
            kinds.update(map(type, piece))
    return len(kinds) == 1 and kinds <= COMPARED_BY_PYTHON


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
    if first.name not in _COMPARABLE_NAMES:
        raise EvalError("list elements must be comparable")
    if any(type_of(key) != first for key in in_steps(sorted_by, deadline)):
        raise EvalError("list elements must have the same type")
    if type(sorted_by[0]) in _ORDERED_BY_PYTHON and len(sorted_by) <= PIECE:
        order = cast("list[str]", sorted_by).__getitem__
        in_order = sorted(range(len(sorted_by)), key=order)
    else:
        in_order = _sorted_in_steps(deadline, sorted_by)
    return [sorted_items[index] for index in in_order]


_ORDERED_BY_PYTHON: Final = frozenset({str, bytes, int, Uint, bool})


def _sorted_in_steps(deadline: Deadline, keys: list[Value]) -> list[int]:
    """The indices of the keys in sorted order. The deadline is checked at regular steps."""
    comparisons = 0

    def order(left: int, right: int) -> int:
        nonlocal comparisons
        comparisons += 1
        if comparisons % BLOCK == 0:
            deadline()
        return _order(keys[left], keys[right])

    return sorted(range(len(keys)), key=cmp_to_key(order))


_COMPARABLE_NAMES: Final = frozenset(name for _, name in COMPARABLE)


def _order(left: Value, right: Value) -> int:
    """A total order: NaN, which compares with no value, stays where it is."""
    try:
        return compare(left, right)
    except EvalError:
        return 0


def _sort(deadline: Deadline, items: CelList) -> list[Value]:
    return _sort_by_keys(deadline, items, items)


def _reverse(deadline: Deadline, items: CelList) -> list[Value]:
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
        "reverse", overload("list_reverse", "list(T).() -> list(T)", _reverse, takes_deadline=True)
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


# --- sets ---


def _contains_all(deadline: Deadline, items: CelList, wanted: CelList) -> bool:
    present, asked_for = elements(items, deadline), elements(wanted, deadline)
    if _told_apart_by_hash(deadline, present, asked_for):
        return set(present).issuperset(asked_for)
    return all(contains(deadline, present, item) for item in in_steps(asked_for, deadline))


def _equivalent(deadline: Deadline, left: CelList, right: CelList) -> bool:
    return _contains_all(deadline, left, right) and _contains_all(deadline, right, left)


def _intersects(deadline: Deadline, left: CelList, right: CelList) -> bool:
    one, other = elements(left, deadline), elements(right, deadline)
    if _told_apart_by_hash(deadline, one, other):
        return not set(other).isdisjoint(one)
    return any(contains(deadline, other, item) for item in in_steps(one, deadline))


SETS: Final = tuple(
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


# --- Kubernetes ---


def _is_sorted(deadline: Deadline, items: CelList) -> bool:
    listed = elements(items, deadline)
    if _has_order_of_python(deadline, listed):
        texts = cast("list[str]", listed)
        last = texts[:1]
        for piece in in_pieces(texts, deadline):
            in_turn = last + piece
            if not all(map(le, in_turn, piece)):
                return False
            last = piece[-1:]
        return True
    in_order = pairwise(in_steps(listed, deadline))
    return all(_order_of_any(before, after) <= 0 for before, after in in_order)


def _order_of_any(left: Value, right: Value) -> int:
    if type(left) not in _ORDERED_BY_PYTHON and type_of(left).name not in _COMPARABLE_NAMES:
        raise EvalError(NO_SUCH_OVERLOAD)
    return _order(left, right)


def _has_order_of_python(deadline: Deadline, items: list[Value]) -> bool:
    """Whether all elements are of one class that Python orders as CEL does."""
    kinds: set[type] = set()
    for piece in in_pieces(items, deadline):
        kinds.update(map(type, piece))
    return len(kinds) == 1 and kinds <= _ORDERED_BY_PYTHON


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
        if _has_order_of_python(deadline, listed):
            pieces = in_pieces(cast("list[str]", listed), deadline)
            return of_python(of_python(piece) for piece in pieces)
        candidates = in_steps(listed, deadline)
        best = next(candidates, _NOTHING)
        if best is _NOTHING:
            raise EvalError(f"{name} called on empty list")
        for candidate in candidates:
            if _order_of_any(best, candidate) * sign < 0:
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
    backwards = _reverse(deadline, items)
    found = _index_of(deadline, backwards, wanted)
    return found if found < 0 else len(backwards) - 1 - found


def _includes(deadline: Deadline, target: Value, wanted: Value) -> bool:
    if is_list(target):
        return _index_of(deadline, cast("CelList", target), wanted) >= 0
    return is_equal(deadline, target, wanted)


_SUMMABLE: Final[tuple[tuple[str, Value], ...]] = (
    ("int", 0), ("uint", Uint(0)), ("double", 0.0), ("duration", Duration(0)),
)  # fmt: skip

KUBERNETES: Final = (
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


# --- maps, as the two-variable macros build them ---


def _insert(target: dict[Value, Value], key: Value, value: Value) -> Value:
    """Modifies `target`, the accumulator of the macro, which is not shared yet."""
    stored = to_key(key)
    if stored in target:
        raise EvalError(f"insert failed: key {shown(key)} already exists")
    target[stored] = value
    return target


def _insert_all(
    deadline: Deadline, target: dict[Value, Value], entries: dict[Value, Value]
) -> Value:
    deadline()
    if not target.keys().isdisjoint(entries):
        key = next(key for key in entries if key in target)
        raise EvalError(f"insert failed: key {shown(from_key(key))} already exists")
    target.update(entries)
    return target


MAP_INSERT: Final = (
    function(
        "cel.@mapInsert",
        overload(
            "@mapInsert_map_map",
            "(map(K, V), map(K, V)) -> map(K, V)",
            _insert_all,
            takes_deadline=True,
        ),
        overload("@mapInsert_map_key_value", "(map(K, V), K, V) -> map(K, V)", _insert),
    ),
)
