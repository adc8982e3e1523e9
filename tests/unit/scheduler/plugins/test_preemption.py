from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.plugins import PostFilterResult
from allot.scheduler.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from allot.scheduler.plugins.default_preemption import DefaultPreemption
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit
from allot.scheduler.plugins.preemption_victims import DisruptionBudget, Victims
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from tests.unit.scheduler.state.objects import a_cluster, a_node_facts, a_pod_info

CPU = "Insufficient cpu"


class Fit:
    """A profile with NodeResourcesFit alone."""

    def __init__(self) -> None:
        self._fit = NodeResourcesFit()
        self.asked = 0

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None: ...

    def remove_pod(
        self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo
    ) -> None: ...

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self.asked += 1
        return self._fit.filter(state, pod, node)


def running(
    name: str, node: str, priority: int = 0, cpu: str = "2", started: int = 1, app: str = "x"
) -> PodInfo:
    return a_pod_info(
        name,
        {"cpu": cpu},
        node=node,
        priority=priority,
        labels={"app": app},
        status={"startTime": f"2026-01-01T00:00:{started:02}Z"},
    )


def a_budget(app: str, allowed: int, disrupted: Sequence[str] = ()) -> DisruptionBudget:
    return DisruptionBudget.of(
        RawObject(
            {
                "metadata": {"namespace": "default", "name": app},
                "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {
                    "disruptionsAllowed": allowed,
                    "disruptedPods": dict.fromkeys(disrupted, "now"),
                },
            }
        )
    )


def a_preemption(budgets: Sequence[DisruptionBudget] = (), **args: Any) -> DefaultPreemption:
    async def evict_none(victim: PodInfo, pod: PodInfo, node: str) -> None:
        raise AssertionError(victim)

    return DefaultPreemption(Fit(), lambda: budgets, evict_none, lambda _: 0, args)


def decide(
    pod: PodInfo, cluster: ClusterState, budgets: Sequence[DisruptionBudget] = ()
) -> Victims | PostFilterResult:
    statuses = {
        node.name: NodeResourcesFit().filter(CycleState(), pod, node) for node in cluster.nodes
    }
    return a_preemption(budgets).decide(CycleState(), pod, cluster, statuses)


def victims(
    pod: PodInfo, pods: Sequence[PodInfo], budgets: Sequence[DisruptionBudget] = ()
) -> tuple[str, list[str]]:
    names = sorted({one.node_name for one in pods})
    decision = decide(pod, a_cluster(map(a_node_facts, names), pods), budgets)
    assert isinstance(decision, Victims), decision
    return decision.node_name, [one.name for one in decision.pods]


def important(cpu: str = "2", **fields: Any) -> PodInfo:
    return a_pod_info("important", {"cpu": cpu}, priority=100, **fields)


@pytest.mark.parametrize(
    ("cpu", "pods", "expected"),
    [
        pytest.param(
            "2", [running("low", "n", 1), running("high", "n", 5)], ["low"], id="least-important"
        ),
        pytest.param(
            "4", [running("low", "n", 1), running("high", "n", 5)], ["high", "low"], id="all-needed"
        ),
        pytest.param(
            "2",
            [running("old", "n", started=1), running("young", "n", started=9)],
            ["young"],
            id="youngest-of-equals",
        ),
        pytest.param(
            "2",
            [running("low", "n", 1), running("peer", "n", 100)],
            ["low"],
            id="peers-are-safe",
        ),
        pytest.param(
            "1",
            [running("small", "n", 1, "1"), running("large", "n", 1, "3", started=2)],
            ["large"],
            id="spares-from-the-most-important-on",
        ),
    ],
)
def test_victims_on_a_node(cpu: str, pods: list[PodInfo], expected: list[str]) -> None:
    assert victims(important(cpu), pods) == ("n", expected)


@pytest.mark.parametrize(
    ("cpu", "pods", "expected"),
    [
        pytest.param(
            "4",
            [running("a", "n1", 5, "4"), running("b", "n2", 3, "4")],
            "n2",
            id="lowest-highest-priority",
        ),
        pytest.param(
            "4",
            [running("a", "n1", 5), running("b", "n1", 5), running("c", "n2", 5), running("d", "n2", 1)],
            "n2",
            id="lowest-sum-of-priorities",
        ),
        pytest.param(
            "4",
            [running("a", "n1", 0), running("b", "n1", 0), running("c", "n2", 0, "4")],
            "n2",
            id="fewest-victims",
        ),
        pytest.param(
            "4",
            [running("a", "n1", 0, "4", started=1), running("b", "n2", 0, "4", started=9)],
            "n2",
            id="youngest-victims",
        ),
        pytest.param(
            "4", [running("a", "n1", 0, "4"), running("b", "n2", 0, "4")], "n1", id="first-of-equals"
        ),
    ],
)  # fmt: skip
def test_the_node_with_the_least_harm(cpu: str, pods: list[PodInfo], expected: str) -> None:
    assert victims(important(cpu), pods)[0] == expected


def test_budgets_come_before_priorities_between_nodes() -> None:
    pods = [running("guarded", "n1", 0, "4", app="db"), running("free", "n2", 50, "4")]

    assert victims(important("4"), pods, [a_budget("db", 0)])[0] == "n2"
    assert victims(important("4"), pods, [a_budget("db", 1)])[0] == "n1"


def test_guarded_pods_are_spared_first_on_a_node() -> None:
    pods = [running("guarded", "n", 0, app="db"), running("free", "n", 50)]

    assert victims(important(), pods, [a_budget("db", 0)]) == ("n", ["free"])
    assert victims(important(), pods, [a_budget("db", 0, ["guarded"])]) == ("n", ["guarded"])


