"""A pod with a claim, from create to bound and gone: the writes kube-scheduler and a controller make."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.clients.api_server import Answer, RunningServer

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
STRATEGIC: Final = "application/strategic-merge-patch+json"
AGENT: Final = {"User-Agent": "kube-scheduler/v1.38.0", "Accept": "application/json, */*"}


class Cluster:
    """One namespace of a server, seen by a component that speaks JSON."""

    def __init__(self, server: RunningServer, namespace: str) -> None:
        self._server = server
        self.core = f"/api/v1/namespaces/{namespace}"
        self.claims = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
        self.events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        self.namespace = namespace

    def send(self, method: str, path: str, body: Any = None, kind: str = "json") -> Answer:
        content_type = STRATEGIC if kind == "strategic" else "application/json"
        return self._server.request(method, path, body, content_type, AGENT)

    def done(self, method: str, path: str, body: Any = None, kind: str = "json") -> Any:
        answer = self.send(method, path, body, kind)
        assert answer.code in (200, 201), answer
        return answer.json

    def create_claim(self, name: str) -> Any:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        spec = {"devices": {"requests": [request]}}
        return self.done("POST", self.claims, {"metadata": {"name": name}, "spec": spec})

    def create_pod(self, name: str, claim: str) -> Any:
        spec = {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
        }
        return self.done("POST", f"{self.core}/pods", {"metadata": {"name": name}, "spec": spec})

    def allocation(self, device: str) -> dict[str, Any]:
        result = {"request": "gpu", "driver": "d.io", "pool": self.namespace, "device": device}
        return {"devices": {"results": [result]}}

    def allocate(self, claim: Any, pod: Any, device: str) -> Answer:
        """Add the finalizer, then write allocation and reservation in one go."""
        name = claim["metadata"]["name"]
        claim["metadata"]["finalizers"] = [FINALIZER]
        claim = self.done("PUT", f"{self.claims}/{name}", claim)
        claim["status"] = {"allocation": self.allocation(device), "reservedFor": [consumer(pod)]}
        return self.send("PUT", f"{self.claims}/{name}/status", claim)


def consumer(pod: Any) -> dict[str, str]:
    metadata = pod["metadata"]
    return {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}


@pytest.fixture
def cluster(server: RunningServer, namespace: str) -> Cluster:
    return Cluster(server, namespace)


def test_a_pod_is_scheduled(cluster: Cluster) -> None:
    claim, pod = cluster.create_claim("c"), cluster.create_pod("p", "c")
    pod_path = f"{cluster.core}/pods/p"

    # It did not fit at first.
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    order = [{"type": "PodScheduled"}]
    status = {"$setElementOrder/conditions": order, "conditions": [condition]}
    waiting = cluster.done("PATCH", f"{pod_path}/status", {"status": status}, "strategic")
    assert [c["reason"] for c in waiting["status"]["conditions"]] == ["Unschedulable"]

    allocated = cluster.allocate(claim, pod, "gpu-0")
    assert allocated.code == 200, allocated
    assert allocated.json["status"]["reservedFor"] == [consumer(pod)]
    binding = {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": "p", "namespace": cluster.namespace, "uid": pod["metadata"]["uid"]},
        "target": {"kind": "Node", "name": "node-1"},
    }
    bound = cluster.send("POST", f"{pod_path}/binding", binding)
    assert (bound.code, bound.json["status"]) == (201, "Success")
    event = {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "p.1", "namespace": cluster.namespace},
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "scheduler-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": cluster.namespace, "name": "p"},
        "note": "Successfully assigned",
        "type": "Normal",
    }
    cluster.done("POST", cluster.events, event)

    scheduled = cluster.done("GET", pod_path)
    assert scheduled["spec"]["nodeName"] == "node-1"
    assert [c["status"] for c in scheduled["status"]["conditions"]] == ["True"]
    selector = "fieldSelector=involvedObject.name%3Dp,involvedObject.kind%3DPod"
    seen = cluster.done("GET", f"{cluster.core}/events?{selector}")["items"]
    assert [item["message"] for item in seen] == ["Successfully assigned"]

    # A second pod shares the claim, and leaves again.
    other = cluster.create_pod("q", "c")
    share = {"status": {"reservedFor": [consumer(other)]}}
    shared = cluster.done("PATCH", f"{cluster.claims}/c/status", share, "strategic")
    assert len(shared["status"]["reservedFor"]) == 2
    leave = {"$patch": "delete", "uid": other["metadata"]["uid"]}
    unshare = {
        "metadata": {"uid": claim["metadata"]["uid"]},
        "status": {"reservedFor": [leave]},
    }
    alone = cluster.done("PATCH", f"{cluster.claims}/c/status", unshare, "strategic")
    assert alone["status"]["reservedFor"] == [consumer(pod)]

    # The controller cleans up: the claim was deleted while it was in use.
    cluster.done("DELETE", f"{cluster.claims}/c")
    claim = cluster.done("GET", f"{cluster.claims}/c")
    assert claim["metadata"]["deletionTimestamp"]
    claim["status"] = {}
    claim = cluster.done("PUT", f"{cluster.claims}/c/status", claim)
    assert "allocation" not in claim.get("status", {})
    claim["metadata"]["finalizers"] = []
    cluster.done("PUT", f"{cluster.claims}/c", claim)
    assert cluster.send("GET", f"{cluster.claims}/c").code == 404


def test_a_device_goes_to_one_claim_only(cluster: Cluster) -> None:
    """Two schedulers at once: the second hears who was quicker, and nothing of its claim changes."""
    first, second = cluster.create_claim("first"), cluster.create_claim("second")
    pod = cluster.create_pod("p", "first")
    assert cluster.allocate(first, pod, "gpu-1").code == 200

    refused = cluster.allocate(second, pod, "gpu-1")

    assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    assert f"{cluster.namespace}/first" in refused.json["message"]
    assert "allocation" not in cluster.done("GET", f"{cluster.claims}/second").get("status", {})


def test_a_stale_status_is_a_conflict(cluster: Cluster) -> None:
    claim = cluster.create_claim("c")
    pod = cluster.create_pod("p", "c")
    stale = {**claim, "status": {"allocation": cluster.allocation("gpu-2")}}
    assert cluster.allocate(claim, pod, "gpu-2").code == 200

    answer = cluster.send("PUT", f"{cluster.claims}/c/status", stale)

    assert (answer.code, answer.json["reason"]) == (409, "Conflict")
    assert "the object has been modified" in answer.json["message"]


def test_a_token_for_a_controller(cluster: Cluster, server: RunningServer) -> None:
    """kube-controller-manager asks for one per controller before it does anything."""
    accounts = f"{cluster.core}/serviceaccounts"
    cluster.done("POST", accounts, {"metadata": {"name": "resourceclaim-controller"}})
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    issued = cluster.done("POST", f"{accounts}/resourceclaim-controller/token", asked)

    token = issued["status"]["token"]
    answer = server.request("GET", "/version", headers={"Authorization": f"Bearer {token}"})
    forbidden = server.request("GET", cluster.claims, headers={"Authorization": f"Bearer {token}"})
    assert answer.code == 200
    assert (forbidden.code, forbidden.json["reason"]) == (403, "Forbidden")
    assert "resourceclaim-controller" in forbidden.json["message"]
