"""The pytest plugin: `allot_cluster` is a whole control plane for one test.

def test_my_driver(allot_cluster):                      # real time, with a kubeconfig
@pytest.mark.allot_cluster(hardware=["gpu-server=2"], virtual_time=True)
def test_my_controller(allot_cluster):                  # minutes pass in milliseconds
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from allot.testing.cluster import AllotCluster
    from allot.testing.settings import ClusterSettings


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "allot_cluster(hardware=(), feature_gates=None, scheduler_gates=None, controller_gates=None, rules='seeds', "
        "controllers=('*',), has_scheduler=True, binding_timeout='600s', all_nodes=True, has_nodes=True, plugin_dir=None, unregistered_drivers='', driver_grace_seconds=30.0, virtual_time=False): the cluster that the fixture of this name gives.",
    )


@pytest.fixture
def allot_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AllotCluster]:
    """A control plane in this process, configured by the marker of the same name."""
    from allot.driver.errors import HardwareError
    from allot.features import FeatureGateError
    from allot.testing.cluster import RealTimeCluster, VirtualTimeCluster

    marker = request.node.get_closest_marker("allot_cluster")
    wanted = _arguments(marker) if marker is not None else {}
    is_virtual = wanted.pop("virtual_time", False)
    settings = _settings({"directory": request.path.parent, **wanted})
    made: AllotCluster = (
        VirtualTimeCluster(settings)
        if is_virtual
        else RealTimeCluster(tmp_path / "allot", settings)
    )
    problem = ""
    try:
        cluster = made.__enter__()
    except (HardwareError, FeatureGateError) as error:
        problem = str(error)
    if problem:  # outside of the handler, or pytest would show the error a second time
        pytest.fail(f"allot_cluster: {problem}", pytrace=False)
    try:
        yield cluster
    finally:
        made.__exit__(None, None, None)


def _arguments(marker: pytest.Mark) -> dict[str, Any]:
    """The keyword arguments of the marker. The test fails if they are not arguments of a cluster."""
    from allot.api.similar_names import did_you_mean, similar_names
    from allot.testing.settings import ClusterSettings

    if marker.args:
        pytest.fail(
            "allot_cluster: arguments are given by name, such as hardware=[...]", pytrace=False
        )
    known = {field.name for field in fields(ClusterSettings)} | {"virtual_time"}
    for name in marker.kwargs:
        if name not in known:
            hint = did_you_mean(similar_names(name, known, min_similarity=0.6))
            pytest.fail(f"allot_cluster: unknown argument {name}{hint}", pytrace=False)
    return dict(marker.kwargs)


def _settings(arguments: dict[str, Any]) -> ClusterSettings:
    from allot.rules import RuleSet
    from allot.testing.settings import ClusterSettings

    if isinstance(arguments.get("hardware"), str):
        pytest.fail(
            f"allot_cluster: hardware is a list: [{arguments['hardware']!r}]", pytrace=False
        )
    rules = arguments.get("rules", RuleSet.SEEDS)
    if rules not in {each.value for each in RuleSet}:
        available = ", ".join(each.value for each in RuleSet)
        pytest.fail(
            f"allot_cluster: unknown rules {rules!r}; available: {available}", pytrace=False
        )
    return ClusterSettings(**arguments)
