"""Insertions into maps, as the two-variable macros build them."""

from __future__ import annotations

from typing import Final

from allot.cel.declarations import function, overload
from allot.cel.errors import EvalError
from allot.cel.library.conversions import shown
from allot.cel.values import Value, from_key, to_key
from allot.deadline import Deadline


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


INSERT: Final = (
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
