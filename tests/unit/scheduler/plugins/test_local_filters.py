"""Filters that look at one node only: what they refuse, in which words, and whether eviction helps."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import EventRegistration, Hint
from allot.scheduler.framework.plugins import FilterPlugin
from allot.scheduler.framework.status import Code
from allot.scheduler.plugins.node_affinity import NodeAffinity
from allot.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from allot.scheduler.plugins.node_name import NodeName
from allot.scheduler.plugins.node_ports import NodePorts
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit
from allot.scheduler.plugins.node_unschedulable import NodeUnschedulable
from allot.scheduler.plugins.scheduling_gates import SchedulingGates
from allot.scheduler.plugins.taint_toleration import TaintToleration
from allot.scheduler.state.nodes import ALL_ADDRESSES, NodeFacts
from allot.scheduler.state.pods import PodInfo
from tests.unit.scheduler.state.objects import (
    REQUIRED,
    a_cluster,
    a_container,
    a_node_facts,
    a_pod_info,
    answers,
    reasons,
)

YES = None
WRONG_NAME = "node(s) didn't match the requested node name"
CORDONED = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
NO_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
NOT_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
PORTS = "node(s) didn't have free ports for the requested pod ports"


def refusal(
    plugin: FilterPlugin, pod: PodInfo, node: NodeFacts, *there: PodInfo
) -> tuple[Code, str] | None:
    """What the plugin says about the pod on this node beside those pods; None if it accepts."""
    status = answers(plugin, pod, a_cluster([node], there)).get(node.name)
    return None if status is None else (status.code, status.message)


def tolerating(**toleration: str) -> PodInfo:
    return a_pod_info(tolerations=[toleration])


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(a_pod_info(), YES, id="any-node"),
        pytest.param(a_pod_info(node="node"), YES, id="this-node"),
        pytest.param(a_pod_info(node="other"), (Code.UNRESOLVABLE, WRONG_NAME), id="another-node"),
    ],
)
def test_node_name(pod: PodInfo, expected: Any) -> None:
    assert expected == refusal(NodeName(), pod, a_node_facts())


UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("pod", "node", "expected"),
    [
        pytest.param(a_pod_info(), a_node_facts(), YES, id="open"),
        pytest.param(
            a_pod_info(),
            a_node_facts(unschedulable=True),
            (Code.UNRESOLVABLE, CORDONED),
            id="cordoned",
        ),
        pytest.param(
            tolerating(key=UNSCHEDULABLE, operator="Exists", effect="NoSchedule"),
            a_node_facts(unschedulable=True),
            YES,
            id="tolerated",
        ),
    ],
)
def test_node_unschedulable(pod: PodInfo, node: NodeFacts, expected: Any) -> None:
    assert expected == refusal(NodeUnschedulable(), pod, node)


@pytest.mark.parametrize(
    ("pod", "taints", "expected"),
    [
        pytest.param(a_pod_info(), [], YES, id="no-taints"),
        pytest.param(
            a_pod_info(), ["a=b:NoSchedule"], (Code.UNRESOLVABLE, TAINTED), id="no-schedule"
        ),
        pytest.param(
            a_pod_info(), ["a=b:NoExecute"], (Code.UNRESOLVABLE, TAINTED), id="no-execute"
        ),
        pytest.param(a_pod_info(), ["a=b:PreferNoSchedule"], YES, id="preference-only"),
        pytest.param(tolerating(key="a", value="b"), ["a=b:NoSchedule"], YES, id="tolerated"),
        pytest.param(
            tolerating(key="a", value="b"),
            ["a=b:NoSchedule", "c=d:NoExecute"],
            (Code.UNRESOLVABLE, TAINTED),
            id="all-must-be-tolerated",
        ),
    ],
)
def test_taint_toleration(pod: PodInfo, taints: list[str], expected: Any) -> None:
    assert expected == refusal(TaintToleration(), pod, a_node_facts(taints=taints))


def needing(*terms: dict[str, Any], **selector: str) -> PodInfo:
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}} if terms else {}
    return a_pod_info(nodeSelector=selector, affinity=affinity)


def with_label(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def named(*names: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(a_pod_info(), YES, id="no-wishes"),
        pytest.param(needing(disk="ssd"), YES, id="selector"),
        pytest.param(needing(disk="hdd"), (Code.UNRESOLVABLE, NO_AFFINITY), id="selector-differs"),
        pytest.param(
            needing(with_label("disk", "hdd"), with_label("disk", "ssd")), YES, id="one-term-holds"
        ),
        pytest.param(
            needing(with_label("disk", "ssd"), disk="hdd"),
            (Code.UNRESOLVABLE, NO_AFFINITY),
            id="selector-and-affinity",
        ),
    ],
)
def test_node_affinity(pod: PodInfo, expected: Any) -> None:
    assert expected == refusal(NodeAffinity(), pod, a_node_facts(labels={"disk": "ssd"}))


def test_added_affinity_of_the_profile_has_its_own_reason() -> None:
    enforced = NodeAffinity(
        {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [with_label("pool", "batch")]}}}
    )

    assert refusal(enforced, a_pod_info(), a_node_facts()) == (Code.UNRESOLVABLE, NOT_ENFORCED)
    assert refusal(enforced, a_pod_info(), a_node_facts(labels={"pool": "batch"})) is YES


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        pytest.param([named("a"), named("b", "c")], {"a", "b", "c"}, id="union-of-terms"),
        pytest.param([named("a"), with_label("x", "y")], None, id="one-term-names-no-node"),
        pytest.param([named("a") | with_label("x", "y")], {"a"}, id="labels-do-not-unpin"),
    ],
)
def test_affinity_that_names_nodes_narrows_the_search(
    terms: list[dict[str, Any]], names: set[str] | None
) -> None:
    answer = NodeAffinity().pre_filter(CycleState(), needing(*terms), a_cluster())

    assert names == answer.node_names
    assert answer.status.is_success


def test_contradicting_names_are_a_conflict() -> None:
    both = {"matchFields": [*named("a")["matchFields"], *named("b")["matchFields"]]}

    assert reasons(NodeAffinity(), needing(both), a_cluster([a_node_facts()])) == {
        "node": "pod affinity terms conflict"
    }


def listening(port: int, ip: str = "", protocol: str = "TCP", **fields: Any) -> PodInfo:
    wanted = [{"containerPort": 1, "hostPort": port, "hostIP": ip, "protocol": protocol}]
    return a_pod_info(containers=[a_container(ports=wanted)], **fields)


@pytest.mark.parametrize(
    ("wanted", "taken", "conflict"),
    [
        pytest.param(listening(80), listening(80), True, id="same"),
        pytest.param(listening(80), listening(81), False, id="other-port"),
        pytest.param(listening(80), listening(80, protocol="UDP"), False, id="other-protocol"),
        pytest.param(
            listening(80, "10.0.0.1"), listening(80, "10.0.0.2"), False, id="other-address"
        ),
        pytest.param(listening(80, "10.0.0.1"), listening(80), True, id="all-addresses-taken"),
        pytest.param(listening(80), listening(80, "10.0.0.1"), True, id="all-addresses-wanted"),
        pytest.param(
            listening(80, ALL_ADDRESSES), listening(80, "10.0.0.1"), True, id="spelled-out"
        ),
    ],
)
def test_node_ports(wanted: PodInfo, taken: PodInfo, conflict: bool) -> None:
    there = msgspec.structs.replace(taken.assigned_to("node"), uid="another")

    expected = (Code.UNSCHEDULABLE, PORTS) if conflict else YES
    assert expected == refusal(NodePorts(), wanted, a_node_facts(), there)


def there(requests: dict[str, Any], name: str = "there") -> PodInfo:
    return a_pod_info(name, requests, node="node")


GPU = "example.com/gpu"


@pytest.mark.parametrize(
    ("requests", "used", "expected"),
    [
        pytest.param({"cpu": "4"}, {}, YES, id="all-of-it"),
        pytest.param({}, {"cpu": "4"}, YES, id="nothing-fits-a-full-node"),
        pytest.param({"cpu": "0"}, {"cpu": "5"}, YES, id="zero-fits-an-overcommitted-node"),
        pytest.param(
            {"cpu": "2"}, {"cpu": "3"}, (Code.UNSCHEDULABLE, "Insufficient cpu"), id="cpu"
        ),
        pytest.param({"cpu": "5"}, {}, (Code.UNRESOLVABLE, "Insufficient cpu"), id="never-enough"),
        pytest.param(
            {"cpu": "2", "memory": "5Gi"},
            {"cpu": "3", "memory": "5Gi"},
            (Code.UNSCHEDULABLE, "Insufficient cpu, Insufficient memory"),
            id="all-reasons",
        ),
        pytest.param(
            {"ephemeral-storage": "1Gi"},
            {},
            (Code.UNRESOLVABLE, "Insufficient ephemeral-storage"),
            id="storage",
        ),
        pytest.param({GPU: 2}, {}, YES, id="extended"),
        pytest.param(
            {GPU: 1}, {GPU: 2}, (Code.UNSCHEDULABLE, f"Insufficient {GPU}"), id="extended-taken"
        ),
        pytest.param(
            {"example.com/none": 1},
            {},
            (Code.UNRESOLVABLE, "Insufficient example.com/none"),
            id="extended-unknown",
        ),
    ],
)
def test_node_resources_fit(requests: dict[str, Any], used: dict[str, Any], expected: Any) -> None:
    node = a_node_facts(allocatable={GPU: 2})

    assert expected == refusal(NodeResourcesFit(), a_pod_info(requests=requests), node, there(used))


def test_a_node_takes_only_so_many_pods() -> None:
    full = a_node_facts(allocatable={"pods": "1"})

    assert refusal(NodeResourcesFit(), a_pod_info(), full, there({})) == (
        Code.UNSCHEDULABLE,
        "Too many pods",
    )


@pytest.mark.parametrize(
    ("allocatable", "expected"),
    [
        pytest.param({}, YES, id="left-to-dynamic-resources"),
        pytest.param(
            {GPU: 1}, (Code.UNRESOLVABLE, f"Insufficient {GPU}"), id="device-plugin-has-it"
        ),
    ],
)
def test_extended_resources_backed_by_a_device_class(
    allocatable: dict[str, Any], expected: Any
) -> None:
    plugin = NodeResourcesFit(is_dra_backed=lambda name: name == GPU)

    assert expected == refusal(
        plugin, a_pod_info(requests={GPU: 2}), a_node_facts(allocatable=allocatable)
    )


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({"ignoredResources": [GPU]}, id="by-name"),
        pytest.param({"ignoredResourceGroups": ["example.com"]}, id="by-group"),
    ],
)
def test_resources_can_be_ignored(args: dict[str, Any]) -> None:
    assert refusal(NodeResourcesFit(args), a_pod_info(requests={GPU: 9}), a_node_facts()) is YES


def test_gates_keep_a_pod_out_of_the_queue() -> None:
    gates = SchedulingGates()

    gated = gates.pre_enqueue(a_pod_info(schedulingGates=[{"name": "a"}, {"name": "b"}]))

    assert (gated.code, gated.message) == (
        Code.UNRESOLVABLE,
        "waiting for scheduling gates: [a b]",
    )
    assert gates.pre_enqueue(a_pod_info()).is_success


def hint(registrations: tuple[EventRegistration, ...], pod: PodInfo, old: Any, new: Any) -> Hint:
    """What the first registration with a hint says."""
    ask = next(one.hint for one in registrations if one.hint is not None)
    return ask(pod, old, new)


TAINTED_NODE = a_node_facts(taints=["a=b:NoSchedule"])


@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "worth"),
    [
        pytest.param(TaintToleration(), a_pod_info(), None, a_node_facts(), True, id="new-node"),
        pytest.param(
            TaintToleration(), a_pod_info(), None, TAINTED_NODE, False, id="new-but-tainted"
        ),
        pytest.param(
            TaintToleration(), a_pod_info(), TAINTED_NODE, a_node_facts(), True, id="taint-is-gone"
        ),
        pytest.param(
            TaintToleration(),
            a_pod_info(),
            a_node_facts(),
            a_node_facts(),
            False,
            id="never-was-tainted",
        ),
        pytest.param(
            NodeUnschedulable(),
            a_pod_info(),
            a_node_facts(unschedulable=True),
            a_node_facts(),
            True,
            id="uncordoned",
        ),
        pytest.param(
            NodeAffinity(),
            needing(a="b"),
            a_node_facts(),
            a_node_facts(labels={"a": "b"}),
            True,
            id="labelled",
        ),
        pytest.param(
            NodeAffinity(), needing(a="b"), None, a_node_facts(), False, id="not-labelled"
        ),
        pytest.param(
            NodePorts(), listening(80), listening(80, node="n"), None, True, id="port-is-free"
        ),
        pytest.param(
            NodePorts(), listening(80), listening(81, node="n"), None, False, id="port-of-no-use"
        ),
        pytest.param(
            NodeResourcesFit(),
            a_pod_info(requests={"cpu": "4"}),
            None,
            a_node_facts(),
            True,
            id="large-node",
        ),
        pytest.param(
            NodeResourcesFit(),
            a_pod_info(requests={"cpu": "5"}),
            None,
            a_node_facts(),
            False,
            id="small-node",
        ),
        pytest.param(
            NodeResourcesFit(),
            a_pod_info(requests={"cpu": "4"}),
            a_node_facts(),
            a_node_facts(allocatable={"cpu": "8"}),
            True,
            id="grown-node",
        ),
        pytest.param(
            NodeResourcesFit(),
            a_pod_info(requests={"cpu": "3"}),
            a_node_facts(allocatable={"cpu": "8"}),
            a_node_facts(),
            False,
            id="shrunk-node",
        ),
    ],
)
def test_hints(plugin: FilterPlugin, pod: PodInfo, old: Any, new: Any, worth: bool) -> None:
    expected = Hint.QUEUE if worth else Hint.SKIP

    assert expected == hint(plugin.events_to_register(), pod, old, new)


@pytest.mark.parametrize(
    "plugin",
    [NodeName(), NodeUnschedulable(), TaintToleration(), NodeAffinity(), NodePorts()],
    ids=lambda plugin: plugin.name,
)
def test_plain_pods_cost_nothing(plugin: Any) -> None:
    """On a cluster without taints and the like, a pod without wishes is not even filtered."""
    assert plugin.pre_filter(CycleState(), a_pod_info(), a_cluster([a_node_facts()])).status.is_skip


# --- NodeDeclaredFeatures ---

FEATURES = (Code.UNRESOLVABLE, "node(s) didn't match Pod's required features")
RESTARTS_ALL = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [7]}}]
RESTARTS_ONE = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [7]}}]


def declaring(*features: str) -> NodeFacts:
    return a_node_facts(status={"declaredFeatures": list(features)})


@pytest.mark.parametrize(
    ("pod", "needed"),
    [
        pytest.param(a_pod_info(), "", id="nothing-special"),
        pytest.param(
            a_pod_info(containers=[a_container(restartPolicyRules=RESTARTS_ALL)]),
            "RestartAllContainersOnContainerExits",
            id="a-container-restarts-all",
        ),
        pytest.param(
            a_pod_info(initContainers=[a_container(restartPolicyRules=RESTARTS_ALL)]),
            "RestartAllContainersOnContainerExits",
            id="an-init-container-restarts-all",
        ),
        pytest.param(
            a_pod_info(containers=[a_container(restartPolicyRules=RESTARTS_ONE)]),
            "",
            id="a-container-restarts-itself",
        ),
        pytest.param(
            a_pod_info(hostNetwork=True, hostUsers=False),
            "UserNamespacesHostNetworkSupport",
            id="users-of-its-own-on-the-host-network",
        ),
        pytest.param(a_pod_info(hostNetwork=True), "", id="host-network-alone"),
        pytest.param(a_pod_info(hostUsers=False), "", id="users-of-its-own-alone"),
    ],
)
def test_features_that_nodes_must_declare(pod: PodInfo, needed: str) -> None:
    plugin = NodeDeclaredFeatures()

    assert refusal(plugin, pod, declaring("Other")) == (FEATURES if needed else YES)
    assert refusal(plugin, pod, declaring("Other", needed)) == YES


def test_a_node_that_declares_what_is_needed_is_worth_an_attempt() -> None:
    (registration,) = NodeDeclaredFeatures().events_to_register()
    assert registration.hint is not None
    pod = a_pod_info(hostNetwork=True, hostUsers=False)

    assert registration.hint(pod, None, declaring("Other")) is Hint.SKIP
    found = declaring("UserNamespacesHostNetworkSupport")
    assert registration.hint(pod, declaring(), found) is Hint.QUEUE
