"""A scheduler model is asked, and does not change."""

from __future__ import annotations

from datetime import UTC, datetime

from allot.api.claims import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from allot.api.core import Node, Pod
from allot.api.meta import ObjectMeta
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.features import DEFAULTS
from allot.scheduler.configuration import SchedulerConfiguration
from allot.scheduler.explain.effort import Effort
from allot.scheduler.explain.object_explainer import ObjectExplainer
from allot.scheduler.explain.static_scheduler import StaticScheduler
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import DRIVER, a_class, a_slice

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_question_about_a_claim_that_does_not_exist_yet_leaves_the_model_as_it_is() -> None:
    request = DeviceRequest(
        "gpu",
        exactly=ExactDeviceRequest(device_class_name=DRIVER, allocation_mode="ExactCount", count=1),
    )
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))
    template = ResourceClaimTemplate(
        metadata=ObjectMeta(name="t", namespace="default"),
        spec=ResourceClaimTemplateSpec(spec=spec),
    )
    entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
    pod = Pod(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "u"},
            "spec": {"containers": [], "resourceClaims": [entry]},
        }
    )
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    snapshot = Snapshot()
    snapshot.put(resources.NODES, Node({"metadata": {"name": "n"}, "status": status}))
    snapshot.put(resources.RESOURCE_SLICES, a_slice(name="n", node="n"))
    snapshot.put(resources.DEVICE_CLASSES, a_class(DRIVER))
    snapshot.put(resources.RESOURCE_CLAIM_TEMPLATES, template)
    snapshot.put(resources.PODS, pod)
    model = StaticScheduler(snapshot, SchedulerConfiguration(), DEFAULTS, lambda: NOW)
    changes: list[object] = []
    model.claims.add_listener(lambda old, new: changes.append((old, new)))
    profiles = dict(model.profiles)

    found = ObjectExplainer(model, Effort()).of_pod(PodInfo.of(pod))

    assert "if there were one, it would fit on node n" in found.verdict
    assert changes == []
    assert list(model.claims) == []
    assert model.profiles == profiles
