"""A node of Kubernetes' own on our API server: kubemark's kubelet, and the DRA test driver in Go.

The kubelet has the certificate of a node and its default settings. The driver has a token that is bound to its pod on
that node, and the role that docs/access-control.md gives.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
import yaml

from allot.api.protobuf.wire import delimited
from tests.kubernetes.programs import (
    NEEDS_KUBERNETES,
    api_server,
    control_plane,
    node_kubeconfig,
    program,
    running,
    token_kubeconfig,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), NEEDS_KUBERNETES]
NODE = "hollow"
DRIVER = "test-driver.cdi.k8s.io"
WAIT_SECONDS = 120.0
READY = {
    "type": "Ready", "status": "True", "reason": "Prepared", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z",
}  # fmt: skip
MANIFESTS = f"""\
apiVersion: v1
kind: ServiceAccount
metadata: {{name: driver}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: driver}}
rules:
- {{apiGroups: [""], resources: [nodes], verbs: [get]}}
- {{apiGroups: [resource.k8s.io], resources: [resourceslices], verbs: [get, list, watch, create, update, patch, delete]}}
- {{apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [get]}}
- {{apiGroups: [resource.k8s.io], resources: [resourceclaims/status], verbs: [update, patch]}}
- {{apiGroups: [resource.k8s.io], resources: [resourceclaims/driver], resourceNames: [{DRIVER}], verbs: ["associated-node:update", "associated-node:patch"]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: driver}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: driver}}
subjects: [{{kind: ServiceAccount, name: driver, namespace: default}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: test}}
spec: {{selectors: [{{cel: {{expression: 'device.driver == "{DRIVER}"'}}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: driver}}
spec:
  serviceAccountName: driver
  containers: [{{name: c, image: i}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: c, image: i}}]}}
"""
CONSUMER = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: test}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: consumer}
spec:
  resourceClaims: [{name: device, resourceClaimTemplateName: one}]
  containers: [{name: c, image: i, resources: {claims: [{name: device}]}}]
"""


def kubectl(kubeconfig: Path, *arguments: str, stdin: str = "") -> str:
    command = [str(program("kubectl")), "--kubeconfig", str(kubeconfig), *arguments]
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Node(NamedTuple):
    """A cluster with one node, whose kubelet runs."""

    directory: Path
    admin: Path
    kubelet: subprocess.Popen[bytes]

    def get(self, *what: str) -> Any:
        return json.loads(kubectl(self.admin, "get", *what, "-o", "json"))

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + WAIT_SECONDS
        while not (found := holds()):
            assert self.kubelet.poll() is None, (self.directory / "kubemark.log").read_text()
            assert time.monotonic() < deadline, f"timed out waiting for {what}"
            time.sleep(0.5)
        return found

    def running_pods(self) -> list[str]:
        pods = self.get("pods")["items"]
        return sorted(
            pod["metadata"].get("labels", {}).get("app", pod["metadata"]["name"])
            for pod in pods
            if pod["status"]["phase"] == "Running" and pod["spec"]["nodeName"] == NODE
        )

    def events(self, user: str) -> list[dict[str, Any]]:
        """What the audit log has of a user."""
        lines = (self.directory / "audit.log").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        return [event for event in events if event["user"].get("username") == user]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    directory = tmp_path_factory.mktemp("node")
    with api_server(directory) as admin, control_plane(directory, has_kubelets=True):
        kubeconfig = node_kubeconfig(directory, NODE)
        arguments = ("--morph=kubelet", f"--name={NODE}", f"--kubeconfig={kubeconfig}")
        with running(
            "kubemark",
            *arguments,
            "--use-host-image-service=false",  # this machine has no such service
            log=directory / "kubemark.log",
        ) as kubelet:
            found = Node(directory, admin, kubelet)
            kubectl(admin, "apply", "-f", "-", stdin=MANIFESTS)
            yield found


