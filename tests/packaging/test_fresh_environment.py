"""The first minutes: allot installed from its wheel in a fresh environment, outside the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.packaging.requirements import PROJECT, largest, mebibytes_on_disk
from tests.packaging.wheelhouse import build_distributions, find_wheels

LIMIT_SECONDS: Final = 120
MAX_MEBIBYTES: Final = 80
"""On disk, with compiled modules, as `du -sm` counts: thousands of small files take whole blocks."""
NOT_OURS: Final = (
    "pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils", "pytest", "_pytest", "pluggy", "iniconfig", "packaging",
)  # fmt: skip

CLAIM_AND_POD = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: nine-gpus}
spec:
  devices:
    requests:
    - name: gpus
      exactly: {deviceClassName: gpu.example.com, count: 9}
---
apiVersion: v1
kind: Pod
metadata: {name: too-large}
spec:
  resourceClaims: [{name: gpus, resourceClaimName: nine-gpus}]
  containers:
  - {name: main, image: example.com/main, resources: {claims: [{name: gpus}]}}
"""
TESTS = '''\
import pytest

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
  containers: [{name: main, image: example.com/main, resources: {claims: [{name: gpu}]}}]
"""


def test_without_hardware(allot_cluster):
    assert allot_cluster.list("Node") == []


@pytest.mark.allot_cluster(hardware=["gpu-server=2"], virtual_time=True)
def test_profile(allot_cluster):
    assert len(allot_cluster.list("Node")) == 2


@pytest.mark.allot_cluster(hardware=["gpu-server"], virtual_time=True)
def test_pod_gets_a_device(allot_cluster):
    allot_cluster.apply(CLAIM)
    allot_cluster.wait_for_phase("user", "Running")


@pytest.mark.allot_cluster(hardware=["gpu-server"])
def test_real_time(allot_cluster):
    allot_cluster.apply(CLAIM)
    allot_cluster.wait_for_phase("user", "Running")
    assert allot_cluster.kubeconfig.exists()


def test_public_api():
    import allot

    assert allot.loads(CLAIM)
'''


class FreshEnvironment:
    """A virtual environment and a project directory of a new user."""

    def __init__(self, root: Path) -> None:
        self.programs = root / "venv" / "bin"
        self.directory = root / "project"
        self.directory.mkdir()
        home = root / "home"
        home.mkdir()
        self.variables = {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        venv.create(root / "venv", with_pip=True)

    def run(self, *command: str, code: int = 0) -> str:
        """What the command prints; it ends with this exit code and without a traceback."""
        ended = subprocess.run(
            command,
            cwd=self.directory,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        said = f"$ {' '.join(command)}\n{ended.stdout}"
        assert "Traceback" not in ended.stdout, said
        assert ended.returncode == code, said
        return ended.stdout


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[FreshEnvironment]:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    found = find_wheels(wheels, ["pytest"])
    wheel, _ = build_distributions(tmp_path / "dist")
    environment = FreshEnvironment(tmp_path)
    environment.run(
        "pip", "install", "--no-index", "--find-links", str(found), str(wheel), "pytest"
    )
    yield environment
    subprocess.run(
        [environment.programs / "allot", "down"],
        cwd=environment.directory,
        env=environment.variables,
        capture_output=True,
        check=False,
    )


@pytest.mark.timeout(600)
def test_first_minutes(fresh: FreshEnvironment) -> None:
    where = fresh.run("python", "-c", "import allot; print(allot.__file__)")
    assert not Path(where.strip()).is_relative_to(PROJECT)
    sizes = _installed_sizes(fresh)
    total = sum(sizes.values())
    assert total < MAX_MEBIBYTES, f"{total:.1f} MiB on disk; the largest: {largest(sizes)}"
    assert "up" in fresh.run("allot", "--help")

    assert "is ready" in fresh.run("allot", "up", "--detach", "--port", "0")
    assert "gpu.example.com" in fresh.run("allot", "status")
    (fresh.directory / "pod.yaml").write_text(CLAIM_AND_POD)
    if shutil.which("kubectl"):
        fresh.variables["KUBECONFIG"] = str(fresh.directory / ".allot" / "kubeconfig")
        fresh.run("kubectl", "apply", "-f", "pod.yaml")
        assert "too-large" in fresh.run("kubectl", "get", "pods")
        assert "8 of 9" in fresh.run("allot", "explain", "pod/too-large")
        fresh.run("kubectl", "delete", "-f", "pod.yaml")
    assert fresh.run("allot", "demo", "--fast")
    fresh.run("allot", "explain", "pod/missing", code=2)
    assert "stopped" in fresh.run("allot", "down")

    (fresh.directory / "test_new_project.py").write_text(TESTS)
    assert "5 passed" in fresh.run("pytest", "-q", "test_new_project.py")


def _installed_sizes(fresh: FreshEnvironment) -> dict[str, float]:
    """Everything in site-packages that pip installed for allot, with compiled modules, by package: MiB on disk."""
    roots = json.loads(
        fresh.run("python", "-c", "import json, site; print(json.dumps(site.getsitepackages()))")
    )
    sizes: dict[str, float] = {}
    for root in map(Path, roots):
        for path in root.rglob("*"):
            name = path.relative_to(root).parts[0]
            if not name.startswith(NOT_OURS):
                sizes[name] = sizes.get(name, 0) + mebibytes_on_disk([path])
    return sizes
