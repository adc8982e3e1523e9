"""managedFields after an update of a DRA kind are computed from the fields that differ."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any, Final

import msgspec
import pytest

from allot.api.claims import (
    AllocationResult,
    DeviceAllocationResult,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from allot.apiserver.http.field_managers import (
    UpdatedTyped,
    field_manager_of,
    partial_document,
    updated_object,
)
from allot.apiserver.http.routes import Target
from allot.apiserver.managed_fields.updated_objects import UpdatedDocument
from allot.apiserver.watch_cache.caches import resource_named
from allot.apiserver.watch_cache.codecs import codec_for

CLAIMS: Final = resource_named("resource.k8s.io", "resourceclaims")
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
LATER: Final = "2026-01-01T00:00:01Z"
METADATA: Final[dict[str, list[Any]]] = {
    "labels": [{}, {"a": "b"}, {"a": "c"}],
    "finalizers": [[], ["example.com/a"], ["example.com/b", "example.com/a"]],
    "ownerReferences": [[], [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}]],
}
REQUEST: Final = {"name": "r", "exactly": {"deviceClassName": "a"}}
SPECS: Final[list[Any]] = [
    {"devices": {"requests": [REQUEST]}},
    {"devices": {"requests": []}},
    {"devices": {"requests": [REQUEST, {"name": "s", "firstAvailable": []}]}},
]
DEVICE: Final = {"driver": "d", "pool": "p", "device": "a"}
CONDITION: Final = {"type": "Ready", "status": "True", "reason": "R"}
STATUSES: Final[list[Any]] = [
    {},
    {"allocation": {"devices": {"results": [{"request": "r", **DEVICE}]}}},
    {"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}], "devices": [DEVICE]},
    {"devices": [{**DEVICE, "conditions": [CONDITION], "data": {"a": 1}}]},
]


def target(version: str, part: str) -> Target:
    subresource = CLAIMS.subresource(part) if part else None
    return Target(CLAIMS, version, "default", "c", subresource)


def claim(metadata: Any, spec: Any, status: Any, managers: Any = ()) -> Any:
    whole = {"name": "c", "namespace": "default", **metadata, "managedFields": list(managers)}
    body = msgspec.json.encode({"metadata": whole, "spec": spec, "status": status})
    return codec_for(CLAIMS).decode(body, "v1", NOW)


def claims(managers: Any = ()) -> list[Any]:
    metadata = [dict(zip(METADATA, each, strict=True)) for each in product(*METADATA.values())]
    return [
        *(claim(each, SPECS[0], STATUSES[1], managers) for each in metadata),
        *(claim(metadata[1], *each, managers) for each in product(SPECS, STATUSES)),
    ]


@pytest.mark.parametrize("part", ["", "status"])
@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_they_are_those_of_the_whole_objects(version: str, part: str) -> None:
    place = target(version, part)
    manager = field_manager_of(place)
    first = claims()[-1]
    entries = field_manager_of(target(version, "")).created(
        partial_document(first, place), (), "creator", "2026-01-01T00:00:00Z"
    )
    for old, new in product(claims(entries)[::2], claims()[1::2]):
        whole = UpdatedDocument(partial_document(old, place), partial_document(new, place))

        expected = manager.updated(whole, entries, (), "updater", LATER)
        found = manager.updated(updated_object(new, old, place), entries, (), "updater", LATER)

        assert found == expected


SELECTOR: Final = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    ]
}
CONFIG: Final = {"source": "FromClass", "opaque": {"driver": "d", "parameters": {"a": 1}}}


def allocations() -> list[Any]:
    """Statuses of claims with an allocation, of all shapes, each for several consumers."""
    devices = [
        {},
        {"results": [{"request": "r", **DEVICE}]},
        {"results": [{"request": "r", **DEVICE}], "config": [CONFIG]},
    ]
    found = []
    for device, selector, time, group, uid in product(
        devices, ({}, {"nodeSelector": SELECTOR}), (None, LATER), ("", "g"), ("1", "2", 'a"', "")
    ):
        allocation = {"devices": device, **selector, "allocationTimestamp": time}
        consumer = {"apiGroup": group, "resource": "pods", "name": f"p{uid}", "uid": uid}
        found.append({"allocation": allocation, "reservedFor": [consumer]})
    other = {"resource": "pods", "name": "q", "uid": "9"}
    last = found[-1]
    return [
        *found,
        {**last, "reservedFor": [other, *last["reservedFor"]]},
        {**last, "reservedFor": []},
        {**last, "devices": [DEVICE]},
        {"reservedFor": [other]},
    ]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_those_of_an_allocation_are_those_of_the_whole_object(version: str) -> None:
    place = target(version, "status")
    manager = field_manager_of(place)
    first = claim({}, SPECS[0], {})
    entries = field_manager_of(target(version, "")).created(
        partial_document(first, place), (), "creator", "2026-01-01T00:00:00Z"
    )
    for old in (claim({}, SPECS[0], status, entries) for status in STATUSES):
        for new in (claim({}, SPECS[0], status) for status in allocations()):
            whole = UpdatedDocument(partial_document(old, place), partial_document(new, place))

            expected = manager.updated(whole, entries, (), "updater", LATER)
            found = manager.updated(updated_object(new, old, place), entries, (), "updater", LATER)

            assert msgspec.json.encode(found) == msgspec.json.encode(expected)


def test_the_shape_of_an_allocation_has_all_its_fields() -> None:
    """A field that is new in one of these types may decide what is owned."""
    assert AllocationResult.__struct_fields__ == (
        "devices",
        "node_selector",
        "allocation_timestamp",
    )
    assert DeviceAllocationResult.__struct_fields__ == ("results", "config")
    assert ResourceClaimStatus.__struct_fields__ == ("allocation", "reserved_for", "devices")
    assert ResourceClaimConsumerReference.__struct_fields__ == (
        "api_group",
        "resource",
        "name",
        "uid",
    )


def test_only_what_differs_becomes_json() -> None:
    """Neither a claim's spec nor the rest of its metadata, when it gets a finalizer."""
    old = claim({"labels": {"a": "b"}}, SPECS[0], STATUSES[1])
    new = claim({"labels": {"a": "b"}, "finalizers": ["example.com/a"]}, SPECS[0], STATUSES[1])

    update = updated_object(new, old, target("v1", ""))
    assert isinstance(update, UpdatedTyped)

    differing = msgspec.json.decode(update.differing(["metadata"]))

    assert differing == [{"metadata": {}}, {"metadata": {"finalizers": ["example.com/a"]}}]
