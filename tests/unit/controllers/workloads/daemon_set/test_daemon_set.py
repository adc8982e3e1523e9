"""Daemon sets: which nodes, which pods, in which order pods are replaced."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.controllers.workloads.daemon_set.decision import (
    daemon_set_status,
    group_by_node,
    plan_pods,
    plan_update,
)
from allot.controllers.workloads.daemon_set.nodes import (
    NOT_PLACED,
    DaemonPlacement,
    node_should_run_daemon_pod,
)
from allot.controllers.workloads.daemon_set.pods import make_pod, node_of
from allot.controllers.workloads.revisions import REVISION_HASH
from allot.testing.builders import a_node
from tests.unit.controllers.workloads.objects import NOW, a_replica, a_workload

HERE, ONLY_STAY = DaemonPlacement(True, True), DaemonPlacement(False, True)
EVERYWHERE = {"n1": HERE, "n2": HERE, "n3": HERE}
NEW, OLD = {REVISION_HASH: "new"}, {REVISION_HASH: "old"}


def a_daemon_set(unavailable: int | str = 1, surge: int | str = 0, **rest: Any) -> RawObject:
    rolling = {"maxUnavailable": unavailable, "maxSurge": surge}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return a_workload("d", kind="DaemonSet", **{"updateStrategy": strategy, **rest})


def affinity(key: str, *values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        pytest.param({}, HERE, id="any"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, HERE, id="selected"),
        pytest.param({"nodeSelector": {"disk": "hdd"}}, NOT_PLACED, id="not-selected"),
        pytest.param({"nodeName": "other"}, NOT_PLACED, id="another-by-name"),
        pytest.param({"affinity": affinity("disk", "ssd", "x")}, HERE, id="affinity"),
        pytest.param({"affinity": affinity("disk", "x")}, NOT_PLACED, id="no-affinity"),
    ],
)
def test_nodes_that_are_meant(spec: dict[str, Any], place: DaemonPlacement) -> None:
    assert node_should_run_daemon_pod(a_node("n", labels={"disk": "ssd"}), spec) == place


@pytest.mark.parametrize(
    ("key", "effect", "place"),
    [
        ("gpu", "NoSchedule", ONLY_STAY),
        ("gpu", "NoExecute", NOT_PLACED),
        ("gpu", "PreferNoSchedule", HERE),
        ("node.kubernetes.io/not-ready", "NoExecute", HERE),
        ("node.kubernetes.io/unschedulable", "NoSchedule", HERE),
        ("node.kubernetes.io/network-unavailable", "NoSchedule", ONLY_STAY),
    ],
)
def test_taints(key: str, effect: str, place: DaemonPlacement) -> None:
    node = a_node("n", taints=[{"key": key, "effect": effect}])

    assert node_should_run_daemon_pod(node, {}) == place
    tolerant = {"tolerations": [{"operator": "Exists"}]}
    assert node_should_run_daemon_pod(node, tolerant) == HERE


def test_pods_are_pinned_to_their_node() -> None:
    pod = make_pod(a_daemon_set(), "n7", "abc")

    assert node_of(pod) == "n7"
    assert pod.get("metadata", "labels", REVISION_HASH) == "abc"
    assert any(
        found["key"] == "node.kubernetes.io/not-ready" for found in pod.get("spec", "tolerations")
    )


# --- one each ---


def planned(
    daemon_set: RawObject, places: dict[str, DaemonPlacement], *pods: Pod
) -> tuple[Any, Any, Any]:
    plan = plan_pods(daemon_set, places, group_by_node(pods), "new", NOW)
    names = [pod.get("metadata", "name") for pod in plan.delete]
    return plan.create_on, names, [pod.get("metadata", "name") for pod in plan.finished]


def test_every_node_gets_one() -> None:
    assert planned(a_daemon_set(), EVERYWHERE, a_replica("a", node="n1")) == (("n2", "n3"), [], [])


def test_of_several_the_oldest_stays() -> None:
    pods = [a_replica("young", node="n1", age=1), a_replica("old", node="n1", age=9)]

    assert planned(a_daemon_set(), {"n1": HERE}, *pods) == ((), ["young"], [])


def test_pods_leave_nodes_that_are_not_meant_any_more() -> None:
    places = {"n1": NOT_PLACED, "n2": ONLY_STAY}
    pods = [a_replica("a", node="n1"), a_replica("b", node="n2")]

    assert planned(a_daemon_set(), places, *pods) == ((), ["a"], [])


def test_a_pod_for_a_node_that_is_gone_goes_unless_it_ran_there() -> None:
    never_ran = make_pod(a_daemon_set(), "gone", "new").with_value("x", "metadata", "name")

    assert planned(a_daemon_set(), {}, never_ran, a_replica("b", node="gone")) == ((), ["x"], [])


def test_a_successor_waits_for_the_end_of_its_predecessor() -> None:
    assert planned(a_daemon_set(), {"n1": HERE}, a_replica("a", node="n1", deleting=True)) == (
        (),
        [],
        [],
    )


def test_pods_that_ended_are_replaced() -> None:
    assert planned(a_daemon_set(), {"n1": HERE}, a_replica("a", node="n1", phase="Failed")) == (
        (),
        [],
        ["a"],
    )


# --- updates ---


def replaced(daemon_set: RawObject, *pods: Pod) -> tuple[set[str], set[str]]:
    plan = plan_update(daemon_set, EVERYWHERE, group_by_node(pods), "new", NOW)
    return set(plan.create_on), {pod.get("metadata", "name") for pod in plan.delete}


def test_as_many_go_as_may_be_missing() -> None:
    pods = [a_replica(f"p{number}", node=f"n{number}", labels=OLD) for number in (1, 2, 3)]

    assert replaced(a_daemon_set(1), *pods) == (set(), {"p1"})
    assert replaced(a_daemon_set("50%"), *pods) == (set(), {"p1", "p2"})


def test_what_is_missing_already_counts() -> None:
    new = a_replica("p1", node="n1", labels=NEW, ready=False)
    old = [a_replica(f"p{number}", node=f"n{number}", labels=OLD) for number in (2, 3)]

    assert replaced(a_daemon_set(1), new, *old) == (set(), set())


def test_what_does_not_work_goes_at_once() -> None:
    broken = a_replica("p1", node="n1", labels=OLD, ready=False)
    old = [a_replica(f"p{number}", node=f"n{number}", labels=OLD) for number in (2, 3)]

    assert replaced(a_daemon_set(1), broken, *old) == (set(), {"p1"})


def test_with_surge_the_new_one_comes_first() -> None:
    pods = [a_replica(f"p{number}", node=f"n{number}", labels=OLD) for number in (1, 2, 3)]
    daemon_set = a_daemon_set(0, 1)

    assert replaced(daemon_set, *pods) == ({"n1"}, set())
    starting = a_replica("new", node="n1", labels=NEW, ready=False, age=1)
    assert replaced(daemon_set, *pods, starting) == (set(), set())
    assert planned(daemon_set, EVERYWHERE, *pods, starting) == ((), [], [])
    running = a_replica("new", node="n1", labels=NEW, age=1)
    assert planned(daemon_set, EVERYWHERE, *pods, running) == ((), ["p1"], [])


def test_status() -> None:
    places = {**EVERYWHERE, "n4": NOT_PLACED}
    pods = [
        a_replica("a", node="n1", labels=NEW),
        a_replica("b", node="n2", labels=OLD, ready=False),
        a_replica("c", node="n4", labels=OLD),
    ]

    assert daemon_set_status(a_daemon_set(), places, group_by_node(pods), "new", NOW) == {
        "currentNumberScheduled": 2,
        "numberMisscheduled": 1,
        "desiredNumberScheduled": 3,
        "numberReady": 1,
        "observedGeneration": 1,
        "updatedNumberScheduled": 1,
        "numberAvailable": 1,
        "numberUnavailable": 2,
    }
