"""The registry of plugins: in-tree rows, plugins given as an argument, and entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest

from allot.features import DEFAULTS
from allot.scheduler.configuration import read_configuration
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.handle import Handle
from allot.scheduler.framework.plugin_args import ConfigurationError
from allot.scheduler.framework.plugins import ScorePlugin
from allot.scheduler.plugins.registry import ENTRY_POINT_GROUP, IN_TREE, PluginRegistry, PluginSpec
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.device_state import DeviceState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo


class Coldest(ScorePlugin):
    name: ClassVar[str] = "Coldest"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0


COLDEST = PluginSpec(Coldest, lambda _args, _handle: Coldest(), weight=4)
HERE = "tests.unit.scheduler.plugins.test_registry"


def configured(registry: PluginRegistry, *names: str) -> dict[str, int]:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": n} for n in names]}}}],
    }
    (profile,) = read_configuration(document, registry).profiles
    return {name: profile.weights[name] for name in profile.plugins}


def installed(name: str, value: str) -> PluginRegistry:
    return PluginRegistry(find_installed=lambda: [EntryPoint(name, value, ENTRY_POINT_GROUP)])


def test_plugins_of_kubernetes_are_enabled_by_default() -> None:
    names = [spec.name for spec in IN_TREE]
    beyond = ["DevicePacking", "DeviceSpreading", "LeastFragmentation", "LeastStrandedCapacity"]

    assert names[-4:] == beyond
    assert list(configured(PluginRegistry())) == names[:-4]


def test_extension_points_follow_from_the_class() -> None:
    assert PluginRegistry()["NodeAffinity"].extension_points == (
        "preFilter", "filter", "preScore", "score",
    )  # fmt: skip
    assert COLDEST.extension_points == ("score",)


def test_every_plugin_that_decides_can_be_made_without_a_client() -> None:
    """`allot explain` writes nothing: its handle has no client."""
    cluster = ClusterState()
    handle = Handle(DEFAULTS, cluster, ClaimTracker(DEFAULTS), DeviceState(DEFAULTS))
    for spec in IN_TREE:
        if not spec.has_side_effects:
            assert spec.factory({}, handle).name == spec.name


def test_a_plugin_given_as_an_argument_is_used_when_it_is_enabled() -> None:
    registry = PluginRegistry([COLDEST])

    assert "Coldest" not in configured(registry)
    assert configured(registry, "Coldest")["Coldest"] == 4


def test_an_installed_plugin_is_used_when_it_is_enabled() -> None:
    assert configured(installed("Coldest", f"{HERE}:COLDEST"), "Coldest")["Coldest"] == 4


def test_installed_plugins_are_not_looked_for_without_need() -> None:
    def find_installed() -> list[EntryPoint]:
        raise AssertionError("the default plugins are in-tree")

    configured(PluginRegistry(find_installed=find_installed))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "Coldest",
            "no_such_module:X",
            "plugin Coldest (no_such_module:X) cannot be loaded: No mod",
        ),
        ("Coldest", f"{HERE}:HERE", f"plugin Coldest ({HERE}:HERE) is not a PluginSpec but str"),
        ("Cold", f"{HERE}:COLDEST", f"plugin Cold ({HERE}:COLDEST) has the name 'Coldest'"),
    ],
)
def test_an_entry_point_that_cannot_be_used(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        configured(installed(name, value), name)

    assert str(raised.value).startswith(message)
