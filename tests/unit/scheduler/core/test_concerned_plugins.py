from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from allot.scheduler.core.concerned_plugins import Concerned, ConcernedPlugins
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import (
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
)
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import SKIP, Code, Status
from allot.scheduler.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from allot.scheduler.plugins.image_locality import ImageLocality
from allot.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from allot.scheduler.plugins.node_affinity import NodeAffinity
from allot.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from allot.scheduler.plugins.node_ports import NodePorts
from allot.scheduler.plugins.node_unschedulable import NodeUnschedulable
from allot.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from allot.scheduler.plugins.taint_toleration import TaintToleration
from allot.scheduler.plugins.volume_binding import VolumeBinding
from allot.scheduler.plugins.volume_restrictions import VolumeRestrictions
from allot.scheduler.plugins.volume_zone import VolumeZone
from allot.scheduler.state.cluster import ClusterState, Trait
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.volumes import VolumeState
from tests.unit.scheduler.state.objects import HOST, a_cluster, a_node_facts, a_pod_info

TAINT = {"key": "k", "effect": "NoSchedule"}
SOFT_TAINT = {"key": "k", "effect": "PreferNoSchedule"}


class OfBlue(PreFilterPlugin, PreScorePlugin):
    """Is about pods with a label."""

    name: ClassVar[str] = "OfBlue"

    def __init__(self) -> None:
        self.asked = 0

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        return PreFilterResult(SKIP)

    def may_reject(self, pod: PodInfo) -> bool:
        self.asked += 1
        return pod.labels.get("color") == "blue"

    def pre_score(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState, nodes: Sequence[NodeInfo]
    ) -> Status:
        return SKIP

    def may_rank(self, pod: PodInfo) -> bool:
        return pod.labels.get("color") == "blue"


class OfTaints(OfBlue):
    """Is about all pods where nodes have taints."""

    name: ClassVar[str] = "OfTaints"
    may_reject_with = frozenset({Trait.BLOCKING_TAINTS})
    may_rank_with = frozenset({Trait.SOFT_TAINTS})


class OfAll(OfBlue):
    """Overrides what the other says of itself."""

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        return PreFilterResult(SKIP)


def concerned(plugin: OfBlue) -> ConcernedPlugins:
    return ConcernedPlugins(Profile("default-scheduler", (plugin,)), a_cluster())


def second(plugins: ConcernedPlugins, pod: PodInfo) -> Concerned:
    """What concerns the second pod of a shape."""
    assert plugins.about(pod) is plugins.all
    return plugins.about(PodInfo.of(a_pod_info("second", labels=dict(pod.labels)).pod, None, pod))


def test_plugins_that_a_shape_does_not_concern_are_left_out() -> None:
    plugins = concerned(OfBlue())

    red = second(plugins, a_pod_info(labels={"color": "red"}))
    blue = second(plugins, a_pod_info(labels={"color": "blue"}))

    assert (red.pre_filter, red.pre_score) == ((), ())
    assert red.skipped_filters == red.skipped_scores == {"OfBlue"}
    assert len(blue.pre_filter) == len(blue.pre_score) == 1
    assert blue.skipped_filters == blue.skipped_scores == frozenset()


def test_a_plugin_may_be_about_all_pods_of_some_clusters() -> None:
    cluster = a_cluster()
    plugins = ConcernedPlugins(Profile("default-scheduler", (OfTaints(),)), cluster)
    pod = a_pod_info(labels={"color": "red"})
    plugins.about(pod)

    def numbers() -> tuple[int, int]:
        found = plugins.about(pod)
        return len(found.pre_filter), len(found.pre_score)

    assert numbers() == (0, 0)
    cluster.set_node(a_node_facts("a", taints=[TAINT]))
    assert numbers() == (1, 0)
    cluster.set_node(a_node_facts("b", taints=[SOFT_TAINT]))
    assert numbers() == (1, 1)
    cluster.remove_node("a")
    assert numbers() == (0, 1)


def test_a_plugin_is_asked_once_about_pods_of_one_shape() -> None:
    plugin = OfBlue()
    plugins = concerned(plugin)
    first = a_pod_info("a")

    found = second(plugins, first)

    assert plugins.about(first) is found
    assert plugin.asked == 1


def test_a_plugin_is_not_asked_about_a_shape_of_one_pod() -> None:
    plugin = OfBlue()
    plugins = concerned(plugin)

    for name in "abc":
        plugins.about(a_pod_info(name))

    assert plugin.asked == 0


