"""`allot cel` on the devices of a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from allot.cli.errors import CommandError
from allot.cli.main import allot
from allot.testing.cluster import ClusterSettings, RealTimeCluster

SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: a, attributes: {model: {string: hopper}}}
  - {name: b, attributes: {model: {string: ampere}}}
"""
MODEL = 'device.attributes["gpu.example.com"].model == "hopper"'


def test_cel_on_a_cluster(tmp_path: Path) -> None:
    settings = ClusterSettings(has_scheduler=False, controllers=())
    with RealTimeCluster(tmp_path, settings) as cluster:
        cluster.apply(SLICE)
        command = ["cel", MODEL, "--kubeconfig", str(cluster.kubeconfig)]
        result = CliRunner().invoke(allot, [*command, "-o", "json"], standalone_mode=False)
        other = CliRunner().invoke(
            allot, [*command, "--driver", "gpu.exmaple.com"], standalone_mode=False
        )

    assert result.exception is None
    values = {row["device"]: row["value"] for row in json.loads(result.stdout)["devices"]}
    assert values == {"a": True, "b": False}
    with pytest.raises(CommandError, match=r"did you mean gpu\.example\.com\?"):
        raise other.exception or AssertionError
