"""The pytest plugin: `allot_cluster` is a whole control plane for one test.

def test_my_driver(allot_cluster):                      # real time, with a kubeconfig
@pytest.mark.allot_cluster(hardware=["gpu-server=2"], virtual_time=True)
def test_my_controller(allot_cluster):                  # minutes pass in milliseconds
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from allot.testing.cluster import AllotCluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "allot_cluster(hardware=(), feature_gates=None, scheduler_gates=None, controller_gates=None, rules='seeds', "
        "controllers=('*',), has_scheduler=True, binding_timeout='600s', all_nodes=True, virtual_time=False): the cluster that the fixture of this name gives.",
    )


@pytest.fixture
def allot_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AllotCluster]:
    """A control plane in this process, configured by the marker of the same name."""
    from allot.testing.cluster import ClusterSettings, RealTimeCluster, VirtualTimeCluster

    marker = request.node.get_closest_marker("allot_cluster")
    wanted = dict(marker.kwargs) if marker is not None else {}
    is_virtual = wanted.pop("virtual_time", False)
    settings = ClusterSettings(**wanted)
    made: AllotCluster = (
        VirtualTimeCluster(settings)
        if is_virtual
        else RealTimeCluster(tmp_path / "allot", settings)
    )
    with made as cluster:
        yield cluster
