"""Laws of the API: conversion loses nothing, and no input makes validation fall over."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.api import v1alpha1, v1alpha3
from allot.api.base import replace
from allot.api.identities import GroupVersionKind
from allot.api.resource import GROUP
from allot.api.scheme import KINDS, decode_object, encode_object
from allot.cli.vectors import NOW, VectorAnswerer
from allot.testing.builders import a_claim, a_device, a_slice
from tests.property.strategies import instances, json_values

VERSIONS = [
    GroupVersionKind(GROUP, version, kind.name)
    for kind in KINDS.values()
    for version in kind.versions
]
slow_to_draw = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def hub_version(kind: str) -> GroupVersionKind:
    return GroupVersionKind(GROUP, next(iter(KINDS[kind].versions)), kind)


def without_what_the_version_cannot_say(hub: Any, gvk: GroupVersionKind) -> Any:
    """v1beta1 has no way to write an empty `exactly`, an empty node name or `allNodes: false`."""
    if gvk.version != "v1beta1":
        return hub
    if gvk.kind == "ResourceSlice":
        spec = replace(
            hub.spec, node_name=hub.spec.node_name or None, all_nodes=hub.spec.all_nodes or None
        )
        return replace(hub, spec=spec)
    if gvk.kind in ("ResourceClaim", "ResourceClaimTemplate"):
        inner = hub.spec if gvk.kind == "ResourceClaim" else hub.spec.spec
        requests = tuple(
            replace(request, exactly=replace(request.exactly, device_class_name="c"))
            if request.exactly
            else request
            for request in inner.devices.requests
        )
        inner = replace(inner, devices=replace(inner.devices, requests=requests))
        spec = inner if gvk.kind == "ResourceClaim" else replace(hub.spec, spec=inner)
        return replace(hub, spec=spec)
    return hub


@pytest.mark.parametrize("gvk", VERSIONS, ids=str)
@slow_to_draw
@given(data=st.data())
def test_hub_to_version_and_back_is_the_identity(
    gvk: GroupVersionKind, data: st.DataObject
) -> None:
    drawn = data.draw(instances(KINDS[gvk.kind].hub_type))
    # Defaults are filled in when an object is read, so begin with one that was.
    home = hub_version(gvk.kind)
    hub = decode_object(
        encode_object(without_what_the_version_cannot_say(drawn, gvk), home), home, NOW
    )

    back = decode_object(encode_object(hub, gvk), gvk, NOW)

    if gvk.kind == "ResourcePoolStatusRequest":
        version = v1alpha1 if gvk.version == "v1alpha1" else v1alpha3
        back = version.restore_unseen(back, hub)
    assert back == hub


BASES: dict[str, Any] = {
    "ResourceClaim": json.loads(encode_object(a_claim(), hub_version("ResourceClaim"))),
    "ResourceSlice": json.loads(
        encode_object(
            a_slice(a_device(attributes={"model": "a"}, capacity={"memory": "1Gi"})),
            hub_version("ResourceSlice"),
        )
    ),
    "DeviceClass": {
        "metadata": {"name": "c"},
        "spec": {"selectors": [{"cel": {"expression": "true"}}]},
    },
    "DeviceTaintRule": {
        "metadata": {"name": "t"},
        "spec": {"taint": {"key": "k", "effect": "None"}},
    },
    "ResourcePoolStatusRequest": {"metadata": {"name": "q"}, "spec": {"driver": "d.e"}},
}


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        found += paths(inner, (*path, key))
    return found


def with_value(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    target = copy
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = value
    return copy


@pytest.mark.parametrize("kind", BASES)
@slow_to_draw
@given(data=st.data(), value=json_values, operation=st.sampled_from(["create", "update", "status"]))
def test_any_value_in_any_field_is_answered(
    kind: str, data: st.DataObject, value: Any, operation: str
) -> None:
    if operation == "status" and not KINDS[kind].has_status:
        operation = "update"
    base = BASES[kind]
    if KINDS[kind].has_status:
        base = base | {"status": {}}
    path = data.draw(st.sampled_from(paths(base)))
    vector = {
        "gvk": str(hub_version(kind)),
        "operation": operation,
        "object": with_value(base, path, value),
        "old": base,
    }

    answer = VectorAnswerer().answer(json.dumps(vector).encode())

    assert answer.keys() & {"object", "decodeError", "requestError"} or answer["errors"]


@pytest.mark.parametrize("kind", KINDS)
@slow_to_draw
@given(data=st.data(), operation=st.sampled_from(["create", "update", "status"]))
def test_any_object_is_answered(kind: str, data: st.DataObject, operation: str) -> None:
    """Well-typed nonsense in every field at once, and as what is stored too."""
    if operation == "status" and not KINDS[kind].has_status:
        operation = "update"
    gvk = hub_version(kind)
    new, old = (encode_object(data.draw(instances(KINDS[kind].hub_type)), gvk) for _ in range(2))
    vector = b'{"gvk":"%s","operation":"%s","object":%s,"old":%s}' % (
        str(gvk).encode(), operation.encode(), new, old,
    )  # fmt: skip

    answer = VectorAnswerer().answer(vector)

    assert answer.keys() & {"object", "requestError"} or answer["errors"]
