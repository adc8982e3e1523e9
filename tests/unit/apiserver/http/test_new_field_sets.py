"""What the creator of an object owns is remembered by the shape of the object."""

from __future__ import annotations

from itertools import product
from typing import Any

from allot.apiserver.http.field_managers import field_manager_for
from allot.apiserver.kinds.resources import RESOURCES

POD = next(resource for resource in RESOURCES if resource.kind == "Pod")
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
