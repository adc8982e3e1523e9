"""CSINodes: the drivers of a node, which stay as they are but for what can be allocated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from allot.api.raw import RawObject
from allot.validation.container_resources import NOT_NEGATIVE
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    invalid,
    required,
)
from allot.validation.formats import byte_length, label_key_problems
from allot.validation.metadata import IMMUTABLE
from allot.validation.names import validate_driver_name
from allot.validation.parts import Part, part, parts, text, texts

DRIVERS: Final = FieldPath("spec") / "drivers"
MAX_NODE_ID: Final = 256


def validate_csi_node(node: RawObject) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, driver in enumerate(parts(node.get("spec", default={}), "drivers")):
        path = DRIVERS @ index
        yield from _validate_driver(driver, path)
        name = text(driver, "name")
        if name in names:
            yield duplicate(path / "name", name)
        names.add(name)


def _validate_driver(driver: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from validate_driver_name(text(driver, "name"), path / "name")
    node_id = text(driver, "nodeID")
    if not node_id:
        yield required(path / "nodeID")
    elif byte_length(node_id) > MAX_NODE_ID:
        yield invalid(path / "nodeID", node_id, f"must be {MAX_NODE_ID} characters or less")
    count = part(driver, "allocatable").get("count") or 0
    if count < 0:
        path_of_count = path / "allocatable" / "count"
        yield invalid(path_of_count, count, NOT_NEGATIVE)
    yield from _validate_topology_keys(texts(driver, "topologyKeys"), path)


def _validate_topology_keys(keys: tuple[str, ...], path: FieldPath) -> Iterator[FieldError]:
    """Errors are reported at the driver."""
    seen: set[str] = set()
    for key in keys:
        if not key:
            yield required(path)
        if key in seen:
            yield duplicate(path, key)
        seen.add(key)
        for problem in label_key_problems(key):
            yield invalid(path, key, problem)


def validate_csi_node_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    """A driver comes and goes, but keeps its id of the node and its topology."""
    after: dict[str, list[Part]] = {}
    for driver in parts(new.get("spec", default={}), "drivers"):
        after.setdefault(text(driver, "name"), []).append(driver)
    for before in parts(old.get("spec", default={}), "drivers"):
        for driver in after.get(text(before, "name"), ()):
            if _kept(driver) != _kept(before):
                yield invalid(DRIVERS, _shown(driver), IMMUTABLE)


def _kept(driver: Part) -> tuple[str, tuple[str, ...]]:
    return text(driver, "nodeID"), texts(driver, "topologyKeys")


def _shown(driver: Part) -> dict[str, Any]:
    """As Kubernetes has it in memory."""
    return {
        "Name": text(driver, "name"),
        "NodeID": text(driver, "nodeID"),
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None,
    }
