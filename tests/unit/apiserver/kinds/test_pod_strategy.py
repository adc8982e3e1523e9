"""Pods: quality of service, and what an update may change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from allot import features
from allot.api.base import replace
from allot.api.core import Pod
from allot.apiserver.kinds import pod_strategy as strategy
from allot.apiserver.kinds.request import Caller, WriteRequest
from allot.testing.builders import a_pod
from allot.validation.expressions import AcceptEverything

REQUEST = WriteRequest(
    gates=features.DEFAULTS,
    version="v1",
    expressions=AcceptEverything(),
    now=datetime(2026, 1, 1, tzinfo=UTC),
    new_name_suffix=lambda: "bcdfg",
    caller=Caller("me", {}, lambda _: True),
)


def pod_with(*resources: dict[str, Any], **spec: Any) -> Pod:
    """A pod with a container for each of these resources, or one that states none."""
    containers = [
        {"name": f"c{index}", "image": "i", "resources": needs}
        for index, needs in enumerate(resources or ({},))
    ]
    return a_pod("p", uid="", containers=containers, **spec)


ALL = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("pod", "quality"),
    [
        pytest.param(pod_with(), "BestEffort", id="nothing"),
        pytest.param(pod_with({"limits": ALL}), "Guaranteed", id="limits-only"),
        pytest.param(pod_with({"limits": ALL, "requests": ALL}), "Guaranteed", id="equal"),
        pytest.param(
            pod_with({"limits": ALL, "requests": {"cpu": "500m"}}), "Burstable", id="less"
        ),
        pytest.param(pod_with({"limits": ALL}, {}), "Burstable", id="only-one-of-two"),
        pytest.param(pod_with({"requests": {"example.com/gpu": "1"}}), "BestEffort", id="other"),
    ],
)
def test_quality_of_service(pod: Pod, quality: str) -> None:
    assert strategy.quality_of_service(pod) == quality


def test_create_fills_in() -> None:
    pod = Pod({"metadata": {"generateName": "p-"}, "spec": {"containers": []}, "status": {"x": 1}})

    created = strategy.prepare_create(pod, REQUEST)

    assert created.metadata.name == "p-bcdfg"
    assert created.metadata.namespace == "default"
    assert created.get("status") == {"phase": "Pending", "qosClass": "BestEffort"}


def test_a_gated_pod_says_why_it_waits() -> None:
    created = strategy.prepare_create(pod_with(schedulingGates=[{"name": "g"}]), REQUEST)

    (condition,) = created.get("status", "conditions")
    said = condition["type"], condition["status"], condition["reason"]
    assert said == ("PodScheduled", "False", "SchedulingGated")


def is_allowed(old: Pod, new: Pod) -> bool:
    prepared = strategy.prepare_update(new, old, REQUEST)
    return not strategy.validate_update(prepared, old, REQUEST)


def test_allowed_changes() -> None:
    old = pod_with(tolerations=[{"key": "a"}], schedulingGates=[{"name": "g"}])
    image = old.with_value(
        [old.get("spec", "containers", 0) | {"image": "j"}], "spec", "containers"
    )

    assert is_allowed(old, image)
    assert is_allowed(old, old.with_value(7, "spec", "activeDeadlineSeconds"))
    assert is_allowed(old, old.with_value([{"key": "a"}, {"key": "b"}], "spec", "tolerations"))
    assert is_allowed(old, old.with_value(None, "spec", "schedulingGates"))
    assert is_allowed(
        pod_with(terminationGracePeriodSeconds=-1), pod_with(terminationGracePeriodSeconds=1)
    )


def test_forbidden_changes() -> None:
    old = pod_with(tolerations=[{"key": "a"}])

    assert not is_allowed(old, old.with_value([{"key": "b"}], "spec", "tolerations"))
    assert not is_allowed(old, old.with_value([{"name": "x"}], "spec", "resourceClaims"))
    assert not is_allowed(old, old.with_value([{"name": "g"}], "spec", "schedulingGates"))


def test_claims_are_dropped_without_dra() -> None:
    request = replace(REQUEST, gates=features.FeatureGates([]))
    pod = pod_with({"claims": [{"name": "a"}]}, resourceClaims=[{"name": "a"}])

    created = strategy.prepare_create(pod, request)

    assert created.get("spec", "resourceClaims") is None
    assert created.get("spec", "containers", 0, "resources") == {}
