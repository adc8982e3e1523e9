"""kubectl as a process of its own, in a directory with the files that the invocations name."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tests.kubectl.invocations import DATA, Invocation, Section
from tests.kubectl.normalising import normalised, without_descriptions

UNTIL_SECONDS: Final = 60
SERVING: Final = {("proxy",): 3.0, ("port-forward",): 5.0}
"""Commands that run until they are stopped."""
TIMEOUT_SECONDS: Final = 90.0
NO_TAINTS: Final = '{"spec":{"taints":null}}'
PODS: Final = 8
"""Of the namespace `world`: one alone, two of a deployment, one each of a StatefulSet, Job and controller, two of a DaemonSet."""
STATUS: Final = {
    "deployment/web .status.availableReplicas": "2",
    "statefulset/db .status.availableReplicas": "1",
    "daemonset/agent .status.numberAvailable": "2",
    "replicationcontroller/old .status.availableReplicas": "1",
    "job/once .status.ready": "1",
    "poddisruptionbudget/web .status.currentHealthy": "2",
    "resourcequota/limits .status.used.pods": "8",
}


class Answer(NamedTuple):
    """What one invocation gave, without what differs from run to run."""

    code: int
    stdout: str
    stderr: str


class Kubectl:
    """One kubectl on one cluster."""

    def __init__(self, path: Path, kubeconfig: Path, directory: Path) -> None:
        self._path, self._directory = path, directory
        self._original = _renamed(yaml.safe_load(kubeconfig.read_text()))
        self._kubeconfig = directory / "kubeconfig"
        shutil.copytree(DATA / "files", directory, dirs_exist_ok=True)
        (directory / "editor").chmod(0o700)
        key_pair(directory / "server.key", directory / "server.crt")
        self.use_namespace("default")

    def version(self) -> str:
        """Its minor version, such as 1.38."""
        said = self.run(Invocation(("version", "--client", "-o", "json"))).stdout
        found = json.loads(said)["clientVersion"]
        return f"{found['major']}.{found['minor'].rstrip('+')}"

    def use_namespace(self, namespace: str) -> None:
        config: dict[str, Any] = json.loads(json.dumps(self._original))
        for context in config["contexts"]:
            context["context"]["namespace"] = namespace
        self._kubeconfig.write_text(yaml.safe_dump(config))

    def help(self, arguments: Any) -> str:
        return self.run(Invocation(tuple(arguments))).stdout

    def play(self, invocation: Invocation) -> Answer | None:
        """Its answer; None of one that only waits."""
        if not invocation.until:
            answer = normalised_answer(self.run(invocation), self._original)
            if invocation.arguments[0] == "explain":
                answer = answer._replace(stdout=without_descriptions(answer.stdout))
            return answer
        deadline = time.monotonic() + UNTIL_SECONDS
        while invocation.until not in (said := self.run(invocation)).stdout:
            assert time.monotonic() < deadline, (
                f"{invocation.name}: never {invocation.until}: {said}"
            )
            time.sleep(0.2)
        return None

    def run_all(self, commands: Sequence[tuple[str, ...]]) -> None:
        for arguments in commands:
            done = self.run(Invocation(arguments))
            assert done.code == 0, done

    def play_section(self, section: Section) -> list[tuple[Invocation, Answer]]:
        self.use_namespace("default")
        self.run(Invocation(("create", "namespace", section.namespace)))
        self.use_namespace(section.namespace)
        answers = []
        for invocation in section.invocations:
            answer = self.play(invocation)
            if answer is not None:
                answers.append((invocation, answer))
        return answers

    def run_pods(self) -> None:
        """Play the kubelet: every scheduled pod of the namespace runs and is ready."""
        found = json.loads(self.run(Invocation(("get", "pods", "-o", "json"))).stdout)["items"]
        for pod in found:
            patch = json.dumps({"status": _running(pod)})
            name = pod["metadata"]["name"]
            done = self.run(Invocation(("patch", "pod", name, "--subresource=status", "-p", patch)))
            assert done.code == 0, done

    def run(self, invocation: Invocation) -> Answer:
        limit = next(
            (
                seconds
                for path, seconds in SERVING.items()
                if invocation.arguments[: len(path)] == path
            ),
            TIMEOUT_SECONDS,
        )
        home = self._directory / "home"
        home.mkdir(exist_ok=True)
        with subprocess.Popen(
            [str(self._path), *invocation.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._directory,
            env={
                "HOME": str(home),
                "PATH": "/usr/bin:/bin",
                "KUBECONFIG": "kubeconfig",
                "EDITOR": "./editor",
                "TZ": "UTC",
                **invocation.environment,
            },
        ) as process:
            try:
                stdout, stderr = process.communicate(
                    _as_yaml(invocation.stdin).encode(), timeout=limit
                )
            except subprocess.TimeoutExpired:
                process.terminate()
                stdout, stderr = process.communicate()
            return Answer(process.returncode, stdout.decode(), stderr.decode())


def _as_yaml(text: str) -> str:
    """Older versions of kubectl take everything that begins with a brace for JSON."""
    if not text.startswith("{"):
        return text
    try:
        json.loads(text)
    except ValueError:
        with suppress(yaml.YAMLError):
            yaml.safe_load(text)
            return f"---\n{text}"
    return text


def normalised_answer(answer: Answer, kubeconfig: dict[str, Any]) -> Answer:
    server = kubeconfig["clusters"][0]["cluster"]["server"]
    names = {server: "https://server", server.removeprefix("https://"): "server"}
    return Answer(answer.code, normalised(answer.stdout, names), normalised(answer.stderr, names))


def _running(pod: dict[str, Any]) -> dict[str, Any]:
    at = "2026-01-01T00:00:00Z"
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    return {
        "phase": "Running",
        "podIP": "10.1.0.1",
        "podIPs": [{"ip": "10.1.0.1"}],
        "hostIP": "10.2.0.1",
        "startTime": at,
        "conditions": [
            {"type": name, "status": "True", "lastTransitionTime": at} for name in conditions
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": f"sha256:{container['name']}",
                "containerID": f"containerd://{container['name']}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": at}},
            }
            for container in pod["spec"]["containers"]
        ],
    }


def key_pair(key: Path, certificate: Path) -> None:
    """A private key and its certificate."""
    files = ("-keyout", str(key), "-out", str(certificate))
    subprocess.run(
        ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", *files),
        check=True,
        capture_output=True,
    )


def prepare(kubectl: Kubectl) -> None:
    """The objects that most invocations ask for: nodes, and a workload of every kind in the namespace `world`."""
    kubectl.run_all(
        [
            ("apply", "-f", "cluster.yaml"),
            ("patch", "node", "n1", "--subresource=status", "--patch-file=node-status.yaml"),
            ("patch", "node", "n2", "--subresource=status", "--patch-file=node-status.yaml"),
            ("patch", "node", "n1", "-p", NO_TAINTS),
            ("patch", "node", "n2", "-p", NO_TAINTS),
            ("create", "namespace", "world"),
        ]
    )
    kubectl.use_namespace("world")
    wait = Invocation(("get", "sa", "default", "-o", "name"), until="default")
    kubectl.play(wait)
    kubectl.run_all([("apply", "-f", "world.yaml")])
    every = Invocation(("get", "pods", "--field-selector=spec.nodeName!=", "-o", "name"))
    deadline = time.monotonic() + UNTIL_SECONDS
    while len(kubectl.run(every).stdout.split()) < PODS:
        assert time.monotonic() < deadline, kubectl.run(Invocation(("get", "pods")))
        time.sleep(0.2)
    kubectl.run_pods()
    for path, count in STATUS.items():
        resource, _, field = path.partition(" ")
        kubectl.play(Invocation(("get", resource, "-o", f"jsonpath={{{field}}}"), until=count))


def _renamed(kubeconfig: dict[str, Any]) -> dict[str, Any]:
    """The first context as the only one, named as on every server."""
    context, cluster = kubeconfig["contexts"][0]["context"], kubeconfig["clusters"][0]["cluster"]
    users = {user["name"]: user["user"] for user in kubeconfig["users"]}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "kube",
        "contexts": [{"name": "kube", "context": {"cluster": "kube", "user": "admin"}}],
        "clusters": [{"name": "kube", "cluster": cluster}],
        "users": [{"name": "admin", "user": users[context["user"]]}],
    }
