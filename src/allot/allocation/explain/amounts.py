"""Amounts of capacities and counters in messages, in readable units."""

from __future__ import annotations

from typing import Final

from allot.api.quantity import Quantity
from allot.api.slices import CapacityRequestPolicy

_WHOLE: Final = 10**9
_BINARY: Final = tuple((f"{unit}i", 1024**power) for power, unit in enumerate("KMGTPE", 1))[::-1]
_DECIMAL: Final = tuple((unit, 1000**power) for power, unit in enumerate("kMGTPE", 1))[::-1]
_ENOUGH_DIGITS: Final = 100
"""A rounded amount keeps at least so many of its unit: the error is less than one percent."""


def amount(nanos: int, like: Quantity) -> Quantity:
    """An amount in billionths, in the format of another."""
    whole, rest = divmod(nanos, _WHOLE)
    if rest:
        return Quantity(nanos, like.format, "", -9, False)
    return Quantity.of(whole, like.format)


def readable(quantity: Quantity) -> str:
    """The amount, rounded down to a readable unit: `5112Mi` for `5360393360`."""
    shown = rounded_down(quantity)
    return str(shown if shown is not None else quantity)


def readable_need(quantity: Quantity) -> str:
    """The same, rounded up."""
    shown = _rounded(quantity, up=True)
    return str(shown if shown is not None else quantity)


def rounded_down(quantity: Quantity) -> Quantity | None:
    """The largest amount in a readable unit that is not more; None if the amount is short already."""
    return _rounded(quantity, up=False)


def _rounded(quantity: Quantity, *, up: bool) -> Quantity | None:
    text = str(quantity)
    if len(text.rstrip("kKMGTPEimun")) <= len(str(_ENOUGH_DIGITS)) + 1:
        return None
    units = _BINARY if quantity.format == "BinarySI" else _DECIMAL
    whole = quantity.nanos // _WHOLE
    for unit, size in units:
        if abs(whole) >= size * _ENOUGH_DIGITS:
            number, rest = divmod(quantity.nanos, size * _WHOLE)
            if not rest:
                return None
            return Quantity.parse(f"{number + up}{unit}")
    number, rest = divmod(quantity.nanos, _WHOLE // 1000)
    return Quantity.parse(f"{number + (up and bool(rest))}m") if rest else None


def policy_text(policy: CapacityRequestPolicy) -> str:
    """The amounts that a policy allows."""
    if policy.valid_values:
        return f"one of {', '.join(map(str, policy.valid_values))}"
    limits = policy.valid_range
    if limits is None:
        return "any amount"
    parts = [f"from {limits.min}"] if limits.min is not None else []
    parts += [f"to {limits.max}"] if limits.max is not None else []
    parts += [f"in steps of {limits.step}"] if limits.step is not None else []
    return " ".join(parts) or "any amount"


def counted(number: int, noun: str) -> str:
    """`1 device`, `2 devices`."""
    return f"{number} {noun}{'s' * (number != 1)}"
