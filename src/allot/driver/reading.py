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
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from allot.api.claims import ResourceClaimSpec
from allot.api.classes import DeviceClass, DeviceClassSpec
from allot.api.defaults import default_claim_spec
from allot.api.meta import ObjectMeta
from allot.api.quantity import QuantityError, quantity_from_json
from allot.api.similar_names import did_you_mean, similar_names
from allot.driver.errors import HardwareError
from allot.driver.expansion import (
    MAX_COUNT,
    ExpansionError,
    PoolTemplate,
    SliceTemplate,
    decode_written,
)
from allot.driver.hardware import (
    Hardware,
    HardwareNode,
    NodeFeatures,
    NodeGroup,
    PoolKey,
    PoolSource,
)
from allot.driver.placeholders import PlaceholderError, filled
from allot.driver.pool_checks import check_pool
from allot.validation.cel_checker import CelChecker
from allot.validation.context import Context
from allot.validation.device_class import validate_class
from allot.validation.fields import FieldPath
from allot.validation.metadata import validate_metadata
from allot.validation.nodes import validate_taints
from allot.validation.parts import parts
from allot.validation.resource_claim import validate_claim_spec


class _Nodes(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    count: int = 1
    name: str = ""
    names: list[str] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[dict[str, Any]] = []
    capacity: dict[str, str | int] = {}
    allocatable: dict[str, str | int] = {}


class _Document(msgspec.Struct, forbid_unknown_fields=True, rename="camel", frozen=True):
    name: str = ""
    description: str = ""
    based_on: list[str] = []
    nodes: _Nodes | list[_Nodes] = []
    pools: list[PoolTemplate] = []
    device_classes: list[dict[str, Any]] = []
    example_claim: dict[str, Any] | None = None


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
    groups = _node_groups(written.nodes, name, count)
    nodes = {node.name: node for group in groups for node in group.nodes}
    sources: dict[PoolKey, PoolSource] = {}
    for index, template in enumerate(written.pools):
        place = f"pools[{index}]"
        _check_template(template, nodes, place)
        for node in _nodes_of(template, nodes):
            key = PoolKey(template.driver, _pool_name(template, node, name, place))
            if key in sources:
                problem = f"duplicate pool {key.pool} of {key.driver}, also in {sources[key].place}"
                raise ExpansionError(f"{place}.name", problem)
            sources[key] = PoolSource(template, place, node)
    # The first and the last pool of a template have the smallest and the largest indexes.
    ends = {source.place: key for key, source in reversed(sources.items())}
    ends_too = {source.place: key for key, source in sources.items()}
    for key in dict.fromkeys((*ends.values(), *ends_too.values())):
        check_pool(key, sources[key])
    classes = tuple(_classes(written.device_classes))
    return Hardware(
        name,
        groups,
        sources,
        classes,
        written.description,
        tuple(written.based_on),
        _example(written.example_claim),
    )


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
        kind = PoolTemplate
        if path.startswith("nodes"):
            kind = _Nodes
        elif "slices" in path:
            kind = SliceTemplate
    return [field.encode_name for field in msgspec.structs.fields(kind)]


# --- nodes ---


def _node_groups(
    written: _Nodes | list[_Nodes], name: str, count: int | None
) -> tuple[NodeGroup, ...]:
    """The groups; the numbers of nodes continue from one to the next."""
    entries = written if isinstance(written, list) else [written]
    if count is not None and not entries:
        entries = [_Nodes()]
    if count is not None and (len(entries) > 1 or entries[0].names):
        raise ExpansionError("nodes", "=N needs one group of nodes, without `names`")
    groups: list[NodeGroup] = []
    seen: dict[str, str] = {}
    for index, entry in enumerate(entries):
        place = f"nodes[{index}]" if isinstance(written, list) else "nodes"
        names = _node_names(entry, name, count, len(seen), place)
        nodes = []
        for node_name in names:
            if node_name in seen:
                problem = f"duplicate node name {node_name}; use {{node}}"
                raise ExpansionError(f"{place}.name", problem)
            nodes.append(HardwareNode(len(seen), node_name))
            seen[node_name] = place
        features = NodeFeatures(
            entry.labels,
            entry.annotations,
            entry.taints,
            _amounts(entry.capacity, f"{place}.capacity"),
            _amounts(entry.allocatable, f"{place}.allocatable"),
        )
        for node in (*nodes[:1], *nodes[-1:]):
            _check_node(node, features, place)
        groups.append(NodeGroup(tuple(nodes), features))
    return tuple(groups)


def _node_names(
    written: _Nodes, name: str, count: int | None, first: int, place: str
) -> Iterator[str]:
    if written.names:
        yield from written.names
        return
    pattern = written.name or f"{name}-{{node}}"
    if count is not None and count > 1 and "{" not in pattern:
        pattern += "-{node}"
    count = written.count if count is None else count
    if not 0 <= count <= MAX_COUNT:
        raise ExpansionError(f"{place}.count", f"must be a number from 0 to {MAX_COUNT}")
    for number in range(first, first + count):
        yield _filled(pattern, {"node": number}, f"{place}.name")


def _amounts(written: dict[str, str | int], place: str) -> dict[str, str]:
    for name, amount in written.items():
        try:
            quantity_from_json(amount)
        except QuantityError as error:
            raise ExpansionError(f"{place}.{name}", f"{amount!r}: {error}") from None
    return {name: str(amount) for name, amount in written.items()}


def _check_node(node: HardwareNode, features: NodeFeatures, place: str) -> None:
    labels, annotations, taints = (
        _filled(part, node.placeholders, f"{place}.{field}")
        for field, part in zip(features._fields, features[:3], strict=False)
    )
    metadata = ObjectMeta(name=node.name, labels=labels, annotations=annotations)
    for error in validate_metadata(metadata, namespaced=False):
        raise ExpansionError(f"{place}.{str(error.path).removeprefix('metadata.')}", error.message)
    for error in validate_taints(parts({"taints": taints}, "taints"), FieldPath("taints")):
        raise ExpansionError(f"{place}.{error.path}", error.message)


def _filled(value: Any, placeholders: dict[str, int | str], place: str) -> Any:
    try:
        return filled(value, placeholders)
    except PlaceholderError as error:
        raise ExpansionError(place, str(error)) from None


# --- pools ---


def _check_template(template: PoolTemplate, nodes: Mapping[str, HardwareNode], place: str) -> None:
    if template.slices and (template.devices or template.counter_sets):
        raise ExpansionError(f"{place}.slices", "not together with devices or counterSets")
    if template.node_names and not template.is_per_node:
        raise ExpansionError(f"{place}.nodeNames", "not together with a node selection")
    for index, node_name in enumerate(template.node_names):
        if node_name not in nodes:
            similar = did_you_mean(similar_names(node_name, nodes))
            problem = f"there is no node {node_name}{similar}"
            raise ExpansionError(f"{place}.nodeNames[{index}]", problem)


def _nodes_of(
    template: PoolTemplate, nodes: Mapping[str, HardwareNode]
) -> Iterable[HardwareNode | None]:
    """The nodes that have a pool of their own; None for a pool that nodes share."""
    if not template.is_per_node:
        return (None,)
    if template.node_names:
        return [nodes[name] for name in dict.fromkeys(template.node_names)]
    return nodes.values()


def _pool_name(template: PoolTemplate, node: HardwareNode | None, hardware: str, place: str) -> str:
    pattern = template.name or ("{nodeName}" if node is not None else hardware)
    name: str = _filled(pattern, node.placeholders if node else {}, f"{place}.name")
    return name


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


# --- the example ---


def _example(written: dict[str, Any] | None) -> ResourceClaimSpec | None:
    if written is None:
        return None
    place = "exampleClaim"
    spec = default_claim_spec(decode_written(written, ResourceClaimSpec, place))
    context = Context(expressions=CelChecker())
    for error in validate_claim_spec(spec, FieldPath(place), context):
        raise ExpansionError(str(error.path), error.message)
    return spec
