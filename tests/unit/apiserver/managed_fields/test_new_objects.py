"""What decides which fields the creator of an object owns."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any, Final

import msgspec
import pytest

from allot.api.meta import ObjectMeta, OwnerReference
from allot.apiserver.managed_fields.field_sets import from_paths
from allot.apiserver.managed_fields.kind_schemas import empty_object, value_type
from allot.apiserver.managed_fields.new_objects import (
    MAX_REMEMBERED_BYTES,
    MAX_SHAPE_LENGTH,
    NewObjects,
    shape_of,
    shape_of_json,
)
from allot.apiserver.schemas.types import type_named

POD: Final = "io.k8s.api.core.v1.Pod"
NOT_OWNED: Final = from_paths(("metadata",), ("metadata", "name"), ("metadata", "uid"), ("status",))
METADATA: Final[dict[str, tuple[Any, ...]]] = {
    "name": ("", "a"),
    "uid": ("", "u"),
    "creation_timestamp": (None, datetime(2026, 1, 1, tzinfo=UTC)),
    "deletion_grace_period_seconds": (None, 0, 1),
    "labels": ({}, {"a": "b"}, {"a": "c", "b": "d"}),
    "annotations": ({}, {"a": "b"}),
    "owner_references": (
        (),
        (OwnerReference(uid="1"),),
        (OwnerReference(uid="2", name="p", controller=False),),
        (OwnerReference(uid="1"), OwnerReference(uid="2")),
    ),
    "finalizers": ((), ("a",), ("b",)),
}


def pods() -> NewObjects:
    return NewObjects(lambda: value_type(POD), empty_object(type_named(POD)), NOT_OWNED)


def test_metadata_has_the_same_fields_as_its_json() -> None:
    remembering = pods()
    for values in product(*METADATA.values()):
        metadata = ObjectMeta(**dict(zip(METADATA, values, strict=True)))
        as_json = msgspec.json.decode(msgspec.json.encode(metadata))

        found = remembering.fields({"metadata": metadata, "spec": {"nodeName": "n"}})

        expected = pods().fields({"metadata": as_json, "spec": {"nodeName": "n"}})
        assert msgspec.json.encode(found) == msgspec.json.encode(expected)


@pytest.mark.parametrize(("length", "is_kept"), [(10, True), (MAX_REMEMBERED_BYTES, False)])
def test_only_small_specs_are_kept(length: int, is_kept: bool) -> None:
    new_objects, spec = pods(), {"nodeName": "n" * length}

    new_objects.fields({"metadata": {"name": "a"}, "spec": spec})

    assert (new_objects._last[1] is spec) == is_kept


def test_the_last_spec_is_that_of_objects_with_the_same_fields() -> None:
    new_objects, spec = pods(), {"nodeName": "n"}
    with_status = {"metadata": {"name": "a"}, "spec": spec, "status": {"phase": "x"}}
    with_kind = {"kind": "Pod", "metadata": {"name": "a"}, "spec": spec}

    found = [new_objects.fields(each) for each in (with_status, with_kind, with_status)]

    assert [list(each) for each in found] == [["f:spec"], ["f:kind", "f:spec"], ["f:spec"]]


@pytest.mark.parametrize(("length", "is_known"), [(10, True), (MAX_SHAPE_LENGTH + 1, False)])
def test_long_names_have_no_shape(length: int, is_known: bool) -> None:
    labels = {"x" * length: "1"}

    assert (shape_of(ObjectMeta(labels=labels)) is not None) == is_known
    assert (shape_of_json({"labels": labels}) is not None) == is_known
