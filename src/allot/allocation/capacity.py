"""Consumable capacity: how much of a device a request takes (KEP-5075).

Consumption depends only on the request and the device's request policy, so it is computed once per
request and device. Whether that much is left is checked by the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from allot.allocation.errors import AllocationError
from allot.api.quantity import MAX_INT64, MIN_INT64, Quantity
from allot.api.slices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
    unrequested_amount,
)

Consumption = dict[str, Quantity]
"""What a request takes of each capacity of a device."""

_UNREPRESENTABLE: Final = "capacity request cannot be represented in the device's range arithmetic"
_MILLI: Final = 10**6
_WHOLE: Final = 10**9


class CapacityError(AllocationError):
    """The consumption cannot be computed."""


def consumption(
    capacities: Iterable[tuple[str, DeviceCapacity]],
    requested: Mapping[str, Quantity],
    *,
    fractional: bool,
) -> Consumption | None:
    """The consumption of each capacity; None if the device's request policies do not allow the request.

    `CapacityError` if it cannot be computed.
    """
    consumed: Consumption = {}
    capacities = tuple(capacities)
    if not requested.keys() <= {name for name, _ in capacities}:
        return None
    for name, capacity in capacities:
        try:
            amount = _consumed(capacity, requested.get(name), fractional=fractional)
        except CapacityError as error:
            raise CapacityError(f'capacity "{name}": {error}') from None
        if amount.nanos < 0:
            raise CapacityError(f'capacity "{name}": capacity value is negative')
        policy = capacity.request_policy
        if policy is not None and not _is_allowed(amount, policy):
            return None
        consumed[name] = amount
    return consumed


def _consumed(
    capacity: DeviceCapacity, requested: Quantity | None, *, fractional: bool
) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        return unrequested_amount(capacity)
    if policy is None:
        return requested
    limits = policy.valid_range
    if limits is not None and limits.min is not None:
        return _rounded_to_range(requested, limits, limits.min, fractional=fractional)
    return next((value for value in policy.valid_values if value >= requested), requested)


def _rounded_to_range(
    requested: Quantity, limits: CapacityRequestPolicyRange, least: Quantity, *, fractional: bool
) -> Quantity:
    if requested < least:
        return least
    step = limits.step
    if step is None:
        return requested
    bounds = (least, step) if limits.max is None else (least, limits.max, step)
    if fractional and all(_is_milli(bound) for bound in bounds):
        if not _is_milli(requested):
            raise CapacityError(
                f"{_UNREPRESENTABLE}: request {requested} is not a representable milli value"
            )
        amount = _next_step(requested.nanos, least.nanos, step.nanos)
        if amount // _MILLI > MAX_INT64:
            raise CapacityError(
                f"{_UNREPRESENTABLE}: rounding request {requested} up to the next step"
                " passes the milli-value range"
            )
        return _in_format(amount, step)
    if requested.nanos > MAX_INT64 * _WHOLE:
        raise CapacityError(f"{_UNREPRESENTABLE}: request {requested} exceeds MaxInt64")
    amount = _next_step(_whole(requested), _whole(least), _whole(step))
    if amount > MAX_INT64:
        raise CapacityError(
            f"{_UNREPRESENTABLE}: rounding request {requested} up to the next step passes MaxInt64"
        )
    return _in_format(amount * _WHOLE, step)


def _next_step(amount: int, least: int, step: int) -> int:
    return least - (least - amount) // step * step if step > 0 else amount


def _is_milli(quantity: Quantity) -> bool:
    milli, rest = divmod(quantity.nanos, _MILLI)
    return not rest and MIN_INT64 <= milli <= MAX_INT64


def _whole(quantity: Quantity) -> int:
    return -(-quantity.nanos // _WHOLE)


def _in_format(nanos: int, like: Quantity) -> Quantity:
    whole, rest = divmod(nanos, _WHOLE)
    if rest:
        return Quantity(nanos, like.format, "", -3, False)
    return Quantity.of(whole, like.format)


def _is_allowed(amount: Quantity, policy: CapacityRequestPolicy) -> bool:
    if amount is policy.default:
        # Not requested, or requested exactly as the default: Kubernetes does not check it.
        return True
    if policy.valid_range is not None:
        most = policy.valid_range.max
        return most is None or amount <= most
    return not policy.valid_values or amount in policy.valid_values
