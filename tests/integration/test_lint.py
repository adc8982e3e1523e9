"""`allot lint` against a running cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from allot.cli.main import allot
from allot.testing.cluster import ClusterSettings, RealTimeCluster

CLUSTER = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
"""
MANIFESTS = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: greedy}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: 9}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: lost}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: nowhere.example.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: typo}
spec:
  containers: [{name: c, image: x, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpuu}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: observer}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, adminAccess: true}}]}}
"""


def linted(file: Path, *options: str) -> list[dict[str, Any]]:
    command = ["lint", "-f", str(file), "-o", "json", *options]
    result = CliRunner().invoke(allot, command, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    found: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    return found


def test_manifests_are_compared_with_the_cluster(tmp_path: Path) -> None:
    file = tmp_path / "manifests.yaml"
    file.write_text(MANIFESTS)
    with RealTimeCluster(
        tmp_path / "cluster", ClusterSettings(hardware=["gpu-server=1"])
    ) as cluster:
        cluster.apply(CLUSTER)

        found = linted(file, "--kubeconfig", str(cluster.kubeconfig))

    assert [(each["object"], each["rule"], each["severity"]) for each in found] == [
        ("ResourceClaim/greedy", "not-enough-devices", "warning"),
        ("ResourceClaim/lost", "missing-class", "error"),
        ("Pod/typo", "missing-template", "error"),
        ("ResourceClaim/observer", "admin-namespace", "error"),
    ]
    assert "at most 8 of those in the cluster" in found[0]["message"]
    assert [each["rule"] for each in linted(file)] == ["admin-namespace"]
