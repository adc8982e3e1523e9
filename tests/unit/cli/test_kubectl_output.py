"""What looks like kubectl's output is kubectl's output."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from allot.cli.kubectl_output import custom_columns, server_table, values_at
from allot.client.resources import NODES, RESOURCE_SLICES
from allot.testing.cluster import ClusterSettings, RealTimeCluster

POD = {
    "metadata": {"name": "p", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "a", "tty": True}, {"name": "b"}]},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "False", "message": "not yet"},
            {"type": "PodScheduled", "status": "True"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param(".metadata.name", ["p"], id="field"),
        pytest.param(".metadata.nope.name", [], id="missing"),
        pytest.param(".spec.containers[*].name", ["a", "b"], id="all"),
        pytest.param(".spec.containers[1].name", ["b"], id="index"),
        pytest.param(".spec.containers[2].name", [], id="index-too-large"),
        pytest.param(".spec.containers[*].tty", [True], id="only-where-it-is"),
        pytest.param('.status.conditions[?(@.type=="Ready")].message', ["not yet"], id="filter"),
        pytest.param(".metadata.name[*]", [], id="not-a-list"),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    assert values_at(POD, path) == found


def test_path_that_cannot_be_read() -> None:
    with pytest.raises(ValueError, match=r"from '\[nope\]' on"):
        values_at(POD, ".spec[nope]")


def test_columns() -> None:
    columns = {"NAME": ".metadata.name", "CONTAINERS": ".spec.containers[*].name", "NODE": ".a"}

    assert custom_columns([POD], columns) == [
        "NAME   CONTAINERS   NODE",
        "p      a,b          <none>",
    ]


COLUMNS = {
    "NAME": ".metadata.name",
    "DEVICES": ".spec.devices[*].name",
    "FIRST": ".spec.devices[0].name",
    "SHARED": ".spec.devices[*].allowMultipleAllocations",
    "POOL": ".spec.pool.generation",
    "NODE": ".spec.nodeName",
}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on the PATH")
def test_the_same_as_kubectl(tmp_path: Path) -> None:
    with RealTimeCluster(tmp_path, ClusterSettings(["shared-nic", "fabric"])) as cluster:

        def kubectl(*words: str) -> list[str]:
            command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), *words]
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, env={"HOME": str(tmp_path)}
            )
            return [line.rstrip() for line in done.stdout.splitlines()]

        async def asked(path: str, accept: str) -> Any:
            headers = {"Accept": accept}
            response = await cluster.client.request("GET", path, headers=headers)
            return msgspec.json.decode(response.body)

        written = ",".join(f"{heading}:{path}" for heading, path in COLUMNS.items())
        slices = cluster.run(asked(RESOURCE_SLICES.collection_path(), "application/json"))
        shown = kubectl("get", "resourceslices", "-o", f"custom-columns={written}")
        assert custom_columns(slices["items"], COLUMNS) == shown

        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        nodes = cluster.run(asked(NODES.collection_path(), table))
        # Ages may change between the two questions.
        assert _without_ages(server_table(nodes)) == _without_ages(kubectl("get", "nodes"))
        assert _without_ages(server_table(nodes, is_wide=True)) == _without_ages(
            kubectl("get", "nodes", "-o", "wide")
        )


def _without_ages(lines: list[str]) -> list[str]:
    """One space between words, and the fourth of them left out."""
    return [" ".join(word for at, word in enumerate(line.split()) if at != 3) for line in lines]
