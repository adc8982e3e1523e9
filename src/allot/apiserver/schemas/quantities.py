"""Quantities of raw kinds, written as Kubernetes writes them: `1Gi` for `1024Mi`, `1` for `1000m`.

Maps of quantities are resource lists, whose amounts are rounded up to thousandths. Typed kinds have quantities as values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import is_
from typing import Any, Final, NamedTuple

from allot.api.identities import GroupVersionKind
from allot.api.quantity import QuantityError, quantity_from_json
from allot.apiserver.schemas.types import reachable, type_named, type_of

QUANTITY: Final = "quantity"
_MILLI: Final = -3
_MAX_KNOWN: Final = 65_536
_MAX_KNOWN_TEXT: Final = 64
_amounts: Final[dict[Any, Any]] = {}
_resource_amounts: Final[dict[Any, Any]] = {}
"""What amounts are written as, by what they were read as. Few of them are different from each other."""


class _Place(NamedTuple):
    """A field with quantities: its type, empty for a quantity, and whether it is a list or map of them."""

    type: str
    container: str


Places = Mapping[str, _Place]


def with_canonical_quantities(data: dict[str, Any], gvk: GroupVersionKind) -> dict[str, Any]:
    """The object with all its quantities as strings in their usual form; the same one if they are."""
    places = _places_of_kind(gvk)
    return _canonical(data, places) if places else data


def canonical_part(gvk: GroupVersionKind, part: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The same for a top-level field of a kind."""
    place = _places_of_kind(gvk).get(part)
    return lambda data: data if place is None else _canonical(data, _places(place.type))


@cache
def _places_of_kind(gvk: GroupVersionKind) -> Places:
    schema = type_of(gvk)
    return {} if schema is None else _places(schema.name)


@cache
def _places(name: str) -> Places:
    """The fields of a type that are quantities, or have some below them."""
    fields = type_named(name).fields.items()
    return {
        name: _Place("" if field.type == QUANTITY else field.type, field.container)
        for name, field in fields
        if field.type == QUANTITY or (field.is_type and _has_quantities(field.type))
    }


@cache
def _has_quantities(name: str) -> bool:
    return any(
        field.type == QUANTITY
        for type_ in reachable([name]).values()
        for field in type_.fields.values()
    )


def _canonical(data: dict[str, Any], places: Places) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name in places.keys() & data.keys():
        type_, container = places[name]
        value = data[name]
        if value is None:
            continue
        if not type_:
            new = _canonical_amounts(value, container)
        elif container == "list" and isinstance(value, list):
            below = _places(type_)
            new = [_canonical(item, below) if isinstance(item, dict) else item for item in value]
            if all(map(is_, new, value)):
                continue
        elif isinstance(value, dict):
            new = _canonical(value, _places(type_))  # no map has objects with quantities
        else:
            continue
        if new is not value:
            changed[name] = new
    return {**data, **changed} if changed else data


def _canonical_amounts(value: Any, container: str) -> Any:
    if container == "map" and isinstance(value, dict):
        known = _resource_amounts
        for amount in value.values():
            if amount.__class__ is not str or known.get(amount) != amount:
                return {key: resource_amount(each) for key, each in value.items()}
        return value
    return amount_text(value)


def amount_text(value: Any) -> Any:
    """A quantity as a string in its usual form; what is not a quantity as it is."""
    return _remembered(_amounts, value, is_resource=False)


def resource_amount(value: Any) -> Any:
    """The same for an amount in a resource list: null is zero, and fractions of thousandths are rounded up."""
    return _remembered(_resource_amounts, value, is_resource=True)


def _remembered(known: dict[Any, Any], value: Any, *, is_resource: bool) -> Any:
    is_text = value.__class__ is str
    if is_text and value in known:
        return known[value]
    try:
        quantity = quantity_from_json(value)
    except QuantityError:
        return value
    text = str(quantity.round_up(_MILLI) if is_resource else quantity)
    if is_text and len(value) <= _MAX_KNOWN_TEXT:
        if len(known) >= _MAX_KNOWN:
            known.clear()
        known[value] = text
    return text
