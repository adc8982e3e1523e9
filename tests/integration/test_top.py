"""`allot top` in a terminal: a cluster that runs, goes and comes back, and what is on the screen."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.testing.manifests import a_pod_manifest
from tests.acceptance.runner.rest import RestClient
from tests.acceptance.server_process import PROGRAM
from tests.integration.test_up import PODS, TEMPLATE, Up, up, wait_until_running
from tests.integration.tmux_session import TmuxSession, tmux_session

pytestmark = pytest.mark.timeout(600)

UTF8 = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "COLORTERM": "", "NO_COLOR": ""}
"""As over ssh: no true color."""
DUMP = """\
apiVersion: v1
kind: Node
metadata: {name: node-1}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: team}
spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.example.com}}]}}
status:
  reservedFor: [{resource: pods, name: trainer, uid: u}]
  allocation:
    devices:
      results: [{request: g, driver: gpu.example.com, pool: node-1, device: gpu-1}]
"""


def top(*arguments: str | Path) -> Sequence[str]:
    return [*PROGRAM, "top", *map(str, arguments)]


def gpu_pod(name: str, template: str = "one-gpu") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    entry = {"name": "gpu", "resourceClaimTemplateName": template}
    return a_pod_manifest(name, claims=[entry], containers=[container])


def plan_of(lines: list[str], node: str) -> str:
    """The symbols of a node's devices, pools apart; nothing while they are not shown."""
    line = next((each for each in lines if each.strip().startswith(node)), "")
    return "".join(re.split(r"\d+/\d+  ", line)[1:]).rstrip()


def until_plan(session: TmuxSession, node: str, plan: str) -> None:
    session.until_lines(lambda lines: plan_of(lines, node) == plan, f"{plan!r} of {node}")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def create(cluster: Up, *pods: dict[str, Any]) -> None:
    with cluster.client() as client:
        for pod in pods:
            client.call("POST", PODS, body=pod)


def test_a_cluster_that_changes_goes_and_comes_back(tmp_path: Path) -> None:
    directory, template = tmp_path / "state", tmp_path / "template.yaml"
    template.write_text(TEMPLATE)
    port = str(free_port())
    start = ("--hardware", "gpu-server=2", "-f", template, "--port", port)
    kubeconfig = directory / "kubeconfig"
    with up(directory, *start) as cluster:
        command = top("--kubeconfig", kubeconfig)
        with tmux_session(tmp_path, command, size=(120, 30), environment=UTF8) as session:
            _watch_changes(cluster, session)
            _explain_pending(cluster, session)
            _resize(session)
            cluster.stop()
            session.until("reconnecting: ")
            session.until_lines(
                lambda lines: "█" in plan_of(lines, "gpu-server-0"), "the plan, which stays"
            )
            with up(directory, *start) as again:
                session.until("● live")
                with again.client() as client:
                    client.call("DELETE", f"{PODS}/first")
                session.until("24 free")
                session.press("q")
                session.until("ended with 0")
                assert not session.has_whole_screen()


def _watch_changes(cluster: Up, session: TmuxSession) -> None:
    session.until("● live")
    session.until("24 free")
    session.until_lines(
        lambda lines: plan_of(lines, "gpu-server-0").split() == ["·"] * 12, "twelve free devices"
    )
    create(cluster, gpu_pod("first"))
    session.until("1 held")
    with cluster.client() as client:
        wait_until_running(client, "first")
    session.press("3", "/", *"first", "Enter")
    session.until("1 match 'first'")
    session.until("default/first")
    session.press("Enter")
    session.until("Device gpu-")
    session.press("e")
    session.until("Explain pod default/first")
    session.until("on node gpu-server-")
    session.press("Escape", "Escape", "Escape")
    session.press("1")
    session.until("gpu-server-1")


def _explain_pending(cluster: Up, session: TmuxSession) -> None:
    create(cluster, gpu_pod("stuck", "no-such-template"))
    session.until("2 Pending 1")
    session.press("2")
    session.until("1 pending: pod/default/stuck")
    session.until("no-such-template")
    session.press("Enter")
    session.until("Explain pod default/stuck")
    session.until("no-such-template")
    with cluster.client() as client:
        client.call("DELETE", f"{PODS}/stuck")
    session.until("deleted; this is the last that was known")
    session.press("Escape")
    session.until("No pod is pending.")
    session.press("6")
    session.until("Pod/default/first")
    session.press("1")


def _resize(session: TmuxSession) -> None:
    session.resize(80, 24)
    session.until_lines(_is_narrow, "on 80 columns and 24 lines, with a line for each node")


