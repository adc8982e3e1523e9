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


class SliceTemplate(
    msgspec.Struct, forbid_unknown_fields=True, rename="camel", frozen=True, kw_only=True
):
    """What is in a slice, and which nodes can use it."""

    node_name: str | None = None
    node_selector: dict[str, Any] | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()
    counter_sets: list[dict[str, Any]] = []
    devices: list[dict[str, Any]] = []

    @property
    def selects_nodes(self) -> bool:
        return bool(
            self.node_name or self.node_selector or self.all_nodes or self.per_device_node_selection
        )


class PoolTemplate(SliceTemplate, forbid_unknown_fields=True, rename="camel", frozen=True):
    """The template of a pool. Without a node selection, each node has its own pool.

    `node_names` are the nodes that have one, if not all do. `slices` replaces `counter_sets` and `devices`: the pool is
    published in exactly these slices. What a slice does not say, the pool does.
    """

    driver: str
    name: str = ""
    node_names: list[str] = []
    slices: list[SliceTemplate] = []

    @property
    def is_per_node(self) -> bool:
        if self.selects_nodes:
            return False
        return not self.slices or not all(part.selects_nodes for part in self.slices)


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
) -> tuple[ResourceSliceSpec, ...]:
    """The pool as one slice, which may exceed the API's limits and have both counters and devices, or in its slices."""
    if not template.slices:
        return (_expand_slice(template, template, name, node_name, placeholders),)
    found = []
    for index, part in enumerate(template.slices):
        try:
            found.append(_expand_slice(template, part, name, node_name, placeholders))
        except ExpansionError as error:
            raise ExpansionError(f"slices[{index}].{error.field}", error.problem) from None
    return tuple(found)


def _expand_slice(
    pool: PoolTemplate,
    part: SliceTemplate,
    name: str,
    node_name: str | None,
    placeholders: Mapping[str, int | str],
) -> ResourceSliceSpec:
    selection = part if part.selects_nodes else pool
    selector = selection.node_selector
    return ResourceSliceSpec(
        driver=pool.driver,
        pool=ResourcePool(name),
        node_name=selection.node_name if selection.selects_nodes else node_name,
        node_selector=(
            decode_written(selector, NodeSelector, "nodeSelector") if selector is not None else None
        ),
        all_nodes=selection.all_nodes,
        per_device_node_selection=selection.per_device_node_selection,
        partition_type_attribute=part.partition_type_attribute or pool.partition_type_attribute,
        skip_node_operations=part.skip_node_operations or pool.skip_node_operations,
        shared_counters=tuple(
            _expanded(part.counter_sets, "counterSets", CounterSet, _full_counters, placeholders)
        ),
        devices=tuple(_expanded(part.devices, "devices", Device, _full_device, placeholders)),
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
