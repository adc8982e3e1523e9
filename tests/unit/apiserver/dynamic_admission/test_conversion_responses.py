"""Answers of conversion webhooks about several objects, and about metadata."""

from __future__ import annotations

from typing import Any

import pytest

from allot.apiserver.dynamic_admission.conversion_responses import (
    ConversionError,
    checked_object,
    read_objects,
)

WANTED = "x.example.com/v2"
ORIGINAL: dict[str, Any] = {
    "apiVersion": "x.example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": "n", "uid": "u", "labels": {"a": "b"}, "generation": 3},
}


def answered(**changes: Any) -> dict[str, Any]:
    return {**ORIGINAL, "apiVersion": WANTED, **changes}


def metadata(**changes: Any) -> dict[str, Any]:
    return {"metadata": {**ORIGINAL["metadata"], **changes}}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(
            answered(apiVersion="v9"),
            "returned invalid converted object at index 1: invalid groupVersion "
            f"(expected {WANTED}, received v9)",
            id="version",
        ),
        pytest.param(
            answered(kind="Other"),
            "returned invalid converted object at index 1: invalid kind "
            "(expected Widget, received Other)",
            id="kind",
        ),
        pytest.param(
            answered(**metadata(uid="v")),
            "returned invalid converted object at index 1: must have the same UID: u != v",
            id="uid",
        ),
        pytest.param(
            answered(**metadata(labels={"a": 1})),
            "returned invalid metadata in object at index 1: metadata.labels[a] must be a string, "
            "but is int64 in converted object",
            id="label",
        ),
    ],
)
def test_the_wrong_one_of_several_objects_is_named(answer: Any, problem: str) -> None:
    with pytest.raises(ConversionError) as error:
        checked_object(ORIGINAL, answer, WANTED, 1, 2)

    assert str(error.value) == problem


def test_of_the_metadata_only_labels_and_annotations_are_taken() -> None:
    answer = answered(
        **metadata(labels=None, annotations={"c": "d"}, generation=9, finalizers=["f"])
    )

    made = checked_object(ORIGINAL, answer, WANTED, 0, 1)

    assert made["metadata"] == {
        "name": "w",
        "namespace": "n",
        "uid": "u",
        "generation": 3,
        "annotations": {"c": "d"},
    }


def test_a_v1beta1_review_need_not_repeat_the_uid() -> None:
    response = {"result": {"status": "Success"}, "convertedObjects": [{"kind": "Widget"}]}
    review = {"apiVersion": "apiextensions.k8s.io/v1beta1", "response": response}

    assert read_objects(review, "some uid", "v1beta1") == [{"kind": "Widget"}]
