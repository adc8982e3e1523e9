"""What the creator of an object owns is remembered by the shape of the object."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from allot.api.claims import (
    AllocatedDeviceStatus,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from allot.api.meta import ObjectMeta, OwnerReference
from allot.apiserver.http.field_managers import field_manager_for, new_document, plain_document
from allot.apiserver.http.routes import Target
from allot.apiserver.kinds.resources import RESOURCES
from allot.apiserver.managed_fields.updated_objects import UpdatedDocument
from allot.testing.builders import a_claim, a_request

CLAIM = next(resource for resource in RESOURCES if resource.kind == "ResourceClaim")
POD = next(resource for resource in RESOURCES if resource.kind == "Pod")
EVENT = next(resource for resource in RESOURCES if resource.group == "events.k8s.io")
NOW = "2026-01-01T00:00:00Z"

METADATA: dict[str, list[Any]] = {
    "labels": [None, {}, {"a": "b"}, {"a": "c", "labels": "d"}, {"annotations": "b"}],
    "annotations": [None, {"a": "b"}, {"labels": "b", "a": "c"}],
    "finalizers": [None, ["example.com/a"], ["example.com/b"]],
    "ownerReferences": [None, [{"uid": "1", "name": "a"}], [{"uid": "2", "name": "a"}]],
    "generateName": [None, "a-"],
}


def test_remembered_field_sets_are_those_of_the_object() -> None:
    remembering = field_manager_for(POD, "v1", "")
    for values in product(*METADATA.values()):
        given = zip(METADATA, values, strict=True)
        metadata = {"name": "a", **{name: value for name, value in given if value is not None}}
        document = {"metadata": metadata, "spec": {"nodeName": values[-1] or ""}}
        forgetful = field_manager_for.__wrapped__(POD, "v1", "")

        expected = forgetful.created(document, (), "m", NOW)
        for _ in range(2):
            assert remembering.created(document, (), "m", NOW) == expected


EVENT_PARTS: dict[str, list[Any]] = {
    "eventTime": [None, "2026-01-01T00:00:00.000000Z"],
    "regarding": [{}, {"kind": "Pod", "name": "a"}],
    "note": ["", "a note"],
    "reason": [None, "Scheduled"],
    "series": [None, {"count": 2, "lastObservedTime": None}],
    "deprecatedCount": [0, 1],
}


def test_parts_with_one_owner_are_owned_unless_they_are_empty() -> None:
    """As a comparison with the empty object finds."""
    manager = field_manager_for(EVENT, "v1", "")
    for values in product(*EVENT_PARTS.values()):
        document = {"metadata": {"name": "a"}, **dict(zip(EVENT_PARTS, values, strict=True))}
        empty = UpdatedDocument(manager._empty, document)

        expected = manager.updated(empty, (), (), "m", NOW, is_new=True)

        assert manager.created(document, (), "m", NOW) == expected


def test_a_spec_that_is_null_is_owned_before_and_after_others() -> None:
    """Custom resources may have one."""
    manager = field_manager_for.__wrapped__(POD, "v1", "")
    null = {"metadata": {"name": "a"}, "spec": None}
    other = {"metadata": {"name": "b"}, "spec": {"nodeName": "n"}}

    first, _, last = (manager.created(each, (), "m", NOW) for each in (null, other, null))

    assert first == last
    assert [sorted(entry["fieldsV1"]) for entry in first] == [["f:spec"]]


def test_owners_are_not_owned_where_a_write_ignores_them() -> None:
    manager = field_manager_for.__wrapped__(POD, "v1", "status")
    owners = [{"uid": "1", "name": "a"}]
    document = {"metadata": {"name": "a", "ownerReferences": owners}, "status": {"phase": "x"}}
    empty = UpdatedDocument(manager._empty, document)

    expected = manager.updated(empty, (), (), "m", NOW, is_new=True)

    assert manager.created(document, (), "m", NOW) == expected


OWNERS: list[Any] = [
    {"uid": "0c1b-2f", "name": "a", "kind": "Pod", "controller": True},
    {"uid": "other", "name": "a", "kind": "Pod", "controller": None},
    {"uid": 'a "quoted" one', "name": "a"},
    {"uid": "a<b", "name": "a"},
    {"uid": "\u00e4", "name": "a"},
    {"uid": "a" * 300, "name": "a"},
    {"uid": "", "name": "a"},
    {"uid": 1, "name": "a"},
    {"uid": None, "name": "a"},
    {"name": "a"},
    {"uid": "a", "unknown": {"a": "b"}},
    {},
    None,
    "text",
]


def test_owners_are_owned_by_their_uid() -> None:
    for owners in (*([each] for each in OWNERS), *(list(pair) for pair in product(OWNERS, OWNERS))):
        document = {"metadata": {"name": "a", "ownerReferences": owners}, "spec": {}}
        manager = field_manager_for(POD, "v1", "")
        empty = UpdatedDocument(manager._empty, document)

        expected = manager.updated(empty, (), (), "m", NOW, is_new=True)

        assert manager.created(document, (), "m", NOW) == expected


def test_parts_are_remembered_by_the_names_of_all() -> None:
    remembering = field_manager_for(EVENT, "v1", "")
    names = ("metadata", "note", "reason", "unknown", "series", "kind")
    values = ({"name": "a"}, "a note", "Scheduled", "x", {"count": 2}, "Event")
    for chosen in product((False, True), repeat=len(names)):
        parts = [(names[at], values[at]) for at, taken in enumerate(chosen) if taken]
        for document in (dict(parts), dict(reversed(parts))):
            forgetful = field_manager_for.__wrapped__(EVENT, "v1", "")

            expected = forgetful.created(document, (), "m", NOW)

            assert remembering.created(document, (), "m", NOW) == expected
            assert remembering.created(document, (), "m", NOW) == expected


SPECS = [
    a_claim(a_request("a")).spec,
    a_claim(a_request("a"), a_request("b")).spec,
    a_claim().spec,
    ResourceClaimSpec(),
]
STATUSES = [
    ResourceClaimStatus(),
    ResourceClaimStatus(devices=(AllocatedDeviceStatus(driver="d"),)),
]


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_a_claim_is_owned_as_its_json_is(version: str) -> None:
    target = Target(CLAIM, version, "default", "", None)
    manager = field_manager_for(CLAIM, version, "")
    metadatas = [
        ObjectMeta(),
        ObjectMeta(name="a", labels={"a": "b"}),
        ObjectMeta(generate_name="a-", owner_references=(OwnerReference(uid="1", name="p"),)),
        ObjectMeta(name="a", finalizers=("example.com/a",)),
        ObjectMeta(name="a", labels={"a": "c", "b": "d"}),
        ObjectMeta(name="a", annotations={"a": "b"}),
        ObjectMeta(name="a", deletion_grace_period_seconds=0),
        ObjectMeta(
            name="a", owner_references=(OwnerReference(uid="2", name="q", controller=True),)
        ),
        ObjectMeta(owner_references=(OwnerReference(uid="1"), OwnerReference(uid="2", kind="Pod"))),
    ]
    for metadata, spec, status in product(metadatas, SPECS, STATUSES):
        claim = ResourceClaim(metadata, spec, status)

        expected = manager.created(plain_document(claim, target), (), "m", NOW)

        for _ in range(2):
            assert manager.created(new_document(claim, target), (), "m", NOW) == expected