def test_a_subclass_answers_for_what_it_overrides() -> None:
    asked = second(concerned(OfAll()), a_pod_info())

    assert len(asked.pre_filter) == 1
    assert asked.pre_score == ()


def test_profiles_do_not_share_what_they_know_of_a_shape() -> None:
    pod = a_pod_info(labels={"color": "red"})
    of_blue, of_all = concerned(OfBlue()), concerned(OfAll())

    for plugins in (of_blue, of_all):
        plugins.about(pod)

    assert of_blue.about(pod).pre_filter == ()
    assert len(of_all.about(pod).pre_filter) == 1


def test_nothing_is_known_of_a_shape_without_pods() -> None:
    plugins, pod = concerned(OfBlue()), a_pod_info()
    plugins.about(pod)
    spec = pod.pod.data["spec"]
    before = sys.getrefcount(spec)

    del pod

    assert sys.getrefcount(spec) < before
    assert sys.getrefcount(spec) == 2  # here, and as the argument


PINNED: dict[str, Any] = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}
}
PREFERS = {"preference": {"matchExpressions": [{"key": "k", "operator": "Exists"}]}, "weight": 1}
DISK = {"name": "d", "gcePersistentDisk": {"pdName": "disk"}}
ON_HOST = {"hostNetwork": True, "hostUsers": False}
PORT = {"name": "m", "ports": [{"hostPort": 80}]}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="plain"),
        pytest.param({"requests": {"cpu": "1"}}, id="resources"),
        pytest.param({"nodeSelector": {"a": "b"}}, id="selector"),
        pytest.param({"affinity": {"nodeAffinity": PINNED}}, id="affinity"),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERS]}
                }
            },
            id="preference",
        ),
        pytest.param({"volumes": [DISK]}, id="disk"),
        pytest.param({"containers": [PORT]}, id="port"),
        pytest.param(ON_HOST, id="features"),
    ],
)
def test_plugins_that_say_no_would_skip(fields: dict[str, Any]) -> None:
    pod, volumes = a_pod_info(**fields), VolumeState()
    cluster = a_cluster([a_node_facts("n")])
    filters = (
        NodeAffinity({}),
        NodePorts(),
        NodeDeclaredFeatures(),
        VolumeRestrictions(volumes),
        NodeVolumeLimits(volumes),
        VolumeBinding(volumes, cluster, None, {}),
        VolumeZone(volumes),
    )
    for plugin in filters:
        status = plugin.pre_filter(CycleState(), pod, cluster).status
        assert plugin.may_reject(pod) or status.code is Code.SKIP
    for ranking in (NodeAffinity({}), NodeResourcesBalancedAllocation({})):
        status = ranking.pre_score(CycleState(), pod, cluster, cluster.nodes)
        assert ranking.may_rank(pod) is (status.code is not Code.SKIP)


TERM = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"a": "b"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
AFFINITIES: list[dict[str, Any]] = [
    {},
    {"podAffinity": {REQUIRED: [TERM]}},
    {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}},
    {"podAntiAffinity": {REQUIRED: [TERM]}},
    {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}},
]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="plain"),
        pytest.param({"taints": [TAINT]}, id="taint"),
        pytest.param({"taints": [SOFT_TAINT]}, id="soft-taint"),
        pytest.param({"unschedulable": True}, id="unschedulable"),
        pytest.param({"status": {"images": [{"names": ["i:latest"], "sizeBytes": 1}]}}, id="image"),
    ],
)
@pytest.mark.parametrize("assigned", AFFINITIES)
@pytest.mark.parametrize("own", AFFINITIES)
def test_what_is_left_out_in_a_cluster_would_skip(
    fields: dict[str, Any], assigned: dict[str, Any], own: dict[str, Any]
) -> None:
    there = a_pod_info("there", nodeName="n", affinity=assigned)
    cluster = a_cluster([a_node_facts("n", **fields)], [there])
    pod = a_pod_info(affinity=own)
    profile = Profile(
        "default-scheduler",
        (TaintToleration(), NodeUnschedulable(), InterPodAffinity(), ImageLocality()),
    )
    found = second(ConcernedPlugins(profile, cluster), pod)

    for plugin in profile.pre_filter:
        status = plugin.pre_filter(CycleState(), pod, cluster).status
        assert plugin in found.pre_filter or status.code is Code.SKIP
    for ranking in profile.pre_score:
        status = ranking.pre_score(CycleState(), pod, cluster, cluster.nodes)
        assert ranking in found.pre_score or status.code is Code.SKIP
    cluster.remove_pod(there.uid)
    cluster.remove_node("n")
    assert not cluster.traits
