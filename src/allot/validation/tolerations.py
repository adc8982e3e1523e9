"""Taints and the tolerations for them (KEP-5055)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.resource import (
    EQUAL,
    EXISTS,
    NO_EFFECT,
    NO_EXECUTE,
    NO_SCHEDULE,
    DeviceTaint,
    DeviceToleration,
)
from allot.validation.fields import FieldError, FieldPath, invalid, not_supported, required
from allot.validation.names import validate_label_key, validate_label_value

EFFECTS: Final = (NO_EFFECT, NO_SCHEDULE, NO_EXECUTE)
OPERATORS: Final = (EQUAL, EXISTS)


def validate_toleration(toleration: DeviceToleration, path: FieldPath) -> Iterator[FieldError]:
    if toleration.key:
        yield from validate_label_key(toleration.key, path / "key", declared=True)
    match toleration.operator:
        case "Exists":
            if toleration.value:
                yield invalid(
                    path / "value", toleration.value, "must be empty for operator `Exists`"
                )
        case "Equal":
            yield from validate_label_value(toleration.value, path / "value")
        case "":
            yield required(path / "operator")
        case operator:
            yield not_supported(path / "operator", operator, OPERATORS, declared=True)
    if toleration.effect and toleration.effect not in EFFECTS:
        yield not_supported(path / "effect", toleration.effect, EFFECTS, declared=True)


def validate_taint(
    taint: DeviceTaint, path: FieldPath, *, stored_effect: str | None = None
) -> Iterator[FieldError]:
    """A taint. A stored effect is accepted, known or not."""
    yield from validate_label_key(taint.key, path / "key")
    yield from validate_label_value(taint.value, path / "value")
    if taint.effect == stored_effect:
        return
    if not taint.effect:
        yield required(path / "effect", declared=True)
    elif taint.effect not in EFFECTS:
        yield not_supported(path / "effect", taint.effect, EFFECTS, declared=True)
