"""Every metric that the five KEPs name exists, and moves when something happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from allot.controllers.pool_status import controller
from allot.controllers.pool_status.answers import answering_request
from allot.testing.cluster import ClusterSettings, VirtualTimeCluster
from allot.testing.manifests import a_pod_manifest

DRIVER = "gpu.example.com"
PLUGIN = {"plugin": "DynamicResources"}

NAMED = [
    # KEP-5075
    ("apiserver", "apiserver_request_total", {"resource": "resourceclaims"}),
    ("scheduler", "scheduler_unschedulable_pods", PLUGIN),
    *(
        (
            "scheduler",
            "scheduler_plugin_execution_duration_seconds_count",
            PLUGIN | {"extension_point": point},
        )
        for point in ("PreFilter", "Filter", "PostFilter")
    ),
    # KEP-6080
    (
        "scheduler",
        "scheduler_plugin_execution_duration_seconds_count",
        PLUGIN | {"extension_point": "Reserve"},
    ),
    *(
        ("scheduler", "scheduler_schedule_attempts_total", {"result": result})
        for result in ("scheduled", "unschedulable", "error")
    ),
    # KEP-5007
    *(
        ("scheduler", f"scheduler_dra_bindingconditions_{name}_total", {"status": "success"})
        for name in ("allocations", "device_allocations")
    ),
    *(
        (
            "scheduler",
            "scheduler_dra_bindingconditions_prebind_duration_seconds_count",
            {"status": "success", "requires_bindingconditions": required},
        )
        for required in ("true", "false")
    ),
    # KEP-4816
    ("scheduler", "scheduler_pending_pods", {"queue": "unschedulable"}),
    ("scheduler", "scheduler_dra_prioritized_list_allocations_total", {"alternative": "0"}),
    ("nodes", "kubelet_started_containers_errors_total", {}),
    *(
        ("controllers", f"resourceclaim_controller_{name}", {"prioritized_list": "true"})
        for name in ("create_total", "resource_claims", "allocated_resource_claims")
    ),
    ("controllers", "resourceclaim_controller_create_failures_total", {}),
    *(
        ("controllers", f"workqueue_{name}", {"name": "resource_claim"})
        for name in ("adds_total", "queue_duration_seconds_count", "work_duration_seconds_count")
    ),
    # KEP-5677
    ("controllers", "resourcepoolstatus_requests_processed_total", {}),
    ("controllers", "resourcepoolstatus_request_processing_errors_total", {}),
    ("controllers", "resourcepoolstatus_request_processing_duration_seconds_count", {}),
    # Not named, but of the same registries and never written once.
    (
        "scheduler",
        "scheduler_framework_extension_point_duration_seconds_count",
        {"extension_point": "Filter"},
    ),
    ("scheduler", "scheduler_cache_size", {"type": "nodes"}),
    ("scheduler", "scheduler_cache_size", {"type": "pods"}),
    ("scheduler", "scheduler_preemption_attempts_total", {}),
    ("nodes", "kubelet_started_containers_total", {"container_type": "container"}),
    ("nodes", "kubelet_started_pods_total", {}),
    ("nodes", "kubelet_started_pods_errors_total", {}),
]

OBJECTS = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status:
  allocatable: {cpu: "8", memory: 8Gi, pods: "110"}
  capacity: {cpu: "8", memory: 8Gi, pods: "110"}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: fabric}
spec: {selectors: [{cel: {expression: 'device.driver == "fabric.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: broken}
spec: {selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].none == "x"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: a}, {name: b}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: fabric}
spec:
  driver: fabric.example.com
  nodeName: n1
  pool: {name: n1-fabric, generation: 1, resourceSliceCount: 1}
  devices: [{name: f, bindingConditions: [ready], bindingFailureConditions: [failed]}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: list, namespace: default}
spec:
  spec:
    devices:
      requests:
      - name: r
        firstAvailable:
        - {name: first, deviceClassName: gpu}
        - {name: second, deviceClassName: gpu, count: 2}
---
apiVersion: v1
kind: Namespace
metadata: {name: full}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: none, namespace: full}
spec: {hard: {count/resourceclaims.resource.k8s.io: "0"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: full}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: fabric, namespace: default}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: fabric}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: many, namespace: default}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 20}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: broken, namespace: default}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: broken}}]}}
"""


