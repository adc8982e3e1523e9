"""A clone of real Kubernetes with 500 nodes runs here, and the commands say the same of both."""

from __future__ import annotations

import json
import logging
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.runner.rest import RestClient
from tests.attacks.clusters import START_SECONDS, made_cluster
from tests.integration.test_recordings import RecordProcess
from tests.integration.test_up import allot
from tests.kubernetes.programs import NEEDS_KUBERNETES, control_plane

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), NEEDS_KUBERNETES]

log = logging.getLogger(__name__)

NODES: Final = 500
DEVICES_PER_NODE: Final = 8
RUNNING: Final = 300
PENDING: Final = 12
AT_ONCE: Final = 8
SCHEDULED_SECONDS: Final = 120.0
RESOURCE: Final = "/apis/resource.k8s.io/v1"
PODS: Final = "/api/v1/namespaces/default/pods"
CLASS: Final = "gpu.example.com"
MERGE: Final = "application/merge-patch+json"
NODES_PATH: Final = "/api/v1/nodes"
CAPACITY: Final = {"cpu": "64", "memory": "256Gi", "pods": "110"}


@contextmanager
def kubernetes(directory: Path) -> Iterator[Path]:
    """kube-apiserver, kube-scheduler, kube-controller-manager and etcd; their kubeconfig."""
    with made_cluster("kubernetes", directory) as cluster:
        cluster.parts[0].start(directory / "kube-apiserver.log")
        wait_for_answer(cluster.kubeconfig)
        for name in ("scheduler", "controller-manager"):
            shutil.copy(cluster.kubeconfig, directory / f"{name}.kubeconfig")
        shutil.copy(directory / "pki" / "accounts.key", directory / "pki" / "service-accounts.key")
        with control_plane(directory):
            yield cluster.kubeconfig


def wait_for_answer(kubeconfig: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with RestClient.from_kubeconfig(kubeconfig) as client:
                if not client.request("GET", "/api/v1/namespaces/default").is_error:
                    return
        except OSError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.5)


def create_all(kubeconfig: Path, documents: list[tuple[str, dict[str, Any]]]) -> None:
    def create(some: list[tuple[str, dict[str, Any]]]) -> None:
        with RestClient.from_kubeconfig(kubeconfig) as client:
            for path, body in some:
                client.call("POST", path, body=body)
                if path == NODES_PATH:  # tainted until a controller removes that
                    node = f"{path}/{body['metadata']['name']}"
                    client.call("PATCH", node, body={"spec": {"taints": None}}, content_type=MERGE)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(create, [documents[start::AT_ONCE] for start in range(AT_ONCE)]))


def hardware() -> Iterator[tuple[str, dict[str, Any]]]:
    selector = {"cel": {"expression": f'device.driver == "{CLASS}"'}}
    yield (
        f"{RESOURCE}/deviceclasses",
        {
            "metadata": {"name": CLASS},
            "spec": {"selectors": [selector]},
        },
    )
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    for number in range(NODES):
        name = f"node-{number:03}"
        yield (
            NODES_PATH,
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": [ready]},
            },
        )
        attributes = {"model": {"string": "H100"}}
        yield (
            f"{RESOURCE}/resourceslices",
            {
                "metadata": {"name": f"slice-{number:03}"},
                "spec": {
                    "driver": CLASS,
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [
                        {"name": f"gpu-{each}", "attributes": attributes}
                        for each in range(DEVICES_PER_NODE)
                    ],
                },
            },
        )


def workload() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, count in (("two", 2), ("nine", DEVICES_PER_NODE + 1)):
        request = {"name": "gpu", "exactly": {"deviceClassName": CLASS, "count": count}}
        yield (
            f"{RESOURCE}/namespaces/default/resourceclaimtemplates",
            {
                "metadata": {"name": name},
                "spec": {"spec": {"devices": {"requests": [request]}}},
            },
        )
    for number in range(RUNNING + PENDING):
        template = "two" if number < RUNNING else "nine"
        main = {
            "name": "main",
            "image": "registry.example/main:1",
            "env": [{"name": "TOKEN", "value": "hunter2"}],
            "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
        }
        claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
        yield (
            PODS,
            {
                "metadata": {"name": f"{template}-{number:03}"},
                "spec": {"containers": [main], "resourceClaims": claims},
            },
        )


