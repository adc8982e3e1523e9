"""Expands the template of a pool to its devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from allot.api.decoding import DecodeError, decode
from allot.api.meta import NodeSelector
from allot.api.slices import CounterSet, Device, ResourcePool, ResourceSliceSpec
from allot.api.strictness import strict_issues
from allot.driver.placeholders import PlaceholderError, filled

MAX_COUNT: Final = 100_000

T = TypeVar("T", bound=msgspec.Struct)


class PoolTemplate(msgspec.Struct, forbid_unknown_fields=True, rename="camel", frozen=True):
    """The template of a pool. Without a node selection, each node has its own pool."""

    driver: str
    name: str = ""
    node_selector: dict[str, Any] | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()
    counter_sets: list[dict[str, Any]] = []
    devices: list[dict[str, Any]] = []

    @property
    def is_per_node(self) -> bool:
        return not (self.node_selector or self.all_nodes or self.per_device_node_selection)


class ExpansionError(ValueError):
    """A template is invalid; `field` is the path in the template."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


def expand_pool(
    template: PoolTemplate,
    name: str,
    node_name: str | None,
    placeholders: Mapping[str, int | str],
) -> ResourceSliceSpec:
    """The pool as one slice, which may exceed the API's limits and have both counters and devices."""
    selector = template.node_selector
    return ResourceSliceSpec(
        driver=template.driver,
        pool=ResourcePool(name),
        node_name=node_name,
        node_selector=(
            decode_written(selector, NodeSelector, "nodeSelector") if selector is not None else None
        ),
        all_nodes=template.all_nodes,
        per_device_node_selection=template.per_device_node_selection,
        partition_type_attribute=template.partition_type_attribute,
        skip_node_operations=template.skip_node_operations,
        shared_counters=tuple(
            _expanded(
                template.counter_sets, "counterSets", CounterSet, _full_counters, placeholders
            )
        ),
        devices=tuple(_expanded(template.devices, "devices", Device, _full_device, placeholders)),
    )


def origins(entries: list[dict[str, Any]]) -> Iterator[int]:
    """For each expanded item, the index of its entry."""
    for index, entry in enumerate(entries):
        for _ in range(entry.get("count", 1)):
            yield index


def _expanded(
    entries: list[dict[str, Any]],
    field: str,
    cls: type[T],
    complete: Callable[[dict[str, Any]], dict[str, Any]],
    placeholders: Mapping[str, int | str],
) -> Iterator[T]:
    for index, entry in enumerate(entries):
        place = f"{field}[{index}]"
        rest = {name: value for name, value in entry.items() if name != "count"}
        for number in range(_count(entry, place)):
            try:
                written = filled(rest, {"i": number, **placeholders})
            except PlaceholderError as error:
                raise ExpansionError(place, str(error)) from None
            yield decode_written(complete(written), cls, place)


def _count(entry: Mapping[str, Any], place: str) -> int:
    count = entry.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_COUNT:
        raise ExpansionError(f"{place}.count", f"must be a number from 0 to {MAX_COUNT}")
    return count


def decode_written(written: Any, cls: type[T], place: str) -> T:
    """An API object from parsed YAML. Raises `ExpansionError` for invalid or unknown fields."""
    try:
        body = msgspec.json.encode(written)
        decoded = decode(body, cls, "v1")
    except DecodeError as error:
        raise ExpansionError(_joined(place, error.field), error.problem) from None
    except (TypeError, ValueError) as error:  # such as a YAML date, which JSON does not have
        raise ExpansionError(place, str(error)) from None
    for issue in strict_issues(body, cls, top_level=False):
        known = f"; available: {', '.join(issue.known)}" if issue.known else ""
        raise ExpansionError(_joined(place, issue.path), f"{issue.problem} field{known}")
    return decoded


def _joined(place: str, field: str) -> str:
    return f"{place}.{field}" if field else place


# --- short forms ---


def _full_device(device: dict[str, Any]) -> dict[str, Any]:
    full = dict(device)
    _complete_each(full, "attributes", _full_attribute)
    _complete_each(full, "capacity", _full_amount)
    consumed = full.get("consumesCounters")
    if isinstance(consumed, list):
        full["consumesCounters"] = [
            _full_counters(entry) if isinstance(entry, dict) else entry for entry in consumed
        ]
    return full


def _full_counters(counter_set: dict[str, Any]) -> dict[str, Any]:
    full = dict(counter_set)
    _complete_each(full, "counters", _full_amount)
    return full


def _complete_each(owner: dict[str, Any], field: str, complete: Callable[[Any], Any]) -> None:
    values = owner.get(field)
    if isinstance(values, dict):
        owner[field] = {str(name): complete(value) for name, value in values.items()}


def _full_amount(value: Any) -> Any:
    return {"value": value} if isinstance(value, str | int) else value


def _full_attribute(value: Any) -> Any:
    match value:
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case str():
            return {"string": value}
        case {"int": str(number)} if number.lstrip("-").isdecimal():
            return {**value, "int": int(number)}  # from a placeholder
        case [first, *_]:
            kind = {bool: "bools", int: "ints"}.get(type(first), "strings")
            return {kind: value}
    return value
