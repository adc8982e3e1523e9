"""Writes a hardware description of published slices, from which the same slices are rendered.

Everything that scheduling sees is kept: devices with all their fields, their order, how pools are cut into slices, and
which nodes can use them; of nodes labels, taints and capacity. Names of slices and generations are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.base import replace
from allot.api.classes import DeviceClass
from allot.api.core import Node
from allot.api.decoding import to_builtin
from allot.api.slices import ResourcePool, ResourceSlice, ResourceSliceSpec
from allot.driver.hardware import PoolKey
from allot.driver.placeholders import literal
from allot.driver.slices import cut_into_slices, numbered

_OWN_LABELS: Final = "allot.dev/"
_DEFAULT_LABELS: Final = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
_LIFECYCLE_TAINTS: Final = "node.kubernetes.io/"
_SELECTION: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_SCALARS: Final = ("string", "int", "bool")
_LISTS: Final = ("strings", "ints", "bools")
_numbered_name: Final = re.compile(r"(?P<stem>.*?)(?P<number>0|[1-9]\d*)").fullmatch


class Captured(NamedTuple):
    """The description, as it is written in YAML, and what it could not keep."""

    document: dict[str, Any]
    notes: tuple[str, ...]


def capture_hardware(
    slices: Iterable[ResourceSlice],
    nodes: Iterable[Node] = (),
    classes: Iterable[DeviceClass] = (),
    *,
    name: str = "",
) -> Captured:
    """Nodes that only slices name are described, too."""
    notes: list[str] = []
    pools = dict(_newest(slices, notes))
    known = {node.metadata.name: node for node in nodes}
    names = sorted({*known, *_named_nodes(pools.values())})
    document: dict[str, Any] = {"name": name} if name else {}
    groups = _node_groups(names, known)
    if groups:
        document["nodes"] = groups[0] if len(groups) == 1 else groups
    written = list(_pools(pools, names))
    if written:
        document["pools"] = written
    described = sorted(classes, key=lambda each: each.metadata.name)
    if described:
        document["deviceClasses"] = [
            {"name": each.metadata.name, **_plain(each.spec)} for each in described
        ]
    return Captured(document, tuple(notes))


def _plain(value: Any) -> dict[str, Any]:
    """The object as parsed JSON."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value, enc_hook=to_builtin))
    return plain


# --- nodes ---


def _named_nodes(pools: Iterable[Sequence[ResourceSliceSpec]]) -> Iterator[str]:
    for parts in pools:
        for part in parts:
            if part.node_name:
                yield part.node_name
            yield from (device.node_name for device in part.devices or () if device.node_name)


def _node_groups(names: Sequence[str], known: Mapping[str, Node]) -> list[dict[str, Any]]:
    """Nodes with equal features together, in the order of their first names."""
    members: dict[bytes, list[str]] = {}
    features: dict[bytes, dict[str, Any]] = {}
    for name in names:
        found = _features(known[name]) if name in known else {}
        key = msgspec.json.encode(found, order="deterministic")
        members.setdefault(key, []).append(name)
        features[key] = found
    is_only_group = len(members) == 1
    return [{**_written_names(members[key], is_only_group), **features[key]} for key in members]


def _written_names(names: Sequence[str], is_only_group: bool) -> dict[str, Any]:
    """A pattern where that is enough, so that the description can be used with another number of nodes."""
    if not is_only_group:
        return {"names": list(names)}
    if len(names) == 1:
        return {"name": literal(names[0])}
    found = [_numbered_name(name) for name in names]
    parts = [(match["stem"], int(match["number"])) for match in found if match is not None]
    stems = {stem for stem, _ in parts}
    if len(stems) == 1 and sorted(number for _, number in parts) == list(range(len(names))):
        return {"count": len(names), "name": f"{literal(stems.pop())}{{node}}"}
    return {"names": list(names)}


def _features(node: Node) -> dict[str, Any]:
    labels = {
        name: literal(value)
        for name, value in sorted(node.metadata.labels.items())
        if not name.startswith(_OWN_LABELS)
        and _DEFAULT_LABELS.get(name) != value
        and not (name == "kubernetes.io/hostname" and value == node.metadata.name)
    }
    taints = [
        _literal({field: taint[field] for field in ("key", "value", "effect") if taint.get(field)})
        for taint in node.taints
        if not taint.get("key", "").startswith(_LIFECYCLE_TAINTS)
    ]
    capacity = dict(node.get("status", "capacity", default={}) or {})
    allocatable = dict(node.get("status", "allocatable", default={}) or {})
    written = {
        "labels": labels,
        "taints": taints,
        "capacity": capacity,
        "allocatable": {
            name: amount for name, amount in allocatable.items() if capacity.get(name) != amount
        },
    }
    return {field: value for field, value in written.items() if value}


# --- pools ---