def test_budgets_are_used_up_pod_by_pod() -> None:
    pods = [running("d1", "n", 3, app="db"), running("d2", "n", 2, app="db", started=2)]

    decision = decide(important("4"), a_cluster([a_node_facts("n")], pods), [a_budget("db", 1)])

    assert isinstance(decision, Victims)
    assert decision.violated_budgets == 1


def test_the_cluster_itself_is_left_alone() -> None:
    cluster = a_cluster([a_node_facts("n")], [running("a", "n"), running("b", "n")])
    node = cluster.node("n")
    assert node is not None
    before = (node.generation, set(node.pods), node.requested_milli_cpu)

    decide(important(), cluster)

    assert before == (node.generation, set(node.pods), node.requested_milli_cpu)


HELPLESS = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


@pytest.mark.parametrize(
    ("pods", "statuses", "message"),
    [
        pytest.param(
            [],
            {"n1": unresolvable("x"), "n2": unresolvable("y")},
            f"preemption: 0/2 nodes are available: 2 {HELPLESS}.",
            id="nothing-helps",
        ),
        pytest.param(
            [running("peer", "n1", 100, "4")],
            {"n1": unschedulable(CPU), "n2": unresolvable("y")},
            f"preemption: 0/2 nodes are available: 1 {NO_VICTIMS}, 1 {HELPLESS}.",
            id="no-pod-to-evict",
        ),
        pytest.param(
            [running("peer", "n1", 100, "3"), running("low", "n1", 0, "1")],
            {"n1": unschedulable(CPU), "n2": unresolvable("y")},
            f"preemption: 0/2 nodes are available: 1 {CPU}, 1 {HELPLESS}.",
            id="not-enough-to-gain",
        ),
        pytest.param(
            [],
            {},
            f"preemption: 0/2 nodes are available: 2 {HELPLESS}.",
            id="nodes-that-were-never-asked",
        ),
    ],
)
def test_why_preemption_does_not_help(
    pods: list[PodInfo], statuses: dict[str, Status], message: str
) -> None:
    cluster = a_cluster([a_node_facts("n1"), a_node_facts("n2")], pods)

    answer = a_preemption().decide(CycleState(), important(), cluster, statuses)

    assert isinstance(answer, PostFilterResult)
    assert (answer.status.code, answer.status.message) == (Code.UNSCHEDULABLE, message)
    assert answer.nominated_node == "", "a nomination that leads nowhere is cleared"


def test_some_pods_never_preempt() -> None:
    answer = decide(important(preemptionPolicy="Never"), a_cluster([a_node_facts("n")]))

    assert isinstance(answer, PostFilterResult)
    assert answer.status.message == "preemption: not eligible due to preemptionPolicy=Never."
    assert answer.nominated_node is None


@pytest.mark.parametrize(
    ("reason", "status", "waits"),
    [
        pytest.param("PreemptionByScheduler", unschedulable(CPU), True, id="victims-still-going"),
        pytest.param(
            "TerminationByKubelet", unschedulable(CPU), False, id="going-for-other-reasons"
        ),
        pytest.param(
            "PreemptionByScheduler", unresolvable("tainted"), False, id="node-is-lost-anyway"
        ),
    ],
)
def test_no_second_round_while_victims_are_going(reason: str, status: Status, waits: bool) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    going = a_pod_info(
        "going",
        {"cpu": "4"},
        node="n",
        metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
        status={"conditions": [condition]},
    )
    pod = important(status={"nominatedNodeName": "n"})

    answer = a_preemption().decide(
        CycleState(), pod, a_cluster([a_node_facts("n")], [going]), {"n": status}
    )

    text = "preemption: not eligible due to a terminating pod on the nominated node."
    assert waits is (isinstance(answer, PostFilterResult) and answer.status.message == text)


def test_victims_are_evicted_and_their_node_is_nominated() -> None:
    evicted: list[tuple[str, str, str]] = []

    async def evict(victim: PodInfo, pod: PodInfo, node: str) -> None:
        evicted.append((victim.name, pod.name, node))

    cluster = a_cluster([a_node_facts("n")], [running("a", "n"), running("b", "n", started=2)])
    plugin = DefaultPreemption(Fit(), lambda: (), evict, lambda _: 0)

    answer = asyncio.run(
        plugin.post_filter(CycleState(), important(), cluster, {"n": unschedulable(CPU)})
    )

    assert answer == PostFilterResult(SUCCESS, "n")
    assert evicted == [("b", "important", "n")]


def test_enough_candidates_are_enough() -> None:
    """On a large cluster not every node is tried, and the search starts where it is told to."""
    names = [f"n{i:03}" for i in range(300)]
    cluster = a_cluster(map(a_node_facts, names), [running(f"p{n}", n, cpu="4") for n in names])
    fit = Fit()

    async def evict(victim: PodInfo, pod: PodInfo, node: str) -> None: ...

    plugin = DefaultPreemption(
        fit, lambda: (), evict, lambda number: number - 1, {"minCandidateNodesAbsolute": 5}
    )
    statuses = dict.fromkeys(names, unschedulable(CPU))

    decision = plugin.decide(CycleState(), important(), cluster, statuses)

    assert isinstance(decision, Victims)
    assert decision.node_name == "n299"
    assert fit.asked == 2 * 30, "ten percent of the nodes: once without, once with each victim"
