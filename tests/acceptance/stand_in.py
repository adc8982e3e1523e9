"""A stand-in for the scheduler, in tests only, for scenarios of the API server that need a running pod.

It is no scheduler. It binds every pod to the first ready node that its node selector admits, gives
each request of the claims it names the next device of a slice on that node, and says so in an event.
It does not look at device classes, selectors, counts or what is taken. What it does do are the writes
of a scheduler, in their order: claim status, binding, event.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from tests.acceptance.runner.following import Follower
from tests.acceptance.runner.paths import Json, find
from tests.acceptance.runner.rest import RestClient

NAME = "stand-in-scheduler"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


@contextmanager
def stand_in_scheduler(client: RestClient) -> Iterator[None]:
    follower = Follower(client, "/api/v1/pods", _Placing(client).place)
    follower.start()
    try:
        yield
    finally:
        follower.stop()


class _Placing:
    def __init__(self, client: RestClient) -> None:
        self._client = client

    def place(self, pod: Json) -> None:
        if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            return
        node = self._admitted_node(pod["spec"].get("nodeSelector", {}))
        if node is None:
            return
        namespace = pod["metadata"]["namespace"]
        for entry in pod["spec"].get("resourceClaims", ()):
            claims = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
            self._allocate(f"{claims}/{entry['resourceClaimName']}", pod, node)
        pods = f"/api/v1/namespaces/{namespace}/pods"
        self._client.call(
            "POST", f"{pods}/{pod['metadata']['name']}/binding", body=binding(pod, node)
        )
        events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        self._client.call("POST", events, body=scheduled_event(pod, node))

    def _admitted_node(self, selector: dict[str, str]) -> str | None:
        for node in self._client.call("GET", "/api/v1/nodes")["items"]:
            ready = find(node, "status.conditions[?type=Ready].status").value
            labels = node["metadata"]["labels"]
            if ready == "True" and selector.items() <= labels.items():
                return str(node["metadata"]["name"])
        return None

    def _allocate(self, path: str, pod: Json, node: str) -> None:
        claim = self._client.call("GET", path)
        slices = self._client.call("GET", f"{SLICES}?fieldSelector=spec.nodeName%3D{node}")
        status = claim.setdefault("status", {})
        status["allocation"] = {
            "devices": {"results": picks(claim, slices["items"])},
            "nodeSelector": only(node),
        }
        status["reservedFor"] = [
            {
                "resource": "pods",
                "name": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"],
            }
        ]
        self._client.call("PUT", f"{path}/status", body=claim)


def picks(claim: Json, slices: list[Json]) -> list[Json]:
    """The first request gets the first device there is, the second the second, and so on."""
    devices = [
        {
            "driver": each["spec"]["driver"],
            "pool": each["spec"]["pool"]["name"],
            "device": device["name"],
        }
        for each in slices
        for device in each["spec"]["devices"]
    ]
    requests = claim["spec"]["devices"]["requests"]
    return [
        {"request": request["name"], **device}
        for request, device in zip(requests, devices, strict=False)
    ]


def only(node: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def binding(pod: Json, node: str) -> Json:
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def scheduled_event(pod: Json, node: str) -> Json:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": f"{name}.", "namespace": namespace},
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": f"Successfully assigned {namespace}/{name} to {node}",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": namespace,
            "name": name,
            "uid": pod["metadata"]["uid"],
        },
        "reportingController": NAME,
        "reportingInstance": NAME,
    }
