"""Nodes played by the runner, for clusters without kubelets.

A played node is ready from the start. Pods bound to it run at once, or are done at once if they carry
the annotation accept.dev/complete=true, and go as soon as they are deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from tests.acceptance.runner.following import Follower
from tests.acceptance.runner.paths import Json
from tests.acceptance.runner.rest import MERGE_PATCH, STRATEGIC_PATCH, RestClient

RESOURCES = {"cpu": "64", "memory": "256Gi", "pods": "250"}
COMPLETE = "accept.dev/complete"
POD_CONDITIONS = ("Initialized", "Ready", "ContainersReady", "PodReadyToStartContainers")
READINESS = {"Ready", "ContainersReady"}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def create_ready_node(
    client: RestClient, name: str, labels: Mapping[str, str], resources: Mapping[str, str]
) -> None:
    all_labels = {"accept.dev/sim": "true", "kubernetes.io/hostname": name, **labels}
    metadata = {"name": name, "labels": all_labels}
    client.call(
        "POST", "/api/v1/nodes", body={"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    )
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "played by the acceptance runner",
        "lastHeartbeatTime": now(),
        "lastTransitionTime": now(),
    }
    amounts = {**RESOURCES, **resources}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    path = f"/api/v1/nodes/{name}"
    client.call("PATCH", f"{path}/status", body={"status": status}, content_type=MERGE_PATCH)
    # New nodes are tainted as not ready, and no other component removes the taint.
    client.call("PATCH", path, body={"spec": {"taints": None}}, content_type=MERGE_PATCH)


class PlayedNodes:
    """The kubelets of all nodes added to it. A node stays, even deleted: its pods have to go."""

    def __init__(self, client: RestClient) -> None:
        self._client = client
        self._names: set[str] = set()
        self._follower = Follower(client, "/api/v1/pods", self._play)

    def start(self) -> None:
        self._follower.start()

    def stop(self) -> None:
        self._follower.stop()

    def add(self, name: str) -> None:
        self._names.add(name)

    def _play(self, pod: Json) -> None:
        if pod["spec"].get("nodeName") not in self._names:
            return
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if metadata.get("deletionTimestamp"):
            if metadata.get("deletionGracePeriodSeconds") != 0:
                # Another client may be faster; a pod that is gone, or a new one of that name, is fine.
                self._client.request("DELETE", path, body=final_deletion(metadata["uid"]))
        elif pod["status"].get("phase", "Pending") == "Pending":
            self._client.request(
                "PATCH", f"{path}/status", body=started(pod), content_type=STRATEGIC_PATCH
            )


def final_deletion(uid: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": uid},
    }


def started(pod: Json) -> Json:
    """A patch of the status after which the pod runs, or has run."""
    is_done = pod["metadata"].get("annotations", {}).get(COMPLETE) == "true"
    conditions = [
        {
            "type": condition,
            "status": "False" if is_done and condition in READINESS else "True",
            "lastTransitionTime": now(),
        }
        for condition in POD_CONDITIONS
    ]
    return {
        "metadata": {"uid": pod["metadata"]["uid"]},
        "status": {
            "phase": "Succeeded" if is_done else "Running",
            "startTime": now(),
            "podIP": "10.99.0.1",
            "podIPs": [{"ip": "10.99.0.1"}],
            "hostIP": "10.98.0.1",
            "conditions": conditions,
            "containerStatuses": [
                container_status(container, is_done) for container in pod["spec"]["containers"]
            ],
        },
    }


def container_status(container: Json, is_done: bool) -> Json:
    state: Json = {"running": {"startedAt": now()}}
    if is_done:
        times = {"startedAt": now(), "finishedAt": now()}
        state = {"terminated": {"exitCode": 0, "reason": "Completed", **times}}
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "played",
        "ready": not is_done,
        "started": not is_done,
        "restartCount": 0,
        "state": state,
    }