def run_pods(kubeconfig: Path) -> None:
    """Wait until the scheduler has decided about all pods, and say that those with a node run, as kubelets do."""
    deadline = time.monotonic() + SCHEDULED_SECONDS
    with RestClient.from_kubeconfig(kubeconfig) as client:
        while True:
            pods = client.call("GET", PODS)["items"]
            bound = [pod for pod in pods if pod["spec"].get("nodeName")]
            decided = sum(bool(pod["status"].get("conditions")) for pod in pods)
            if len(bound) == RUNNING and decided == RUNNING + PENDING:
                break
            assert time.monotonic() < deadline, pods[0]["status"]
            time.sleep(1)
        for pod in bound:
            status = {
                "status": {"phase": "Running", "startTime": pod["metadata"]["creationTimestamp"]}
            }
            path = f"{PODS}/{pod['metadata']['name']}/status"
            client.call("PATCH", path, body=status, content_type=MERGE)


def wait_for_nodes(kubeconfig: Path) -> None:
    """Until the kubelets of all nodes have reported: before, nodes have the taint not-ready."""
    deadline = time.monotonic() + START_SECONDS
    with RestClient.from_kubeconfig(kubeconfig) as client:
        while tainted := [
            node["metadata"]["name"]
            for node in client.call("GET", NODES_PATH)["items"]
            if node["spec"].get("taints")
        ]:
            assert time.monotonic() < deadline, tainted
            time.sleep(1)


def answer(*arguments: str | Path) -> Any:
    ended = allot(*arguments, "-o", "json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def answers(*where: str | Path) -> dict[str, Any]:
    """What commands say, without ages."""
    found = {name: answer(name, *where) for name in ("status", "devices")}
    found["devices"].pop("notes", None)
    pending = answer("explain", "--all-pending", *where)
    found["pending"] = [(each["cause"], each["pods"], each["owners"]) for each in pending["causes"]]
    for name in (f"nine-{RUNNING:03}", "two-000"):
        said = answer("explain", f"pod/{name}", *where)
        found[name] = {part: said.get(part) for part in ("pod", "state", "reason", "node", "nodes")}
    return found


def test_a_twin_of_500_nodes(tmp_path: Path) -> None:
    clone, recording, data = (tmp_path / name for name in ("prod.allot", "prod.rec", "twin"))
    with kubernetes(tmp_path / "kubernetes") as kubeconfig:
        create_all(kubeconfig, list(hardware()))
        create_all(kubeconfig, list(workload()))
        run_pods(kubeconfig)
        process = RecordProcess(kubeconfig, recording)
        started = time.monotonic()
        cloned = allot("clone", "--kubeconfig", kubeconfig, "-o", clone)
        assert cloned.returncode == 0, cloned.stderr
        log.info("cloned in %.1f s", time.monotonic() - started)
        expected = answers("--kubeconfig", kubeconfig)
        process.end(signal.SIGTERM)
        metrics = allot("exporter", "--once", "--kubeconfig", kubeconfig).stdout
        past = allot("status", "--kubeconfig", kubeconfig, "--at", "-1m")
    for file in (clone, recording):
        assert "hunter2" not in file.read_text()
        assert answers("-f", file) == expected
    assert f'allot_pending_pods{{cause="DynamicResources"}} {PENDING:.1f}' in metrics
    assert "this API server does not tell the past" in past.stderr
    started = time.monotonic()
    up = allot("up", "--data-dir", data, "--port", "0", "--detach", "--from", clone)
    try:
        assert up.returncode == 0, up.stderr
        log.info("the twin was ready in %.1f s", time.monotonic() - started)
        wait_for_nodes(data / "kubeconfig")
        assert answers("--kubeconfig", data / "kubeconfig") == expected
    finally:
        allot("down", "--data-dir", data)
    total = NODES * DEVICES_PER_NODE
    states = expected["devices"]["states"]
    assert states == {"free": total - 2 * RUNNING, "held": 2 * RUNNING}
    assert sum(pods for _, pods, _ in expected["pending"]) == PENDING