def _newest(
    slices: Iterable[ResourceSlice], notes: list[str]
) -> Iterator[tuple[PoolKey, list[ResourceSliceSpec]]]:
    """The pools with the slices of their newest generation, in the order of their names."""
    by_pool: dict[PoolKey, list[ResourceSlice]] = {}
    for each in slices:
        by_pool.setdefault(PoolKey(each.spec.driver, each.spec.pool.name), []).append(each)
    for key, found in sorted(by_pool.items()):
        generation = max(each.spec.pool.generation for each in found)
        newest = [each for each in found if each.spec.pool.generation == generation]
        announced = newest[0].spec.pool.resource_slice_count
        if len(newest) != announced:
            notes.append(
                f"pool {key.pool} of {key.driver} is incomplete: {len(newest)} of {announced} slices;"
                " it is described as if these were all"
            )
        newest.sort(key=lambda each: each.metadata.name)
        yield key, [_without_generation(each.spec) for each in newest]


def _without_generation(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    return replace(
        spec,
        pool=ResourcePool(spec.pool.name),
        devices=spec.devices or None,
        shared_counters=spec.shared_counters or None,
    )


def _pools(
    pools: Mapping[PoolKey, Sequence[ResourceSliceSpec]], names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Pools of nodes that differ by the node's name only are one entry."""
    owners: dict[bytes, list[str]] = {}
    entries: dict[bytes, dict[str, Any]] = {}
    for key, parts in pools.items():
        node = parts[0].node_name if len({part.node_name for part in parts}) == 1 else None
        written = _pool(key, parts, node)
        same = msgspec.json.encode(written, order="deterministic")
        entries[same] = written
        owners.setdefault(same, []).extend([node] if node else [])
    for same, written in entries.items():
        nodes = owners[same]
        if nodes and sorted(nodes) != list(names):
            head = ("driver", "name")
            yield {
                **{field: value for field, value in written.items() if field in head},
                "nodeNames": nodes,
                **{field: value for field, value in written.items() if field not in head},
            }
        else:
            yield written


def _pool(key: PoolKey, parts: Sequence[ResourceSliceSpec], node: str | None) -> dict[str, Any]:
    written: dict[str, Any] = {"driver": key.driver}
    if node is None:
        written["name"] = literal(key.pool)
    elif key.pool != node:
        written["name"] = "{nodeName}".join(map(literal, key.pool.split(node)))
    selections = [_selection(part) for part in parts]
    common = all(each == selections[0] for each in selections)
    if common and node is None:
        written |= selections[0]
    fields = [_slice(part) for part in parts]
    merged = _merged(parts)
    if common and cut_into_slices(merged) == numbered(parts):
        return {**written, **_slice(merged)}
    if not common:
        fields = [{**each, **rest} for each, rest in zip(selections, fields, strict=True)]
    return {**written, "slices": fields}


def _merged(parts: Sequence[ResourceSliceSpec]) -> ResourceSliceSpec:
    """The pool as one slice; as it was published if that was the cut of `cut_into_slices`."""
    attributes = [part.partition_type_attribute for part in parts if part.devices]
    return replace(
        parts[0],
        partition_type_attribute=attributes[0] if attributes else None,
        shared_counters=tuple(each for part in parts for each in part.shared_counters or ()),
        devices=tuple(each for part in parts for each in part.devices or ()),
    )


def _selection(part: ResourceSliceSpec) -> dict[str, Any]:
    written = _plain(part)
    return {field: written[field] for field in _SELECTION if field in written}


def _slice(part: ResourceSliceSpec) -> dict[str, Any]:
    plain = _plain(part)
    written = {
        "partitionTypeAttribute": plain.get("partitionTypeAttribute"),
        "skipNodeOperations": plain.get("skipNodeOperations"),
        "counterSets": [_counters(each) for each in plain.get("sharedCounters") or ()],
        "devices": [_device(each) for each in plain.get("devices") or ()],
    }
    return {field: value for field, value in written.items() if value}


# --- short forms ---


def _device(device: dict[str, Any]) -> dict[str, Any]:
    if "attributes" in device:
        device["attributes"] = {
            name: _attribute(value) for name, value in device["attributes"].items()
        }
    if "capacity" in device:
        device["capacity"] = {name: _amount(value) for name, value in device["capacity"].items()}
    if "consumesCounters" in device:
        device["consumesCounters"] = [_counters(each) for each in device["consumesCounters"]]
    found: dict[str, Any] = _literal(device)
    return found


def _counters(counter_set: dict[str, Any]) -> dict[str, Any]:
    if "counters" not in counter_set:
        return counter_set
    amounts = {name: _amount(value) for name, value in counter_set["counters"].items()}
    return {**counter_set, "counters": amounts}


def _amount(written: dict[str, Any]) -> Any:
    return written["value"] if written.keys() == {"value"} else written


def _attribute(written: dict[str, Any]) -> Any:
    if len(written) != 1:
        return written
    ((kind, value),) = written.items()
    return value if kind in _SCALARS or (kind in _LISTS and value) else written


def _literal(value: Any) -> Any:
    """The value with all braces in its texts doubled."""
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, dict):
        return {literal(name): _literal(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_literal(each) for each in value]
    return value
