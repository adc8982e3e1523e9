"""Optional values.

`or`, `orValue` and the `?` accessors are evaluated by the plan itself, because they evaluate their second
operand only if needed; here they are only declared.
"""

from __future__ import annotations

from typing import Final, cast

from allot.cel.declarations import function, overload
from allot.cel.errors import NO_SUCH_OVERLOAD, EvalError
from allot.cel.steps import in_steps
from allot.cel.values import (
    NONE,
    CelList,
    Duration,
    JoinedList,
    Optional,
    Timestamp,
    Value,
    elements,
    optional_of,
)
from allot.deadline import Deadline


def _value(optional: Optional) -> Value:
    if not optional.has_value:
        raise EvalError("optional.none() dereference")
    return optional.value


def _of_non_zero(value: Value) -> Optional:
    return NONE if _is_zero(value) else optional_of(value)


def _is_zero(value: Value) -> bool:
    if value is None:
        return True
    if isinstance(value, bool | int | float | str | bytes | list | dict | JoinedList):
        return not value
    if isinstance(value, Duration):
        return value.nanoseconds == 0
    if isinstance(value, Timestamp):
        return False
    return isinstance(value, Optional) and not value.has_value


def _unwrap(deadline: Deadline, items: CelList) -> list[Value]:
    present: list[Value] = []
    for item in in_steps(elements(items, deadline), deadline):
        if not isinstance(item, Optional):
            raise EvalError(NO_SUCH_OVERLOAD)
        if item.has_value:
            present.append(item.value)
    return present


def _has_value(optional: Value) -> bool:
    return cast("Optional", optional).has_value


FUNCTIONS: Final = (
    function("optional.of", overload("optional_of", "(V) -> optional(V)", optional_of)),
    function(
        "optional.ofNonZeroValue",
        overload("optional_ofNonZeroValue", "(V) -> optional(V)", _of_non_zero),
    ),
    function("optional.none", overload("optional_none", "() -> optional(V)", lambda: NONE)),
    function(
        "optional.unwrap",
        overload("optional_unwrap", "(list(optional(V))) -> list(V)", _unwrap, takes_deadline=True),
    ),
    function(
        "unwrapOpt",
        overload(
            "optional_unwrapOpt", "list(optional(V)).() -> list(V)", _unwrap, takes_deadline=True
        ),
    ),
    function("value", overload("optional_value", "optional(V).() -> V", _value)),
    function("hasValue", overload("optional_hasValue", "optional(V).() -> bool", _has_value)),
    function("or", overload("optional_or_optional", "optional(V).(optional(V)) -> optional(V)")),
    function("orValue", overload("optional_orValue_value", "optional(V).(V) -> V")),
    function("_?._", overload("select_optional_field", "(dyn, string) -> optional(V)")),
    function(
        "_[?_]",
        overload("list_optindex_optional_int", "(list(V), int) -> optional(V)"),
        overload("optional_list_optindex_optional_int", "(optional(list(V)), int) -> optional(V)"),
        overload("map_optindex_optional_value", "(map(K, V), K) -> optional(V)"),
        overload("optional_map_optindex_optional_value", "(optional(map(K, V)), K) -> optional(V)"),
    ),
    function(
        "_[_]",
        overload("optional_list_index_int", "(optional(list(V)), int) -> optional(V)"),
        overload("optional_map_index_value", "(optional(map(K, V)), K) -> optional(V)"),
    ),
)
