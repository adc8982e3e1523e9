"""Fields and indices: `value.key` and `value[key]` at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from allot.cel.errors import EvalError
from allot.cel.library.conversions import shown
from allot.cel.values import (
    MAX_INT,
    MIN_INT,
    NONE,
    CelList,
    DomainMap,
    LazyMap,
    Optional,
    Value,
    element,
    is_list,
    optional_of,
    to_key,
    type_of,
)

NO_SUCH_KEY: Final = "no such key"

MISSING: Final = object()
"""Returned by `find` if the key does not exist."""


def find(container: Value, key: Value) -> Value:
    """The value at `key`, or MISSING; EvalError if the key is not a list index."""
    kind = type(container)
    if kind is dict:
        return cast("dict[Value, Value]", container).get(to_key(key), MISSING)
    if kind is DomainMap:
        return cast("DomainMap", container)[cast("str", to_key(key))]
    if kind is LazyMap:
        lazy = cast("LazyMap", container)
        return lazy[cast("str", key)] if key in lazy else MISSING
    if is_list(container):
        index = _index(key)
        items = cast("CelList", container)
        return element(items, index) if 0 <= index < len(items) else MISSING
    return MISSING


def get(container: Value, key: Value) -> Value:
    """The value at `key`; EvalError if it does not exist."""
    found = find(container, key)
    if found is MISSING:
        raise missing(container, key)
    return found


def missing(container: Value, key: Value) -> EvalError:
    if is_list(container):
        return EvalError(f"index out of bounds: {shown(key)}")
    return EvalError(f"{NO_SUCH_KEY}: {shown(key)}")


def follow(root: Value, steps: Sequence[tuple[Value, bool]]) -> tuple[Value, int]:
    """The value at the end of a chain of keys, and the number of steps taken.

    From the first optional step on, a missing key is not an error.
    """
    is_optional = isinstance(root, Optional)
    if is_optional:
        held = cast("Optional", root)
        if not held.has_value:
            return NONE, 0
        root = held.value
    for index, (key, optional) in enumerate(steps):
        is_optional = is_optional or optional
        found = find(root, key)
        if found is MISSING:
            if is_optional:
                return NONE, index
            raise missing(root, key)
        root = found
    return optional_of(root) if is_optional else root, len(steps)


def has_field(container: Value, field: str) -> bool:
    """`has(container.field)`."""
    if isinstance(container, Optional):
        return container.has_value and has_field(container.value, field)
    return find(container, field) is not MISSING


def _index(key: Value) -> int:
    if isinstance(key, int | float) and not isinstance(key, bool):
        if key != key // 1 or not MIN_INT <= key <= MAX_INT:
            raise EvalError(f"unsupported index value {shown(key)} in list")
        return int(key)
    raise EvalError(f"unsupported index type '{type_of(key).name}' in list")