def pod_using(
    name: str, claim: dict[str, str], namespace: str = "default", **spec: Any
) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "d"}]}}
    claims = [{"name": "d"} | claim]
    return a_pod_manifest(name, namespace=namespace, claims=claims, containers=[container], **spec)


def a_question(name: str, driver: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1alpha1",
        "kind": "ResourcePoolStatusRequest",
        "metadata": {"name": name},
        "spec": {"driver": driver},
    }


Samples = dict[tuple[str, str], list[tuple[dict[str, str], float]]]


def samples(cluster: VirtualTimeCluster) -> Samples:
    """What all pages show: labels and values by component and name."""
    found: Samples = {}
    for component in ("apiserver", "scheduler", "controllers", "nodes"):
        path = "/metrics" if component == "apiserver" else f"/metrics/{component}"
        response = cluster.run(cluster.client.request("GET", path))
        for family in text_string_to_metric_families(response.body.decode()):
            for sample in family.samples:
                shown = found.setdefault((component, sample.name), [])
                shown.append((dict(sample.labels), sample.value))
    return found


@pytest.fixture(scope="module")
def after() -> Iterator[Samples]:
    """The pages of a small cluster in which a little of everything has happened."""
    patch = pytest.MonkeyPatch()

    def failing(spec: Any, *rest: Any) -> Any:
        if spec.driver == "bad.example.com":
            raise ValueError("made to fail")
        return answering_request(spec, *rest)

    patch.setattr(controller, "answering_request", failing)
    with patch.context(), VirtualTimeCluster(ClusterSettings()) as cluster:
        cluster.apply(OBJECTS)
        cluster.apply(pod_using("list", {"resourceClaimTemplateName": "list"}))
        cluster.wait_for_phase("list", "Running")
        cluster.apply(
            pod_using("one", {"resourceClaimTemplateName": "one"}, "full"),
            pod_using("fabric", {"resourceClaimName": "fabric"}),
            pod_using("many", {"resourceClaimName": "many"}),
            pod_using("broken", {"resourceClaimName": "broken"}),
            pod_using("unallocated", {"resourceClaimName": "many"}, nodeName="n1"),
            a_question("good", DRIVER),
            a_question("bad", "bad.example.com"),
        )
        claim = cluster.wait_for(
            "ResourceClaim",
            "fabric",
            lambda found: found is not None and found.get("status", {}).get("allocation"),
        )
        assert claim is not None
        ready = {
            "type": "ready",
            "status": "True",
            "reason": "r",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        device = {"driver": "fabric.example.com", "pool": "n1-fabric", "device": "f"}
        claim["status"]["devices"] = [device | {"conditions": [ready]}]
        path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/fabric/status"
        cluster.run(cluster.client.request("PUT", path, body=msgspec.json.encode(claim)))
        cluster.wait_for_phase("fabric", "Running")
        for name in ("good", "bad"):
            cluster.wait_for(
                "ResourcePoolStatusRequest", name, lambda found: found and found.get("status")
            )
        # Ten attempts, so that one of those that found no node was sampled.
        for number in range(10):
            cluster.apply(pod_using(f"many-{number}", {"resourceClaimName": "many"}))
        cluster.advance(30)
        yield samples(cluster)


@pytest.mark.parametrize(
    ("component", "name", "labels"),
    NAMED,
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_metric_has_moved(
    component: str, name: str, labels: dict[str, str], after: Samples
) -> None:
    shown = after.get((component, name), [])
    assert shown, f"{component} has no {name}"
    values = [value for found, value in shown if labels.items() <= found.items()]
    assert sum(values) > 0, shown
