"""A cluster for pictures: `allot up` with hardware and workloads of several teams."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

PROGRAM: Final = (sys.executable, "-c", "from allot.cli.main import run; run()")
LAST_LINE: Final = "Ctrl-C"


class RunningCluster(NamedTuple):
    """A directory that has `.allot`, and what `allot up` has said."""

    directory: Path
    said: Sequence[str]


def workload(
    namespace: str, name: str, replicas: int, class_: str, count: int = 1, **capacity: str
) -> Iterator[dict[str, Any]]:
    """A Deployment whose pods have a claim of their own."""
    exactly: dict[str, Any] = {"deviceClassName": class_, "count": count}
    if capacity:
        exactly["capacity"] = {"requests": capacity}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [{"name": "devices", "exactly": exactly}]}}},
    }
    container = {
        "name": "main", "image": "example.com/app", "resources": {"claims": [{"name": "devices"}]},
    }  # fmt: skip
    claims = [{"name": "devices", "resourceClaimTemplateName": name}]
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container], "resourceClaims": claims},
            },
        },
    }


@contextmanager
def running_cluster(
    hardware: Sequence[str], objects: Iterable[dict[str, Any]]
) -> Iterator[RunningCluster]:
    """Started in a temporary directory, at free ports, and stopped at the end."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        manifests = directory / "workloads.yaml"
        manifests.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
        options = [part for each in hardware for part in ("--hardware", each)]
        ports = ["--port", "0", "--dashboard-port", "0"]
        where = ["--data-dir", str(directory / ".allot")]
        command = [*PROGRAM, "up", *where, *ports, *options, "-f", str(manifests)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
            assert process.stdout is not None
            try:
                said: list[str] = []
                for line in process.stdout:
                    said.append(line)
                    if line.startswith(LAST_LINE):
                        break
                yield RunningCluster(directory, said)
            finally:
                process.terminate()
