"""Functions on lists: the language's extension, sets, and Kubernetes' own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Final, cast

from allot.cel.comparison import compare, contains, is_equal
from allot.cel.declarations import Overload, function, overload
from allot.cel.errors import NO_SUCH_OVERLOAD, CostLimitError, EvalError
from allot.cel.library.arithmetic import add
from allot.cel.library.conversions import shown
from allot.cel.values import (
    MAX_ELEMENTS,
    NONE,
    CelList,
    Duration,
    Optional,
    Uint,
    Value,
    elements,
    from_key,
    is_list,
    optional_of,
    to_key,
    type_of,
)

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
    return elements(items)[start:end]


def _flatten(items: Value, *depths: Value) -> list[Value]:
    depth = depths[0] if depths else 1
    if not is_list(items) or type(depth) is not int:
        shown = ", ".join(type_of(given).name for given in depths)
        raise EvalError(f"{NO_SUCH_OVERLOAD}: {type_of(items).name}.flatten({shown})")
    if depth < 0:
        raise EvalError("level must be non-negative")
    level = elements(cast("CelList", items))
    for _ in range(min(depth, _DEEPEST)):
        if not any(map(is_list, level)):
            break
        deeper: list[Value] = []
        for item in level:
            deeper.extend(elements(cast("CelList", item)) if is_list(item) else (item,))
        if len(deeper) > MAX_ELEMENTS:
            raise CostLimitError
        level = deeper
    return level


_DEEPEST: Final = 1_000


def _range(count: int) -> list[Value]:
    if count < 0:
        raise EvalError(f"lists.range: size must be non-negative, got {count}")
    if count > MAX_RANGE:
        raise EvalError(f"lists.range: size {count} exceeds maximum allowed ({MAX_RANGE})")
    return list(range(count))


def _distinct(items: CelList) -> list[Value]:
    seen: set[Value] = set()
    unique: list[Value] = []
    for item in elements(items):
        if isinstance(item, str):
            if item not in seen:
                seen.add(item)
                unique.append(item)
        elif not any(is_equal(item, other) for other in unique):
            unique.append(item)
    return unique


def _sort_by_keys(items: CelList, keys: CelList) -> list[Value]:
    sorted_items, sorted_by = elements(items), elements(keys)
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
    if any(type_of(key) != first for key in sorted_by):
        raise EvalError("list elements must have the same type")

    def order(left: int, right: int) -> int:
        return _order(sorted_by[left], sorted_by[right])

    in_order = sorted(range(len(sorted_by)), key=cmp_to_key(order))
    return [sorted_items[index] for index in in_order]


_COMPARABLE_NAMES: Final = frozenset(name for _, name in COMPARABLE)


def _order(left: Value, right: Value) -> int:
    """An order even where there is none: NaN stays where it is."""
    try:
        return compare(left, right)
    except EvalError:
        return 0


def _sort(items: CelList) -> list[Value]:
    return _sort_by_keys(items, items)


def _sorts(id_suffix: str, signature: str) -> tuple[Overload, ...]:
    return tuple(
        overload(f"list_{name}_{id_suffix}", signature.replace("U", type_))
        for type_, name in COMPARABLE
    )


def _first(items: CelList) -> Optional:
    return optional_of(elements(items)[0]) if len(items) else NONE


def _last(items: CelList) -> Optional:
    return optional_of(elements(items)[-1]) if len(items) else NONE


EXTENDED: Final = (
    function("slice", overload("list_slice", "list(T).(int, int) -> list(T)", _slice)),
    function(
        "flatten",
        overload("list_flatten", "list(list(T)).() -> list(T)"),
        overload("list_flatten_int", "list(dyn).(int) -> list(dyn)"),
        implementation=_flatten,
    ),
    function(
        "sort",
        *_sorts("sort", "list(U).() -> list(U)"),
        implementation=_sort,
        trait=is_list,
    ),
    function(
        "@sortByAssociatedKeys",
        *_sorts("sortByAssociatedKeys", "list(T).(list(U)) -> list(T)"),
        implementation=_sort_by_keys,
        trait=is_list,
    ),
    function("lists.range", overload("lists_range", "(int) -> list(int)", _range)),
    function(
        "reverse",
        overload("list_reverse", "list(T).() -> list(T)", lambda items: elements(items)[::-1]),
    ),
    function("distinct", overload("list_distinct", "list(T).() -> list(T)", _distinct)),
)

ENDS: Final = (
    function("first", overload("list_first", "list(T).() -> optional(T)", _first)),
    function("last", overload("list_last", "list(T).() -> optional(T)", _last)),
)


# --- sets ---


def _contains_all(items: CelList, wanted: CelList) -> bool:
    return all(contains(items, item) for item in elements(wanted))


def _equivalent(left: CelList, right: CelList) -> bool:
    return _contains_all(left, right) and _contains_all(right, left)


def _intersects(left: CelList, right: CelList) -> bool:
    return any(contains(right, item) for item in elements(left))


SETS: Final = tuple(
    function(
        f"sets.{name}",
        overload(f"list_sets_{name}_list", "(list(T), list(T)) -> bool", implementation),
    )
    for name, implementation in (
        ("contains", _contains_all),
        ("equivalent", _equivalent),
        ("intersects", _intersects),
    )
)


# --- Kubernetes ---


def _is_sorted(items: CelList) -> bool:
    return all(_order_of_any(before, after) <= 0 for before, after in pairwise(elements(items)))


def _order_of_any(left: Value, right: Value) -> int:
    if type_of(left).name not in _COMPARABLE_NAMES:
        raise EvalError(NO_SUCH_OVERLOAD)
    return _order(left, right)


def _sum_from(zero: Value) -> Callable[[CelList], Value]:
    def total(items: CelList) -> Value:
        result = zero
        for item in elements(items):
            result = add(result, item)
        return result

    return total


def _extreme(name: str, sign: int) -> Callable[[CelList], Value]:
    def extreme(items: CelList) -> Value:
        candidates = elements(items)
        if not candidates:
            raise EvalError(f"{name} called on empty list")
        best = candidates[0]
        for candidate in candidates[1:]:
            if _order_of_any(best, candidate) * sign < 0:
                best = candidate
        return best

    return extreme


def _index_of(items: CelList, wanted: Value) -> int:
    for index, item in enumerate(elements(items)):
        if is_equal(item, wanted):
            return index
    return -1


def _last_index_of(items: CelList, wanted: Value) -> int:
    candidates = elements(items)
    for index in range(len(candidates) - 1, -1, -1):
        if is_equal(candidates[index], wanted):
            return index
    return -1


def _includes(target: Value, wanted: Value) -> bool:
    if is_list(target):
        return _index_of(cast("CelList", target), wanted) >= 0
    return is_equal(target, wanted)


_SUMMABLE: Final[tuple[tuple[str, Value], ...]] = (
    ("int", 0), ("uint", Uint(0)), ("double", 0.0), ("duration", Duration(0)),
)  # fmt: skip

KUBERNETES: Final = (
    function(
        "isSorted",
        *(
            overload(f"list_{name}_is_sorted_bool", f"list({name}).() -> bool", _is_sorted)
            for name, _ in COMPARABLE
        ),
    ),
    function(
        "sum",
        *(
            overload(f"list_{name}_sum_{name}", f"list({name}).() -> {name}", _sum_from(zero))
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
                )
                for name, _ in COMPARABLE
            ),
        )
        for which, sign in (("max", 1), ("min", -1))
    ),
    function("indexOf", overload("list_a_index_of_int", "list(A).(A) -> int", _index_of)),
    function(
        "lastIndexOf", overload("list_a_last_index_of_int", "list(A).(A) -> int", _last_index_of)
    ),
)
INCLUDES: Final = (
    function("includes", overload("list_includes_dyn_dyn", "dyn.(dyn) -> bool", _includes)),
)


# --- maps, as the two-variable macros build them ---


def _insert(target: dict[Value, Value], key: Value, value: Value) -> Value:
    """Changes `target`: it is the accumulator of the macro, which nobody else sees yet."""
    stored = to_key(key)
    if stored in target:
        raise EvalError(f"insert failed: key {shown(key)} already exists")
    target[stored] = value
    return target


def _insert_all(target: dict[Value, Value], entries: dict[Value, Value]) -> Value:
    for key, value in entries.items():
        _insert(target, from_key(key), value)
    return target


MAP_INSERT: Final = (
    function(
        "cel.@mapInsert",
        overload("@mapInsert_map_map", "(map(K, V), map(K, V)) -> map(K, V)", _insert_all),
        overload("@mapInsert_map_key_value", "(map(K, V), K, V) -> map(K, V)", _insert),
    ),
)
