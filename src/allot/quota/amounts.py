"""Amounts by quota entry, and arithmetic with them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from allot.api.quantity import Quantity, QuantityError, quantity_from_json

Amounts = dict[str, Quantity]

NONE: Final = Quantity.of(0)
ONE: Final = Quantity.of(1)
COUNT: Final = "count/"
REQUESTS: Final = "requests."
LIMITS: Final = "limits."


def read_amounts(raw: Any) -> Amounts:
    """The amounts in a resource list of the API. Invalid quantities count as zero."""
    amounts: Amounts = {}
    for name, value in (raw or {}).items():
        try:
            amounts[name] = quantity_from_json(value)
        except QuantityError:
            continue
    return amounts


def as_json(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in sorted(amounts.items())}


def growth(new: Mapping[str, Quantity], old: Mapping[str, Quantity]) -> Amounts:
    """The increase from `old` to `new`; entries that do not grow are left out."""
    grown = {name: amount - old.get(name, NONE) for name, amount in new.items()}
    return {name: amount for name, amount in grown.items() if amount.sign > 0}


def only(amounts: Mapping[str, Quantity], names: Container[str]) -> Amounts:
    return {name: amount for name, amount in amounts.items() if name in names}


def listed(amounts: Mapping[str, Quantity], names: Iterable[str]) -> str:
    """As error messages show them: `pods=1,requests.cpu=2`."""
    return ",".join(f"{name}={amounts.get(name, NONE)}" for name in sorted(names))
