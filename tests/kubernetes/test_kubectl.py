"""kubectl on `allot up`: Kubernetes v1.38's own, which speaks protobuf, and the one of this machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.server_process import running_cluster
from tests.kubernetes.programs import NEEDS_KUBERNETES, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), NEEDS_KUBERNETES]
MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {a: "1", b: "2"}
"""
CHANGED = MAP.replace('a: "1"', 'a: "9"')
TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}}
"""
ROLES = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: %(namespace)s}
rules: [{apiGroups: [""], resources: [pods], verbs: [%(verb)s]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: %(namespace)s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
"""
MANAGERS = (
    "jsonpath={range .metadata.managedFields[*]}{.manager} {.operation} {.fieldsV1.f:data}|{end}"
)


class Kubectl:
    """One kubectl, in a namespace of its own."""

    def __init__(self, path: Path, kubeconfig: Path, namespace: str, directory: Path) -> None:
        self._command = [str(path), "--kubeconfig", str(kubeconfig), "--namespace", namespace]
        self.directory = directory
        self._namespace = namespace
        self.ok("create", "namespace", namespace)

    def roles(self, verb: str) -> str:
        """Reconciliation takes the namespace from the manifest alone."""
        return ROLES % {"namespace": self._namespace, "verb": verb}

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> tuple[int, str]:
        """The exit code, and what it says."""
        done = subprocess.run(
            [*self._command, *arguments],
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
            env={"HOME": str(self.directory), "PATH": "/usr/bin:/bin", **environment},
        )
        return done.returncode, done.stdout

    def ok(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        code, said = self.run(*arguments, stdin=stdin, **environment)
        assert code == 0, said
        return said


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with running_cluster(tmp_path_factory.mktemp("up")) as found:
        yield found


@pytest.fixture(scope="module", params=["of-v1.38", "of-this-machine"])
def kubectl(
    request: pytest.FixtureRequest, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    found = shutil.which("kubectl")
    if request.param == "of-v1.38":
        path = program("kubectl")
    elif found:
        path = Path(found)
    else:
        pytest.skip("there is no kubectl on this machine")
    namespace = request.param.replace(".", "-")
    return Kubectl(path, kubeconfig, namespace, tmp_path_factory.mktemp("home"))


def test_auth(kubectl: Kubectl) -> None:
    as_alice = ("--as", "alice", "--as-group", "devs")

    assert kubectl.ok("auth", "can-i", "create", "pods").strip() == "yes"
    code, said = kubectl.run("auth", "can-i", "get", "pods", *as_alice)
    assert (code, said.strip()) == (1, "no")
    whoami = kubectl.ok("auth", "whoami", *as_alice)
    assert "alice" in whoami
    assert "[devs system:authenticated]" in whoami

    created = kubectl.ok("auth", "reconcile", "-f", "-", stdin=kubectl.roles("get"))
    assert "role.rbac.authorization.k8s.io/reader reconciled" in created
    assert "missing subjects added" in created
    kubectl.ok("auth", "can-i", "get", "pods", *as_alice)
    assert kubectl.run("auth", "can-i", "list", "pods", *as_alice)[0] == 1
    added = kubectl.ok("auth", "reconcile", "-f", "-", stdin=kubectl.roles("list"))
    assert "missing rules added" in added
    kubectl.ok("auth", "can-i", "list", "pods", *as_alice)
    kubectl.ok("auth", "can-i", "get", "pods", *as_alice)
    extra = ("--remove-extra-permissions", "--remove-extra-subjects")
    removed = kubectl.ok("auth", "reconcile", *extra, "-f", "-", stdin=kubectl.roles("list"))
    assert "extra rules removed" in removed
    assert kubectl.run("auth", "can-i", "get", "pods", *as_alice)[0] == 1

    rows = [line.split() for line in kubectl.ok("auth", "can-i", "--list", *as_alice).splitlines()]
    assert ["pods", "[]", "[]", "[list]"] in rows
    assert ["selfsubjectreviews.authentication.k8s.io", "[]", "[]", "[create]"] in rows


def test_server_side_apply_diff_and_edit(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-")

    assert kubectl.ok(*apply, stdin=MAP) == "configmap/one serverside-applied\n"
    assert kubectl.run("diff", "--server-side", "-f", "-", stdin=MAP) == (0, "")
    code, changes = kubectl.run("diff", "--server-side", "-f", "-", stdin=CHANGED)
    assert code == 1
    assert '-  a: "1"\n+  a: "9"' in changes
    code, conflict = kubectl.run(*apply, "--field-manager=other", stdin=CHANGED)
    assert code == 1
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.a' in conflict
    kubectl.ok(*apply, "--field-manager=other", "--force-conflicts", stdin=CHANGED)
    assert kubectl.ok("get", "configmap", "one", "--show-managed-fields", "-o", MANAGERS) == (
        'kubectl Apply {"f:b":{}}|other Apply {"f:a":{},"f:b":{}}|'
    )

    editor = kubectl.directory / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/  b: .*/  b: edited/" "$1"\n')
    editor.chmod(0o700)
    assert kubectl.ok("edit", "configmap", "one", EDITOR=str(editor)) == "configmap/one edited\n"
    assert kubectl.ok("get", "configmap", "one", "--show-managed-fields", "-o", MANAGERS) == (
        'other Apply {"f:a":{}}|kubectl-edit Update {"f:b":{}}|'
    )

    # To client-side apply and back: kubectl takes the fields over.
    assert "configmap/one configured" in kubectl.ok("apply", "-f", "-", stdin=MAP)
    kubectl.ok(*apply, stdin=MAP)
    assert kubectl.ok("get", "configmap", "one", "--show-managed-fields", "-o", MANAGERS) == (
        'kubectl Apply {"f:a":{},"f:b":{}}|kubectl-last-applied Apply |'
    )


@pytest.mark.parametrize("side", ["client", "server"])
def test_apply_sets(kubectl: Kubectl, side: str) -> None:
    name = f"set-{side}"
    apply = ["apply", "--prune", f"--applyset={name}", "-f", "-"]
    if side == "server":
        apply += ["--server-side", "--force-conflicts"]

    first = kubectl.ok(*apply, stdin=f"{MAP}---\n{TEMPLATE}", KUBECTL_APPLYSET="true")
    assert "pruned" not in first
    second = kubectl.ok(*apply, stdin=MAP, KUBECTL_APPLYSET="true")
    assert "resourceclaimtemplate.resource.k8s.io/two pruned" in second
    kubectl.ok("get", "configmap", "one")
    assert kubectl.ok("get", "resourceclaimtemplates", "-o", "name") == ""
    kinds = "jsonpath={.metadata.annotations.applyset\\.kubernetes\\.io/contains-group-kinds}"
    assert kubectl.ok("get", "secret", name, "-o", kinds) == "ConfigMap"
    kubectl.ok("delete", "configmap", "one")
