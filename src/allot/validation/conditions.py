"""Status conditions, as metav1 defines them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.meta import Condition
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from allot.validation.formats import REASON_RULE, byte_length, is_condition_reason
from allot.validation.names import validate_label_key

MAX_REASON_LENGTH: Final = 1024
MAX_MESSAGE_LENGTH: Final = 32 * 1024
STATUSES: Final = ("True", "False", "Unknown")


def validate_conditions(
    conditions: tuple[Condition, ...],
    path: FieldPath,
    limit: int,
    *,
    limit_declared: bool = False,
) -> Iterator[FieldError]:
    """At most `limit` conditions, one of each type. Only a declared limit stops the validation of items."""
    if len(conditions) > limit:
        yield too_many(path, len(conditions), limit, declared=limit_declared)
        if limit_declared:
            return
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        if condition.type in seen:
            yield duplicate(path @ index, condition.type)
        seen.add(condition.type)
        yield from _validate_condition(condition, path @ index)


def _validate_condition(condition: Condition, path: FieldPath) -> Iterator[FieldError]:
    if not condition.type:
        yield required(path / "type", "is required")
    else:
        yield from validate_label_key(condition.type, path / "type")
    if not condition.status:
        yield required(path / "status")
    elif condition.status not in STATUSES:
        yield not_supported(path / "status", condition.status, STATUSES)
    if condition.observed_generation < 0:
        yield invalid(
            path / "observedGeneration",
            condition.observed_generation,
            "must be greater than or equal to zero",
        )
    if condition.last_transition_time is None:
        yield required(path / "lastTransitionTime")
    if not condition.reason:
        yield required(path / "reason")
    else:
        if not is_condition_reason(condition.reason):
            yield invalid(path / "reason", condition.reason, REASON_RULE)
        if byte_length(condition.reason) > MAX_REASON_LENGTH:
            yield too_long(path / "reason", MAX_REASON_LENGTH)
    if byte_length(condition.message) > MAX_MESSAGE_LENGTH:
        yield too_long(path / "message", MAX_MESSAGE_LENGTH)
