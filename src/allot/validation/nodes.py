"""Nodes: taints, addresses of pods, and amounts of resources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.api.quantity import QuantityError, quantity_from_json
from allot.api.raw import RawObject
from allot.validation.container_resources import NOT_NEGATIVE, is_extended
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
)
from allot.validation.formats import label_value_problems
from allot.validation.internal_types import internal_value
from allot.validation.ip_addresses import parse_network, validate_cidr
from allot.validation.lists import identity, repeated
from allot.validation.names import validate_label_key
from allot.validation.parts import Part, as_part, parts, text, texts

SPEC: Final = FieldPath("spec")
STATUS: Final = FieldPath("status")
TAINTS: Final = FieldPath("metadata") / "taints"
"""Kubernetes says so, though they are in the spec."""
TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
WHOLE_RESOURCES: Final = frozenset(
    ("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims")
)  # fmt: skip


def validate_node(node: RawObject) -> Iterator[FieldError]:
    spec = as_part(node.get("spec"))
    yield from validate_taints(parts(spec, "taints"), TAINTS)
    yield from _validate_resources(node)
    yield from _validate_pod_cidrs(texts(spec, "podCIDRs"), SPEC / "podCIDRs")


def validate_node_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    """An update of the node or of its status."""
    if new.get("status") != old.get("status"):
        yield from _validate_resources(new)
        yield from _validate_addresses(parts(as_part(new.get("status")), "addresses"))
        yield from _validate_declared_features(
            texts(as_part(new.get("status")), "declaredFeatures")
        )
    spec, before = as_part(new.get("spec")), as_part(old.get("spec"))
    yield from _validate_pod_cidrs(texts(spec, "podCIDRs"), SPEC / "podCIDRs")
    if before.get("podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
        yield forbidden(
            SPEC / "podCIDRs", 'node updates may not change podCIDR except from "" to valid'
        )
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        yield forbidden(
            SPEC / "providerID", 'node updates may not change providerID except from "" to valid'
        )
    yield from validate_taints(parts(spec, "taints"), TAINTS)
    if text(spec, "externalID") != text(before, "externalID"):
        yield forbidden(SPEC / "externalID", "may not be updated")


def validate_taints(taints: list[Part], taints_path: FieldPath) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path = taints_path @ index
        key, value, effect = text(taint, "key"), text(taint, "value"), text(taint, "effect")
        yield from validate_label_key(key, path / "key")
        problems = label_value_problems(value)
        if problems:
            yield invalid(path / "value", value, ";".join(problems))
        if not effect:
            yield required(path / "effect")
        elif effect not in TAINT_EFFECTS:
            yield not_supported(path / "effect", effect, TAINT_EFFECTS, is_ordered=True)
        if (key, effect) in seen:
            shown = internal_value(taint, "Taint")
            yield duplicate(path, shown)._replace(
                detail="taints must be unique by key and effect pair"
            )
        seen.add((key, effect))


def _validate_resources(node: RawObject) -> Iterator[FieldError]:
    for field in ("capacity", "allocatable"):
        yield from _validate_amounts(as_part(node.get("status", field)), STATUS / field)


def _validate_amounts(amounts: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    for name, written in amounts.items():
        try:
            amount = quantity_from_json(written)
        except QuantityError:
            continue  # found when it was decoded
        if amount.sign < 0:
            yield invalid(path / name, written, NOT_NEGATIVE)
        if (name in WHOLE_RESOURCES or is_extended(name)) and not amount.is_whole():
            yield invalid(path / name, written, "must be an integer")


def _validate_addresses(addresses: list[Part]) -> Iterator[FieldError]:
    are_repeated = repeated(map(identity, addresses))
    for index, (address, is_repeated) in enumerate(zip(addresses, are_repeated, strict=True)):
        if is_repeated:
            yield duplicate(STATUS / "addresses" @ index, internal_value(address, "NodeAddress"))


def _validate_pod_cidrs(cidrs: tuple[str, ...], path: FieldPath) -> Iterator[FieldError]:
    for index, cidr in enumerate(cidrs):
        yield from validate_cidr(cidr, path @ index)
    if len(cidrs) < 2:
        return
    networks = [parse_network(cidr) for cidr in cidrs]
    wrong = next((index for index, network in enumerate(networks) if network is None), None)
    if wrong is not None:
        yield internal(
            path,
            "invalid PodCIDRs. failed to check with dual stack with error:"
            f"invalid CIDR[{wrong}]: <nil> (invalid CIDR address: {cidrs[wrong]})",
        )
    families = {network.version for network in networks if network is not None}
    if wrong is not None or len(cidrs) > 2 or len(families) < 2:
        yield invalid(path, list(cidrs), "may specify no more than one CIDR for each IP family")


_is_feature: Final = re.compile("[A-Z][A-Za-z0-9]*(/[A-Za-z0-9]+)*").fullmatch


def _validate_declared_features(features: tuple[str, ...]) -> Iterator[FieldError]:
    for index, (feature, is_repeated) in enumerate(zip(features, repeated(features), strict=True)):
        path = STATUS / "declaredFeatures" @ index
        if not _is_feature(feature):
            rule = (
                f'invalid feature name "{feature}": must start with an UpperCamelCase segment, with subsequent segments '
                "separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters "
                "and slashes"
            )
            yield invalid(path, feature, rule)
        if is_repeated:
            yield duplicate(path, feature)
        elif index and feature < features[index - 1]:
            yield invalid(path, feature, "list must be sorted alphabetically")