def _is_narrow(lines: list[str]) -> bool:
    rows = [line for line in lines if line.strip().startswith("gpu-server-")]
    return (
        len(rows) == 2
        and all(len(line) <= 80 for line in lines)
        and lines[0].startswith(" allot top")
        and lines[23].endswith("q  quit")
    )


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.yaml"
    path.write_text(DUMP)
    return path


def test_a_file_is_shown_and_ctrl_c_restores_the_terminal(dump: Path) -> None:
    with tmux_session(dump.parent, top("-f", dump), environment=UTF8) as session:
        session.until("not live")
        session.until("gpu-0 on node-1")
        until_plan(session, "node-1", "· █")
        assert session.has_whole_screen()
        session.press("C-c")
        session.until("ended with 130")
        assert not session.has_whole_screen()
        assert "Traceback" not in session.screen
        session.press("a")
        session.until("a")  # keys are echoed again


def test_standard_input_is_a_file_and_keys_come_from_the_terminal(dump: Path) -> None:
    program = " ".join(f"'{each}'" for each in top("-f", "-"))
    command = ["sh", "-c", f"cat dump.yaml | {program}"]
    with tmux_session(dump.parent, command, environment=UTF8) as session:
        session.until("gpu-0 on node-1")
        session.press("q")
        session.until("ended with 0")


def test_without_colors_and_without_utf8(dump: Path) -> None:
    environment = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment["NO_COLOR"] = "1"
    with tmux_session(dump.parent, top("-f", dump), environment=environment) as session:
        session.until("gpu-0 on node-1")
        until_plan(session, "node-1", ". #")
        assert session.screen.isascii()
        colors = set(re.findall(r"\x1b\[([0-9;]*)m", session.styled_screen))
        parts = {part for each in colors for part in each.split(";") if part}
        assert not {
            part for part in parts - {"39", "49"} if 30 <= int(part) <= 49 or int(part) >= 90
        }
        session.press("q")
        session.until("ended with 0")


def test_sigterm_restores_the_terminal(dump: Path) -> None:
    with tmux_session(dump.parent, top("-f", dump), environment=UTF8) as session:
        session.until("gpu-0 on node-1")
        session.terminate()
        session.until("ended with 143")
        assert not session.has_whole_screen()


def test_what_may_not_be_read_is_said(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    with up(directory, "--hardware", "gpu-server=1") as cluster, cluster.client() as client:
        kubeconfig = _with_rights(client, directory, ["resourceslices", "resourceclaims"])
        with tmux_session(tmp_path, top("--kubeconfig", kubeconfig), environment=UTF8) as session:
            session.until("12 free")
            session.until("notes")
            session.press("?", "G")
            session.until("pods could not be read")


def _with_rights(client: RestClient, directory: Path, plurals: list[str]) -> Path:
    """The kubeconfig of a service account that may list and watch these resources of DRA."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    client.call("POST", "/api/v1/namespaces/default/serviceaccounts",
                body={"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "viewer"}})  # fmt: skip
    rules = [
        {"apiGroups": ["resource.k8s.io"], "resources": plurals, "verbs": ["get", "list", "watch"]}
    ]
    client.call("POST", f"{rbac}/clusterroles",
                body={"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                      "metadata": {"name": "viewer"}, "rules": rules})  # fmt: skip
    client.call("POST", f"{rbac}/clusterrolebindings",
                body={"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                      "metadata": {"name": "viewer"},
                      "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "viewer"},
                      "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": "default"}]})  # fmt: skip
    answer = client.call(
        "POST",
        "/api/v1/namespaces/default/serviceaccounts/viewer/token",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )
    config = yaml.safe_load((directory / "kubeconfig").read_text())
    for user in config["users"]:
        user["user"] = {"token": answer["status"]["token"]}
    path = directory.parent / "viewer"
    path.write_text(yaml.safe_dump(config))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param("{} | cat", "top needs a terminal", id="no-terminal"),
        pytest.param("TERM=dumb {}", "TERM says it cannot", id="dumb-terminal"),
        pytest.param("{} --kubeconfig missing", "no kubeconfig at missing", id="no-cluster"),
    ],
)
def test_where_it_cannot_run(dump: Path, command: str, said: str) -> None:
    program = " ".join(f"'{each}'" for each in top(*(() if "missing" in command else ("-f", dump))))
    with tmux_session(dump.parent, ["sh", "-c", command.format(program)]) as session:
        session.until(said)
        session.until("ended with")
        assert "Traceback" not in session.screen