def is_ready(node: dict[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True"


def test_the_kubelet_registers_and_runs_pods(node: Node) -> None:
    node.until(lambda: [each for each in node.get("nodes")["items"] if is_ready(each)], "the node")
    node.until(lambda: node.running_pods() == ["driver", "web", "web", "web"], "pods to run")
    kubectl(node.admin, "scale", "deployment", "web", "--replicas=1")
    node.until(lambda: node.running_pods() == ["driver", "web"], "pods to end")
    leases = node.until(
        lambda: node.get("leases", "-n", "kube-node-lease")["items"], "the node's lease"
    )
    assert [lease["spec"]["holderIdentity"] for lease in leases] == [NODE]

    events = node.events(f"system:node:{NODE}")
    assert {event["verb"] for event in events} >= {
        "create",
        "get",
        "watch",
        "patch",
    }  # lists are streamed
    refused = [event for event in events if event["responseStatus"]["code"] in (400, 401, 403, 415)]
    assert refused == []


def test_the_driver_publishes_updates_and_reports(node: Node) -> None:
    node.until(lambda: "driver" in node.running_pods(), "the driver's pod")
    bound = ("--bound-object-kind=Pod", "--bound-object-name=driver")
    token = kubectl(node.admin, "create", "token", "driver", *bound).strip()
    kubeconfig = token_kubeconfig(node.directory, "dra-driver", token)
    place = node.directory / "driver"
    for name in (f"data/{DRIVER}", "registration", "cdi"):
        (place / name).mkdir(parents=True)
    with running(
        "dra-test-driver", f"--kubeconfig={kubeconfig}", "kubelet-plugin", f"--node-name={NODE}",
        f"--datadir={place / 'data'}", f"--plugin-registration-path={place / 'registration'}",
        f"--cdi-dir={place / 'cdi'}",
        log=place / "log",
    ):  # fmt: skip
        published = node.until(lambda: node.get("resourceslices")["items"], "the slice")[0]
        assert len(published["spec"]["devices"]) == 4
        _publishes_again(node, published["spec"]["devices"])
        kubectl(node.admin, "apply", "-f", "-", stdin=CONSUMER)
        node.until(lambda: "consumer" in node.running_pods(), "the pod with a claim")
        (claim,) = node.get("resourceclaims")["items"]
        answer = _prepare(place / "data" / DRIVER / "dra.sock", claim["metadata"])
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        assert result["device"].encode() in answer
        assert list((place / "cdi").iterdir())
        _report(node, kubeconfig, claim["metadata"]["name"], result)

    driver = "system:serviceaccount:default:driver"
    events = node.events(driver)
    assert {event["user"]["groups"][0] for event in events} == {"system:serviceaccounts"}
    asked = {
        (event["verb"], event["objectRef"]["resource"]) for event in events if "objectRef" in event
    }
    slices = {(verb, "resourceslices") for verb in ("watch", "create", "update")}
    assert asked >= slices | {("get", "resourceclaims"), ("patch", "resourceclaims")}
    assert [event for event in events if event["responseStatus"]["code"] in (401, 415)] == []


def _publishes_again(node: Node, devices: list[dict[str, Any]]) -> None:
    """The driver repairs a slice that was changed, and replaces one that was deleted."""
    name = node.get("resourceslices")["items"][0]["metadata"]["name"]
    change = json.dumps({"spec": {"devices": [{"name": "wrong"}]}})
    kubectl(node.admin, "patch", "resourceslice", name, "--type=merge", "-p", change)

    def is_repaired() -> bool:
        return [each["spec"]["devices"] for each in node.get("resourceslices")["items"]] == [
            devices
        ]

    node.until(is_repaired, "the driver to repair its slice")
    kubectl(node.admin, "delete", "resourceslice", "--all")
    node.until(is_repaired, "the driver to publish its slice again")


def _prepare(socket: Path, claim: dict[str, Any]) -> bytes:
    """What kubelet asks of a driver before it starts a pod: kubemark's does not talk to drivers."""
    names = (claim["namespace"], claim["uid"], claim["name"])
    message = b"".join(
        delimited(number, name.encode()) for number, name in enumerate(names, start=1)
    )
    with grpc.insecure_channel(f"unix://{socket}") as channel:
        method = channel.unary_unary(
            "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
            request_serializer=bytes,
            response_deserializer=bytes,
        )
        answer: bytes = method(delimited(1, message), timeout=60)
    return answer


def _report(node: Node, kubeconfig: Path, name: str, result: dict[str, Any]) -> None:
    """Device status as drivers write it: server-side apply with the driver's token."""
    device = {key: result[key] for key in ("driver", "pool", "device")}

    def status(*devices: dict[str, Any]) -> str:
        return yaml.safe_dump(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": "default"},
                "status": {"devices": list(devices)},
            }
        )

    def applied(document: str) -> str:
        apply = ("apply", "--server-side", "--subresource=status", f"--field-manager={DRIVER}")
        return kubectl(kubeconfig, *apply, "-f", "-", stdin=document)

    reported = {**device, "conditions": [READY], "data": {"serial": "1"}}
    applied(status(reported))
    claim = node.get("resourceclaim", name, "--show-managed-fields")
    assert claim["status"]["devices"] == [reported]
    (manager,) = (each for each in claim["metadata"]["managedFields"] if each["manager"] == DRIVER)
    assert (manager["operation"], manager["subresource"]) == ("Apply", "status")
    assert claim["status"]["reservedFor"]
    with pytest.raises(AssertionError, match="orbidden"):
        applied(status({**device, "driver": "other.example.com"}))
    applied(status())
    assert "devices" not in node.get("resourceclaim", name)["status"]
