"""What a pod's node says about its devices."""

from __future__ import annotations

from typing import Any

import pytest

from allot.scheduler.explain.node_preparation import CONTAINER_DEVICES, preparation_notes
from allot.scheduler.explain.pod_events import PodEvent
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import a_pod

FAILED = PodEvent("FailedPrepareDynamicResources", "no power", None, 3, {})
OTHER = PodEvent("Scheduled", "n", None, 1, {})


def notes(phase: str, *events: PodEvent, **annotations: str) -> list[str]:
    status: dict[str, Any] = {"phase": phase}
    pod = a_pod("p", node="n", status=status)
    if annotations:
        pod = pod.with_value(annotations, "metadata", "annotations")
    return list(preparation_notes(PodInfo.of(pod), events))


def test_what_containers_get() -> None:
    shown = {CONTAINER_DEVICES: '{"c": {"cdiDevices": ["v/c=a", "v/c=b"], "env": ["A=1"]}}'}

    assert notes("Running", FAILED, **shown) == [
        "Container c gets cdiDevices v/c=a, v/c=b; env A=1."
    ]


def test_why_it_does_not_start() -> None:
    assert notes("Pending", OTHER, FAILED) == ["Its node n says (3 times): no power"]
    assert notes("Running", OTHER, FAILED) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"c": 1}', '{"c": {"env": [1]}}'])
def test_an_annotation_by_hand(text: str) -> None:
    (note,) = notes("Running", **{CONTAINER_DEVICES: text})
    assert "is not what a node writes" in note
