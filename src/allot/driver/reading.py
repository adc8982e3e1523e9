"""Reads and validates a hardware description, including the API's validation of every device.

nodes: {count: 2, labels: {…}, capacity: {cpu: 64}}
pools:
- driver: gpu.example.com
  devices:
  - {name: "gpu-{i}", count: 8, attributes: {model: A100}, capacity: {memory: 80Gi}}
deviceClasses:
- {name: gpu, selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from allot.api.classes import DeviceClass, DeviceClassSpec
from allot.api.meta import ObjectMeta
from allot.api.quantity import QuantityError, quantity_from_json
from allot.api.raw import RawObject
from allot.api.similar_names import did_you_mean, similar_names
from allot.api.slices import ResourceSlice, ResourceSliceSpec
from allot.driver.errors import HardwareError
from allot.driver.expansion import (
    MAX_COUNT,
    ExpansionError,
    PoolTemplate,
    decode_written,
    origins,
)
from allot.driver.hardware import (
    Hardware,
    HardwareNode,
    NodeFeatures,
    PoolKey,
    PoolSource,
    pool_of,
)
from allot.driver.placeholders import PlaceholderError, filled
from allot.driver.slices import cut_into_slices, slice_name
from allot.validation.cel_checker import CelChecker
from allot.validation.context import Context
from allot.validation.core_objects import validate_node
from allot.validation.device_class import validate_class
from allot.validation.fields import FieldError
from allot.validation.metadata import validate_metadata
from allot.validation.resource_slice import validate_slice


class _Nodes(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    count: int = 1
    name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[dict[str, Any]] = []
    capacity: dict[str, str | int] = {}
    allocatable: dict[str, str | int] = {}


class _Document(msgspec.Struct, forbid_unknown_fields=True, rename="camel", frozen=True):
    name: str = ""
    description: str = ""
    nodes: _Nodes = _Nodes(count=0)
    pools: list[PoolTemplate] = []
    device_classes: list[dict[str, Any]] = []


def read_hardware(document: Any, source: str, name: str, count: int | None = None) -> Hardware:
    """The hardware of a parsed YAML document; with `count` nodes, if that is not None.

    `source` names the file in errors. `name` is the default of the document's name.
    """
    try:
        return _read(document, name, count)
    except ExpansionError as error:
        raise HardwareError(source, error.field, error.problem) from None


def _read(document: Any, name: str, count: int | None) -> Hardware:
    written = _converted(document)
    name = written.name or name
    nodes, features = _nodes(written.nodes, name, count)
    sources: dict[PoolKey, PoolSource] = {}
    for index, template in enumerate(written.pools):
        place = f"pools[{index}]"
        for node in nodes if template.is_per_node else (None,):
            key = PoolKey(template.driver, _pool_name(template, node, name, place))
            if key in sources:
                problem = f"duplicate pool {key.pool} of {key.driver}, also in {sources[key].place}"
                raise ExpansionError(f"{place}.name", problem)
            sources[key] = PoolSource(template, place, node)
    # The first and the last pool of a template have the smallest and the largest indexes.
    ends = {source.place: key for key, source in reversed(sources.items())}
    ends_too = {source.place: key for key, source in sources.items()}
    for key in dict.fromkeys((*ends.values(), *ends_too.values())):
        _check_pool(key, sources[key])
    classes = tuple(_classes(written.device_classes))
    return Hardware(name, nodes, features, sources, classes, written.description)


_MISFIT: Final = re.compile(r"(?P<problem>.*?)(?: - at `\$\.?(?P<field>.*)`)?", re.DOTALL).fullmatch


def _converted(document: Any) -> _Document:
    if not isinstance(document, dict):
        raise ExpansionError("", "a hardware description is a mapping with nodes and pools")
    try:
        return msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        found = _MISFIT(str(error))
        assert found is not None
        field, problem = found["field"] or "", found["problem"].replace("`", "")
        if problem.startswith(_UNKNOWN):
            name = problem.removeprefix(_UNKNOWN)
            similar = similar_names(name, _fields_at(field), min_similarity=_TYPO)
            problem = f"there is no field {name}{did_you_mean(similar)}"
        raise ExpansionError(field, problem) from None


_UNKNOWN: Final = "Object contains unknown field "
_TYPO: Final = 0.6
"""The set of fields is closed, so that the most similar one is meant."""


def _fields_at(path: str) -> list[str]:
    kind: type[msgspec.Struct] = _Document
    if path:
        kind = _Nodes if path == "nodes" else PoolTemplate
    return [field.encode_name for field in msgspec.structs.fields(kind)]


# --- nodes ---


def _nodes(
    written: _Nodes, name: str, count: int | None
) -> tuple[tuple[HardwareNode, ...], NodeFeatures]:
    count = written.count if count is None else count
    if not 0 <= count <= MAX_COUNT:
        raise ExpansionError("nodes.count", f"must be a number from 0 to {MAX_COUNT}")
    pattern = written.name or f"{name}-{{node}}"
    nodes = []
    seen: set[str] = set()
    for index in range(count):
        node_name = _filled(pattern, {"node": index}, "nodes.name")
        if node_name in seen:
            raise ExpansionError("nodes.name", f"duplicate node name {node_name}; use {{node}}")
        seen.add(node_name)
        nodes.append(HardwareNode(index, node_name))
    features = NodeFeatures(
        written.labels,
        written.annotations,
        written.taints,
        _amounts(written.capacity, "nodes.capacity"),
        _amounts(written.allocatable, "nodes.allocatable"),
    )
    for node in (*nodes[:1], *nodes[-1:]):
        _check_node(node, features)
    return tuple(nodes), features


def _amounts(written: dict[str, str | int], place: str) -> dict[str, str]:
    for name, amount in written.items():
        try:
            quantity_from_json(amount)
        except QuantityError as error:
            raise ExpansionError(f"{place}.{name}", f"{amount!r}: {error}") from None
    return {name: str(amount) for name, amount in written.items()}


def _check_node(node: HardwareNode, features: NodeFeatures) -> None:
    labels, annotations, taints = (
        _filled(part, node.placeholders, f"nodes.{field}")
        for field, part in zip(features._fields, features[:3], strict=False)
    )
    metadata = ObjectMeta(name=node.name, labels=labels, annotations=annotations)
    for error in validate_metadata(metadata, namespaced=False):
        raise ExpansionError(f"nodes.{str(error.path).removeprefix('metadata.')}", error.message)
    for error in validate_node(RawObject({"spec": {"taints": taints}})):
        raise ExpansionError(f"nodes.{str(error.path).removeprefix('spec.')}", error.message)


def _filled(value: Any, placeholders: dict[str, int | str], place: str) -> Any:
    try:
        return filled(value, placeholders)
    except PlaceholderError as error:
        raise ExpansionError(place, str(error)) from None


# --- pools ---


def _pool_name(template: PoolTemplate, node: HardwareNode | None, hardware: str, place: str) -> str:
    pattern = template.name or ("{nodeName}" if node is not None else hardware)
    name: str = _filled(pattern, node.placeholders if node else {}, f"{place}.name")
    return name


def _check_pool(key: PoolKey, source: PoolSource) -> None:
    try:
        pool = pool_of(key, source)
    except ExpansionError as error:
        raise ExpansionError(f"{source.place}.{error.field}", error.problem) from None
    entries = {
        "devices": (list(origins(source.template.devices)), pool.devices or ()),
        "sharedCounters": (list(origins(source.template.counter_sets)), pool.shared_counters or ()),
    }
    _check_names(pool, source.place, entries)
    begin = dict.fromkeys(entries, 0)
    for index, part in enumerate(cut_into_slices(pool)):
        metadata = ObjectMeta(name=slice_name(*key, index))
        found = validate_slice(ResourceSlice(metadata, part), Context())
        # The name is made of driver and pool, about which the spec says more.
        for wrong in sorted(found, key=lambda error: str(error.path).startswith("metadata")):
            raise _misfit(wrong, source.place, entries, begin)
        begin["devices"] += len(part.devices or ())
        begin["sharedCounters"] += len(part.shared_counters or ())


_ITEM: Final = re.compile(r"spec\.(devices|sharedCounters)\[(\d+)\](.*)", re.DOTALL).fullmatch
_FIELDS: Final = {"devices": "devices", "sharedCounters": "counterSets"}

Entries = dict[str, tuple[list[int], tuple[Any, ...]]]


def _misfit(
    error: FieldError, place: str, entries: Entries, begin: dict[str, int]
) -> ExpansionError:
    """The error with its path in the file: the entry, and the expanded item."""
    path = str(error.path)
    found = _ITEM(path)
    if found is None:
        field = path.removeprefix("spec").replace(".pool.name", ".name")
        return ExpansionError(f"{place}{field}", error.message)
    index = begin[found[1]] + int(found[2])
    numbers, things = entries[found[1]]
    field = f"{place}.{_FIELDS[found[1]]}[{numbers[index]}]{found[3]}"
    return ExpansionError(field, f"{error.message} (in {things[index].name})")


def _check_names(pool: ResourceSliceSpec, place: str, entries: Entries) -> None:
    """Checks across slices: duplicate names and unknown counter sets."""
    for field, (numbers, things) in entries.items():
        seen: set[str] = set()
        for number, thing in zip(numbers, things, strict=True):
            if thing.name in seen:
                entry = f"{place}.{_FIELDS[field]}[{number}].name"
                raise ExpansionError(entry, f"duplicate name {thing.name}; use {{i}}")
            seen.add(thing.name)
    known = {counter_set.name for counter_set in pool.shared_counters or ()}
    numbers, _ = entries["devices"]
    for number, device in zip(numbers, pool.devices or (), strict=True):
        for consumed in device.consumes_counters:
            if consumed.counter_set not in known:
                entry = f"{place}.devices[{number}].consumesCounters"
                problem = (
                    f"{device.name} consumes counters of unknown counter set {consumed.counter_set}"
                )
                raise ExpansionError(entry, problem)


# --- classes ---


def _classes(entries: list[dict[str, Any]]) -> Iterator[DeviceClass]:
    for index, entry in enumerate(entries):
        place = f"deviceClasses[{index}]"
        name = entry.get("name")
        if not isinstance(name, str):
            raise ExpansionError(f"{place}.name", "a class needs a name")
        rest = {field: value for field, value in entry.items() if field != "name"}
        spec = decode_written(rest, DeviceClassSpec, place)
        device_class = DeviceClass(ObjectMeta(name=name), spec)
        for error in validate_class(device_class, Context(expressions=CelChecker())):
            field = str(error.path).removeprefix("spec.").removeprefix("metadata.")
            raise ExpansionError(f"{place}.{field}", error.message)
        yield device_class
