"""Metadata: what is right is remembered, what is wrong is reported every time."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.meta import ObjectMeta, OwnerReference
from allot.validation.metadata import (
    MAX_ANNOTATIONS_SIZE,
    validate_metadata,
    validate_metadata_update,
)


def an_owner(**fields: Any) -> OwnerReference:
    return OwnerReference(
        **{
            "api_version": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": "u",
            "controller": True,
            **fields,
        }
    )


def errors_of(**fields: Any) -> list[str]:
    """On create, which are the same on update."""
    metadata = ObjectMeta(**{"name": "a", "namespace": "default", **fields})
    found = [str(error.path) for error in validate_metadata(metadata, namespaced=True)]
    assert [str(error.path) for error in validate_metadata_update(metadata, metadata)] == found
    return found


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        pytest.param({"labels": {"app": "a", "example.com/b": ""}}, [], id="labels"),
        pytest.param({"labels": {"app": "a", "-": "-"}}, ["metadata.labels"] * 2, id="label"),
        pytest.param({"labels": {"a": "-", "b": "-"}}, ["metadata.labels"] * 2, id="label-values"),
        pytest.param({"annotations": {"Example.com/A": "ä"}}, [], id="annotations"),
        pytest.param({"annotations": {"a": "", "a/b/c": ""}}, ["metadata.annotations"], id="key"),
        pytest.param(
            {"annotations": {"a": "a" * MAX_ANNOTATIONS_SIZE}}, ["metadata.annotations"], id="size"
        ),
        pytest.param(
            {"annotations": {"a": "a" * (MAX_ANNOTATIONS_SIZE - 1)}}, [], id="largest-size"
        ),
        pytest.param({"owner_references": (an_owner(),)}, [], id="owner"),
        pytest.param(
            {"owner_references": (an_owner(), an_owner(uid="", name=""))},
            [
                "metadata.ownerReferences[1].name",
                "metadata.ownerReferences[1].uid",
                "metadata.ownerReferences",
            ],
            id="incomplete-owner-and-second-controller",
        ),
        pytest.param(
            {"owner_references": (an_owner(kind="Event"),)},
            ["metadata.ownerReferences[0]"],
            id="event-as-owner",
        ),
        pytest.param(
            {"owner_references": (an_owner(api_version="a/b/v1"),)},
            ["metadata.ownerReferences[0].apiVersion"],
            id="version-of-owner",
        ),
    ],
)
def test_labels_annotations_and_owners(fields: dict[str, Any], wrong: list[str]) -> None:
    assert errors_of(**fields) == wrong
    assert errors_of(**fields) == wrong


@pytest.mark.parametrize(
    ("prefix", "wrong"),
    [("a-", []), ("-", []), ("a--", []), ("A-", []), ("AA-", ["metadata.generateName"])],
)
def test_a_prefix_of_names(prefix: str, wrong: list[str]) -> None:
    metadata = ObjectMeta(name="a", generate_name=prefix)

    assert [str(error.path) for error in validate_metadata(metadata, namespaced=False)] == wrong
