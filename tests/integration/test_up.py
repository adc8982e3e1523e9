"""`allot up` as a user meets it: a process, kubectl's file, Ctrl-C, kill -9, and starting again."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
import yaml

from tests.acceptance.runner.rest import MERGE_PATCH, RestClient
from tests.acceptance.server_process import PROGRAM

START_SECONDS = 150.0
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {
        "containers": [
            {"name": "c", "image": "example.com/i", "resources": {"claims": [{"name": "gpu"}]}}
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
    },
}
TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu.example.com}
"""
PODS = "/api/v1/namespaces/default/pods"
GENERATED = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def allot(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


class Up:
    """A running `allot up`."""

    def __init__(self, directory: Path, process: subprocess.Popen[str]) -> None:
        self.directory, self.process = directory, process
        self.said: list[str] = []

    def wait_ready(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith("Ctrl-C"):
                return
        raise AssertionError("".join(self.said))

    def stop(self, which: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(which)
        return self.process.wait(60)

    def client(self) -> RestClient:
        return RestClient.from_kubeconfig(self.directory / "kubeconfig")


@contextmanager
def up(directory: Path, *arguments: str | Path) -> Iterator[Up]:
    command = [*PROGRAM, "up", "--data-dir", directory, "--port", "0", *arguments]
    with (
        (directory.parent / "up.log").open("a+") as log,
        subprocess.Popen(
            [str(each) for each in command], stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        running = Up(directory, process)
        try:
            running.wait_ready()
            yield running
        finally:
            process.kill()
            log.seek(0)
            said = log.read()
            assert "Traceback" not in said, said


def phase_of(client: RestClient, name: str) -> str:
    answer = client.request("GET", f"{PODS}/{name}")
    return str(answer.body["status"].get("phase")) if answer.code == 200 else ""


def wait_until_running(client: RestClient, name: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while phase_of(client, name) != "Running":
        assert time.monotonic() < deadline, client.request("GET", f"{PODS}/{name}").body
        time.sleep(0.02)


def devices_in_use(client: RestClient) -> list[tuple[str, str]]:
    claims = client.call("GET", GENERATED)["items"]
    return sorted(
        (result["pool"], result["device"])
        for claim in claims
        for result in claim.get("status", {})
        .get("allocation", {})
        .get("devices", {})
        .get("results", ())
    )


def test_its_life(tmp_path: Path) -> None:
    """Started with hardware and manifests, stopped by Ctrl-C, found again, killed, found again, and stopped by `down`."""
    directory = tmp_path / "state"
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "template.yaml").write_text(TEMPLATE)

    with up(directory, "--hardware", "gpu-server=1", "-f", manifests) as first:
        with first.client() as client:
            client.call("POST", PODS, body=POD)
            wait_until_running(client, "p")
            held = devices_in_use(client)
        assert len(held) == 1
        assert first.stop() == 0
    assert any("export KUBECONFIG=" in line for line in first.said)

    with up(directory, "--hardware", "gpu-server=1", "-f", manifests) as second:
        with second.client() as client:
            assert devices_in_use(client) == held
            client.call("POST", PODS, body={**POD, "metadata": {"name": "q"}})
            wait_until_running(client, "q")
        twice = allot("up", "--data-dir", directory, "--port", "0")
        assert twice.returncode == 2
        assert "is in use by another allot" in twice.stderr
        assert len(twice.stderr.splitlines()) <= 2
        refused = allot("reset", "--data-dir", directory, "--yes")
        assert refused.returncode == 2
        assert "allot down" in refused.stderr
        second.process.kill()
        second.process.wait(60)

    with up(directory, "--hardware", "gpu-server=1", "--separate") as third:
        with third.client() as client:
            after_kill = devices_in_use(client)
            client.call("POST", PODS, body={**POD, "metadata": {"name": "r"}})
            wait_until_running(client, "r")
            assert len(set(devices_in_use(client))) == 3
            statuses = client.call("GET", "/api/v1/componentstatuses")["items"]
            assert {each["conditions"][0]["status"] for each in statuses} == {"True"}
        assert set(held) < set(after_kill)
        path = allot("kubeconfig", "--data-dir", directory)
        assert Path(path.stdout.strip()) == directory / "kubeconfig"
        assert "stopped" in allot("down", "--data-dir", directory).stdout
        assert third.process.wait(60) == 0

    assert "no cluster runs" in allot("down", "--data-dir", directory).stdout
    assert allot("reset", "--data-dir", directory, "--yes").returncode == 0
    assert not directory.exists()


def node_names(directory: Path) -> list[str]:
    with RestClient.from_kubeconfig(directory / "kubeconfig") as client:
        return sorted(
            node["metadata"]["name"] for node in client.call("GET", "/api/v1/nodes")["items"]
        )


def test_default_hardware(tmp_path: Path) -> None:
    """A new directory has the example hardware; later starts have what the last one had."""
    directory = tmp_path / "state"
    with up(directory) as first:
        assert any("5 nodes, 32 devices" in line for line in first.said)
        assert any(line.strip() == "allot demo" for line in first.said)
        with first.client() as client:
            classes = client.call("GET", "/apis/resource.k8s.io/v1/deviceclasses")["items"]
        assert "gpu.example.com" in {each["metadata"]["name"] for each in classes}
        first.stop()
    own = tmp_path / "own.yaml"
    own.write_text("nodes: {count: 1, name: 'mine-{node}'}\n")
    with up(tmp_path / "other", "--hardware", own) as second:
        assert node_names(tmp_path / "other") == ["mine-0"]
        second.stop()
    with up(tmp_path / "other") as third:
        assert node_names(tmp_path / "other") == ["mine-0"]
        third.stop()


def test_requests_until_ready(tmp_path: Path) -> None:
    """Each costs time before the cluster is ready; seconds depend on the machine."""
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    with up(tmp_path / "state", "--audit-policy-file", policy, "--audit-log-path", log) as running:
        events = [json.loads(line) for line in log.read_text().splitlines()]
        running.stop()
    watches = [each for each in events if each["verb"] == "watch"]
    ended = [each for each in events if each["stage"] == "ResponseComplete"]
    writes = [each for each in ended if each["verb"] in ("create", "update", "patch", "delete")]
    begun = {each["auditID"] for each in watches}
    assert (len(begun) < 120, len(writes) < 100, len(ended) < 250) == (True, True, True), (
        len(begun),
        len(writes),
        len(ended),
    )


@pytest.mark.parametrize("options", [["--empty"], ["--no-nodes"], ["--all-nodes"], ["-f", "NODE"]])
def test_without_hardware(options: list[str], tmp_path: Path) -> None:
    """A user who brings nodes, or wants none, finds nothing else in the cluster."""
    node = tmp_path / "node.yaml"
    node.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n")
    options = [str(node) if each == "NODE" else each for each in options]
    with up(tmp_path / "state", *options) as running, running.client() as client:
        assert node_names(tmp_path / "state") == (["node-1"] if str(node) in options else [])
        for kind in ("deviceclasses", "resourceslices"):
            assert client.call("GET", f"/apis/resource.k8s.io/v1/{kind}")["items"] == []
        assert not any("allot demo" in line for line in running.said)


def test_state_in_memory_does_not_stay(tmp_path: Path) -> None:
    with up(tmp_path / "state", "--empty", "--storage", "memory") as running:
        assert running.said[-1] == "Ctrl-C stops it; its objects are in memory, and end with it.\n"
        said = allot("down", "--data-dir", tmp_path / "state").stdout
        assert said == "stopped; its objects were in memory\n"


def test_detached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It returns when all is ready; commands in the same directory find the cluster; kubectl, too, if it was merged."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    user = tmp_path / ".kube" / "config"
    user.parent.mkdir()
    user.write_text("current-context: work\ncontexts: [{name: work, context: {cluster: work}}]\n")
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    manifests = ("-f", "template.yaml", "-f", "pod.json")
    try:
        started = allot("up", "--wait", "-v", "--port", "0", "--merge-kubeconfig", *manifests)
        assert started.returncode == 0, started.stderr
        assert "allot is ready after" in started.stdout
        assert "`allot down` stops it; the state stays in .allot" in started.stdout
        with RestClient.from_kubeconfig(tmp_path / ".allot" / "kubeconfig") as client:
            assert phase_of(client, "p") == "Running", "--wait has waited for it"
        assert "Pod default/p is on node gpu-server-0 (Running)" in allot("explain", "pod/p").stdout
        assert "gpu.example.com" in allot("status").stdout
        log = (tmp_path / ".allot" / "up.log").read_text()
        for done in ("created claim p-gpu-", "bound to node gpu-server-0", "Running on node"):
            assert f"pod default/p: {done}" in log, "-v says what components do"
        assert " D " not in log
        merged = yaml.safe_load(user.read_text())
        assert merged["current-context"] == "allot"
        assert {each["name"] for each in merged["contexts"]} == {"work", "allot"}
        again = allot("up", "--detach", "--port", "0")
        assert again.returncode == 2
        assert "is in use by another allot" in again.stderr
    finally:
        stopped = allot("down")
    assert stopped.stdout == "stopped; the state is in .allot\n"
    assert "its cluster is stopped" in allot("status", "--kubeconfig", ".allot/kubeconfig").stderr
    assert "the context allot is removed" in allot("reset", "--yes").stdout
    assert {each["name"] for each in yaml.safe_load(user.read_text())["contexts"]} == {"work"}


def test_detached_with_a_mistake(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    (directory / "allot.db").write_bytes(b"not a database at all, not even nearly" * 100)

    answer = allot("up", "--detach", "--data-dir", directory, "--port", "0")

    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr.startswith("error: ")
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--hardware", "nothing-like-it"], "error: nothing-like-it: no such file or profile"),
        (["--controllers", "missing"], "unknown controller 'missing'"),
        (["--storage", "floppy"], "is not one of"),
        (["--feature-gates", "NoSuchGate=true"], "NoSuchGate"),
        (["--hardware", "gpu-server", "--no-nodes"], "leave out --no-nodes"),
        (["--hardware", "gpu-server", "--empty"], "leave out --empty"),
    ],
)
def test_what_makes_no_sense(arguments: list[str], says: str, tmp_path: Path) -> None:
    answer = allot("up", "--data-dir", tmp_path / "d", "--port", "0", *arguments)

    assert answer.returncode == 2
    assert says in answer.stderr
    assert len(answer.stderr.splitlines()) <= 3


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = allot("up", "--data-dir", tmp_path / "d", "--port", str(port))

    assert answer.returncode == 2
    assert f"127.0.0.1:{port}: Address already in use; --port 0 takes a free port" in answer.stderr


def test_a_corrupt_file(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    (directory / "allot.db").write_bytes(b"not a database at all, not even nearly" * 100)

    answer = allot("up", "--data-dir", directory, "--port", "0")

    assert answer.returncode == 2
    assert "allot.db" in answer.stderr
    assert len(answer.stderr.splitlines()) <= 3


DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 6,
        "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": POD["spec"]},
    },
}


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """Twelve times, from before it is ready to long after, while a Deployment grows and shrinks."""
    directory, random = tmp_path / "state", Random(4816)  # noqa: S311 - moments, not secrets
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    arguments = ("--hardware", "gpu-server=1", "-f", tmp_path / "template.yaml")
    with up(directory, *arguments) as first, first.client() as client:
        client.call("POST", DEPLOYMENTS, body=DEPLOYMENT)
    for number in range(12):
        if number % 3 == 0:
            command = [*PROGRAM, "up", "--data-dir", directory, "--port", "0", *arguments]
            with subprocess.Popen(
                [str(each) for each in command],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process:
                time.sleep(random.uniform(0.2, 2.0))
                process.kill()
            continue
        with up(directory, *arguments) as running, running.client() as client:
            change = {"spec": {"replicas": random.randrange(9)}}
            client.call("PATCH", f"{DEPLOYMENTS}/d", body=change, content_type=MERGE_PATCH)
            time.sleep(random.uniform(0.0, 1.0))
            running.process.kill()

    with up(directory, *arguments) as last, last.client() as client:
        change = {"spec": {"replicas": 6}}
        client.call("PATCH", f"{DEPLOYMENTS}/d", body=change, content_type=MERGE_PATCH)
        deadline = time.monotonic() + START_SECONDS
        while True:
            pods = client.call("GET", PODS)["items"]
            claims = client.call("GET", GENERATED)["items"]
            phases = [pod["status"]["phase"] for pod in pods]
            if phases == ["Running"] * 6 and len(claims) == 6:
                break
            assert time.monotonic() < deadline, (phases, len(claims))
            time.sleep(0.1)
        assert len(set(devices_in_use(client))) == 6
