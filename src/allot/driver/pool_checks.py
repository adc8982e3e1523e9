"""Validates the pools of a hardware description by the API's rules. Errors have their path in the description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from allot.api.meta import ObjectMeta
from allot.api.slices import ResourceSlice, ResourceSliceSpec
from allot.driver.expansion import ExpansionError, origins
from allot.driver.hardware import PoolKey, PoolSource, parts_of, slices_of
from allot.driver.slices import slice_name
from allot.validation.context import Context
from allot.validation.fields import FieldError
from allot.validation.resource_slice import validate_slice

_ITEM: Final = re.compile(r"spec\.(devices|sharedCounters)\[(\d+)\](.*)", re.DOTALL).fullmatch
_FIELDS: Final = {"devices": "devices", "sharedCounters": "counterSets"}


class _Origin(NamedTuple):
    """An expanded device or counter set, and the entry of the description that it comes from."""

    entry: str
    name: str


Origins = dict[str, list[_Origin]]
"""By the field of the slice."""


def check_pool(key: PoolKey, source: PoolSource) -> None:
    """Raises `ExpansionError` for the first problem."""
    try:
        parts = parts_of(key, source)
    except ExpansionError as error:
        raise ExpansionError(f"{source.place}.{error.field}", error.problem) from None
    known = _origins(source, parts)
    _check_names(parts, known)
    begin = dict.fromkeys(known, 0)
    for index, spec in enumerate(slices_of(source, parts)):
        metadata = ObjectMeta(name=slice_name(*key, index))
        found = validate_slice(ResourceSlice(metadata, spec), Context())
        # The name is made of driver and pool, about which the spec says more.
        for wrong in sorted(found, key=lambda error: str(error.path).startswith("metadata")):
            raise _misfit(wrong, source.place, known, begin)
        begin["devices"] += len(spec.devices or ())
        begin["sharedCounters"] += len(spec.shared_counters or ())


def _origins(source: PoolSource, parts: tuple[ResourceSliceSpec, ...]) -> Origins:
    template = source.template
    places = (
        [(source.place, template)]
        if not template.slices
        else [
            (f"{source.place}.slices[{index}]", part) for index, part in enumerate(template.slices)
        ]
    )
    found: Origins = {"devices": [], "sharedCounters": []}
    for (place, written), part in zip(places, parts, strict=True):
        found["devices"] += _paired(f"{place}.devices", written.devices, part.devices or ())
        found["sharedCounters"] += _paired(
            f"{place}.counterSets", written.counter_sets, part.shared_counters or ()
        )
    return found


def _paired(
    place: str, entries: list[dict[str, Any]], things: tuple[Any, ...]
) -> Iterator[_Origin]:
    for number, thing in zip(origins(entries), things, strict=True):
        yield _Origin(f"{place}[{number}]", thing.name)


def _misfit(error: FieldError, place: str, known: Origins, begin: dict[str, int]) -> ExpansionError:
    """The error with its path in the file: the entry, and the expanded item."""
    path = str(error.path)
    found = _ITEM(path)
    if found is None:
        field = path.removeprefix("spec").replace(".pool.name", ".name")
        return ExpansionError(f"{place}{field}", error.message)
    origin = known[found[1]][begin[found[1]] + int(found[2])]
    return ExpansionError(f"{origin.entry}{found[3]}", f"{error.message} (in {origin.name})")


def _check_names(parts: tuple[ResourceSliceSpec, ...], known: Origins) -> None:
    """Checks across slices: duplicate names and unknown counter sets."""
    for things in known.values():
        seen: set[str] = set()
        for entry, name in things:
            if name in seen:
                raise ExpansionError(f"{entry}.name", f"duplicate name {name}; use {{i}}")
            seen.add(name)
    counter_sets = {each.name for part in parts for each in part.shared_counters or ()}
    devices = [device for part in parts for device in part.devices or ()]
    for origin, device in zip(known["devices"], devices, strict=True):
        for consumed in device.consumes_counters:
            if consumed.counter_set not in counter_sets:
                raise ExpansionError(
                    f"{origin.entry}.consumesCounters",
                    f"{device.name} consumes counters of unknown counter set {consumed.counter_set}",
                )
