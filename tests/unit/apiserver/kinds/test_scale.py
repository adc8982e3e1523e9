"""The subresource `scale` of workloads."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.apiserver.kinds.scale import scale_of, validate_scale, with_scale

SELECTOR = {
    "matchLabels": {"b": "2"},
    "matchExpressions": [
        {"key": "a", "operator": "In", "values": ["y", "x"]},
        {"key": "c", "operator": "DoesNotExist"},
    ],
}


def a_workload(kind: str, selector: dict[str, Any]) -> RawObject:
    return RawObject(
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": "w", "namespace": "n", "resourceVersion": "7", "labels": {}},
            "spec": {"replicas": 3, "selector": selector},
            "status": {"replicas": 2},
        }
    )


@pytest.mark.parametrize(
    ("kind", "selector", "text"),
    [
        ("Deployment", SELECTOR, "a in (x,y),b=2,!c"),
        ("ReplicationController", {"b": "2", "a": "1"}, "a=1,b=2"),
    ],
)
def test_scale(kind: str, selector: dict[str, Any], text: str) -> None:
    assert scale_of(a_workload(kind, selector)) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "w", "namespace": "n", "resourceVersion": "7"},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": text},
    }


def test_a_scale_of_zero_is_not_written_out() -> None:
    workload = a_workload("Deployment", SELECTOR).with_value(0, "spec", "replicas")

    assert scale_of(workload)["spec"] == {}


def test_a_scale_is_written_back() -> None:
    workload = a_workload("Deployment", SELECTOR)

    scaled = with_scale(workload, {"metadata": {"resourceVersion": "6"}, "spec": {"replicas": 5}})

    assert scaled.get("spec") == {"replicas": 5, "selector": SELECTOR}
    assert scaled.metadata.resource_version == "6"
    assert with_scale(workload, {"spec": {}}).get("spec", "replicas") == 0


def test_a_scale_is_not_negative() -> None:
    problems = [str(error) for error in validate_scale({"spec": {"replicas": -1}})]

    assert problems == ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]
