"""Request policies of consumable capacity (KEP-5075): which amounts a request may get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
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
    for index, (value, following) in enumerate(pairwise(values), 1):
        if value > following:
            yield invalid(path @ index, str(following), "values must be sorted in ascending order")
    if len(values) > MAX_VALID_VALUES:
        yield too_many(path, len(values), MAX_VALID_VALUES)
        values = ()  # too many to look for the default among them
    found = False
    seen: set[str] = set()
    for index, value in enumerate(values):
        # Without fractions, values count as the same when they round up to the same number.
        key = value.decimal_text() if fractional else str(value.value())
        if key in seen:
            yield duplicate(path @ index, key)
        seen.add(key)
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
    amounts = {"default": default, "min": least, "max": most, "step": range_.step}
    given = {name: amount for name, amount in amounts.items() if amount is not None}
    in_milli = fractional and not all(amount.is_whole() for amount in given.values())
    if in_milli:
        finer = [
            invalid(path / name, str(amount), "value cannot be represented as a milli value")
            for name, amount in given.items()
            if amount.milli_value() * 10**6 != amount.nanos
        ]
        yield from finer
        if finer:
            return
    if range_.step is not None:
        yield from _validate_step(range_.step, given, capacity, path, in_milli)


def _validate_step(
    step: Quantity,
    given: Mapping[str, Quantity],
    capacity: Quantity,
    path: FieldPath,
    in_milli: bool,
) -> Iterator[FieldError]:
    """Default and maximum must be reachable from the minimum in whole steps."""
    least = given["min"]
    if step.sign <= 0:
        yield invalid(path / "step", str(step), "must be greater than zero")
        return
    if least + step > capacity:
        yield invalid(
            path / "step",
            str(step),
            f"one step {least + step} is larger than capacity value: {capacity}",
        )
    if not in_milli:
        outside = [
            invalid(path / name, str(amount), problem)
            for name, amount in given.items()
            if (problem := _int64_problem(amount))
        ]
        yield from outside
        if outside:
            return
    scale = -3 if in_milli else 0
    start, stride = least.scaled_value(scale), step.scaled_value(scale)
    for name in ("default", "max"):
        amount = given.get(name)
        if amount is not None and (amount.scaled_value(scale) - start) % stride:
            yield invalid(
                path / "step",
                str(amount),
                f"value is not a multiple of a given step ({step}) from ({least})",
            )


def _int64_problem(amount: Quantity) -> str:
    """Why steps cannot be counted with this amount: they are counted in int64."""
    if amount.sign < 0:
        return "must be greater than or equal to 0"
    return f"must not be larger than {MAX_INT64}" if amount.nanos > MAX_INT64 * 10**9 else ""
