"""Request policies of consumable capacity (KEP-5075): which amounts a request may get."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.quantity import MAX_INT64, Quantity
from allot.api.slices import CapacityRequestPolicy, CapacityRequestPolicyRange
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    required,
    too_many,
)

MAX_VALID_VALUES: Final = 10


def validate_request_policy(
    policy: CapacityRequestPolicy, capacity: Quantity, path: FieldPath, *, fractional: bool
) -> Iterator[FieldError]:
    """A policy for `capacity`. `fractional`: ranges may have steps smaller than one."""
    if policy.valid_values and policy.valid_range is not None:
        yield forbidden(
            path,
            "exactly one policy can be specified, "
            'cannot specify "validValues" and "validRange" at the same time',
        )
    elif policy.valid_values:
        if policy.default is None:
            yield required(path / "default", "required when validValues is defined")
        else:
            yield from _validate_values(policy, capacity, path / "validValues", fractional)
    elif policy.valid_range is not None:
        if policy.default is None:
            yield required(path / "default", "required when validRange is defined")
        else:
            range_path = path / "validRange"
            yield from _validate_range(
                policy.valid_range, policy.default, capacity, range_path, fractional
            )


def _validate_values(
    policy: CapacityRequestPolicy, capacity: Quantity, path: FieldPath, fractional: bool
) -> Iterator[FieldError]:
    values = policy.valid_values
    found = False
    if len(values) > MAX_VALID_VALUES:
        yield too_many(path, len(values), MAX_VALID_VALUES)
        values = ()
    seen: set[str] = set()
    previous: Quantity | None = None
    for index, value in enumerate(values):
        # Without fractions, values count as the same when they round up to the same number.
        key = value.decimal_text() if fractional else str(value.value())
        if key in seen:
            yield duplicate(path @ index, key)
        seen.add(key)
        if previous is not None and value < previous:
            yield invalid(path @ index, str(value), "values must be sorted in ascending order")
        previous = value
        if value > capacity:
            yield invalid(
                path @ index, str(value), f"option is larger than capacity value: {capacity}"
            )
        found = found or value == policy.default
    if not found:
        yield invalid(
            path,
            str(policy.default),
            "default value is not valid according to the requestPolicy",
        )


def _validate_range(
    range_: CapacityRequestPolicyRange,
    default: Quantity,
    capacity: Quantity,
    path: FieldPath,
    fractional: bool,
) -> Iterator[FieldError]:
    least, most = range_.min, range_.max
    if least is None:
        yield required(path / "min", "required when validRange is defined")
        return
    if least > capacity:
        yield invalid(path / "min", str(least), f"min is larger than capacity value: {capacity}")
    if default < least:
        yield invalid(path / "default", str(default), f"default is less than min: {least}")
    if most is not None:
        if least > most:
            yield invalid(path / "max", str(least), f"min is larger than max: {most}")
        if most > capacity:
            yield invalid(path / "max", str(most), f"max is larger than capacity value: {capacity}")
        if default > most:
            yield invalid(path / "default", str(default), f"default is more than max: {most}")
    if range_.step is not None:
        yield from _validate_step(range_.step, least, range_, default, capacity, path, fractional)


def _validate_step(
    step: Quantity,
    least: Quantity,
    range_: CapacityRequestPolicyRange,
    default: Quantity,
    capacity: Quantity,
    path: FieldPath,
    fractional: bool,
) -> Iterator[FieldError]:
    if step.sign <= 0:
        yield invalid(path / "step", str(step), "must be greater than zero")
        return
    if least + step > capacity:
        yield invalid(
            path / "step",
            str(step),
            f"one step {least + step} is larger than capacity value: {capacity}",
        )
    amounts = {"default": default, "min": least, "step": step}
    if range_.max is not None:
        amounts["max"] = range_.max
    in_milli = fractional and not all(amount.is_whole() for amount in amounts.values())
    problems = [
        invalid(path / name, str(amount), problem)
        for name, amount in amounts.items()
        if (problem := _range_problem(amount, in_milli))
    ]
    yield from problems
    if problems:
        return
    scale = -3 if in_milli else 0
    start, stride = least.scaled_value(scale), step.scaled_value(scale)
    for name in ("default", "max"):
        amount = amounts.get(name)
        if amount is not None and (amount.scaled_value(scale) - start) % stride:
            yield invalid(
                path / "step",
                str(amount),
                f"value is not a multiple of a given step ({step}) from ({least})",
            )


def _range_problem(amount: Quantity, in_milli: bool) -> str:
    """Why steps cannot be counted with this amount: they are counted in int64."""
    if amount.sign < 0:
        return "must be greater than or equal to 0"
    if in_milli:
        if amount.nanos % 10**6 or amount.nanos // 10**6 > MAX_INT64:
            return "value cannot be represented as a milli value"
    elif amount.nanos > MAX_INT64 * 10**9:
        return f"must not be larger than {MAX_INT64}"
    return ""
