from __future__ import annotations

from typing import Any

import pytest

from allot.api.base import replace
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.core import Namespace, Node, Pod
from allot.api.meta import ObjectMeta
from allot.client.client import Client
from allot.features import DEFAULTS
from allot.scheduler.core.event_handlers import EventHandlers
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo, SubQueue
from allot.scheduler.framework.handle import Handle
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from allot.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit
from allot.scheduler.plugins.priority_sort import PrioritySort
from allot.scheduler.plugins.scheduling_gates import SchedulingGates
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.device_state import DeviceState
from allot.testing.builders import a_slice, an_allocation
from tests.unit.client.fakes import START, ScriptedTransport
from tests.unit.scheduler.plugins.dynamic_resources.claims import (
    a_pod_with_claims,
    a_stored_claim,
)
from tests.unit.scheduler.state.objects import a_node_facts, a_pod_info

UID = "uid-default-pod"
GPU_0 = an_allocation("gpu-0")


class Watched:
    """All state of a scheduler that follows what a test says, with the plugins that wake pods."""

    def __init__(self) -> None:
        self.cluster = ClusterState()
        self.claims = ClaimTracker(DEFAULTS)
        self.devices = DeviceState(DEFAULTS, self.cluster.touch)
        self.wakes = 0
        self.now = 0.0
        self.handle = Handle(
            DEFAULTS,
            self.cluster,
            self.claims,
            self.devices,
            clock=lambda: self.now,
            utc_now=lambda: START,
        )
        writer = ClaimWriter(Client(ScriptedTransport()), self.claims.get)
        plugin = DynamicResources(self.handle, writer)
        plugins = (SchedulingGates(), NodeResourcesFit(), plugin)
        self.queue = SchedulingQueue(
            PrioritySort(),
            {"default-scheduler": [SchedulingGates(), plugin]},
            {one.name: one.events_to_register() for one in plugins},
        )
        self.queue.on_due = self._woken
        self.handlers = EventHandlers(
            self.queue,
            self.handle,
            lambda name: name == "default-scheduler",
        )

    def _woken(self) -> None:
        self.wakes += 1

    def pod(self, *args: Any, **fields: Any) -> None:
        self.handlers.on_pod_update(a_pod_info(*args, **fields).pod)

    def waiting(self, *rejected_by: str, **fields: Any) -> QueuedPodInfo:
        """A pod that these plugins rejected long ago."""
        self.pod(**fields)
        queued = self.queue.pop(0.0)
        assert queued is not None
        self.queue.requeue(queued, 0.0, rejected_by=rejected_by)
        self.now = 100.0
        return queued

    def sub_queue(self) -> SubQueue | None:
        found = [queued.sub_queue for queued in self.queue.pods() if queued.pod.uid == UID]
        return found[0] if found else None


def node(name: str = "n", **fields: Any) -> Node:
    return a_node_facts(name, **fields).node


# --- pods ---


def test_a_pod_without_a_node_is_queued() -> None:
    followed = Watched()
    followed.pod()

    assert followed.sub_queue() is SubQueue.ACTIVE
    assert followed.wakes == 1


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"schedulerName": "other"}, id="of-another-scheduler"),
        pytest.param({"node": "n"}, id="with-a-node"),
        pytest.param({"status": {"phase": "Failed"}}, id="that-has-failed"),
    ],
)
def test_other_pods_are_not(fields: dict[str, Any]) -> None:
    followed = Watched()
    followed.pod(**fields)

    assert followed.sub_queue() is None


def test_a_pod_with_a_node_takes_its_place() -> None:
    followed = Watched()
    followed.pod(node="n")

    assert set(followed.cluster.pods) == {UID}


def test_an_assumed_pod_is_confirmed() -> None:
    followed = Watched()
    followed.pod()
    followed.cluster.assume_pod(a_pod_info(), "n")

    followed.pod(node="n")

    assert not followed.cluster.is_assumed(UID)
    assert set(followed.cluster.pods) == {UID}
    assert followed.sub_queue() is None


def test_a_pod_bound_elsewhere_than_assumed_is_where_it_is() -> None:
    followed = Watched()
    followed.cluster.assume_pod(a_pod_info(), "n")

    followed.pod(node="m")

    found = followed.cluster.pod(UID)
    assert found is not None
    assert found.node_name == "m"


def test_a_pod_that_another_scheduler_bound_leaves_the_queue() -> None:
    followed = Watched()
    followed.pod()
    followed.pod(node="n")

    assert followed.sub_queue() is None
    assert followed.queue.pop(0.0) is None


@pytest.mark.parametrize("ending", ["deleted", "finished"])
@pytest.mark.parametrize("assumed", [True, False])
def test_a_pod_that_ended_is_nowhere(ending: str, assumed: bool) -> None:
    followed = Watched()
    followed.pod()
    if assumed:
        followed.cluster.assume_pod(a_pod_info(), "n")
    else:
        followed.pod(node="n")

    if ending == "deleted":
        followed.handlers.on_pod_delete(a_pod_info().pod)
    else:
        followed.pod(node="n", status={"phase": "Succeeded"})

    assert followed.sub_queue() is None
    assert followed.cluster.pods == {}


def test_a_pod_that_changes_while_it_is_bound_is_not_forgotten() -> None:
    """Should the binding fail, the next attempt is for the pod as it is then."""
    followed = Watched()
    followed.pod()
    queued = followed.queue.pop(0.0)
    assert queued is not None
    followed.queue.end_in_flight(queued)
    followed.cluster.assume_pod(queued.pod, "n")

    followed.pod(labels={"v": "2"}, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert followed.sub_queue() is SubQueue.IN_FLIGHT
    followed.cluster.forget_pod(UID)
    followed.queue.requeue(queued, 0.0)

    assert queued.pod.labels == {"v": "2"}
    assert queued.pod.is_terminating


def test_a_pod_that_is_bound_but_not_seen_so_is_not_queued_again() -> None:
    followed = Watched()
    followed.pod()
    queued = followed.queue.pop(0.0)
    assert queued is not None
    followed.cluster.assume_pod(queued.pod, "n")
    followed.queue.done(queued)

    followed.pod(labels={"v": "2"})

    assert followed.sub_queue() is None


def test_a_gate_that_is_removed_lets_the_pod_in() -> None:
    followed = Watched()
    followed.pod(schedulingGates=[{"name": "a"}])
    assert followed.sub_queue() is SubQueue.GATED

    followed.pod()

    assert followed.sub_queue() is SubQueue.ACTIVE


def test_a_pod_that_cannot_be_tried_yet_does_not_wake_the_loop() -> None:
    followed = Watched()
    followed.pod(resourceClaims=[{"name": "c", "resourceClaimName": "claim"}])

    assert followed.sub_queue() is SubQueue.GATED
    assert followed.wakes == 0


# --- what wakes pods ---


def fits_less(followed: Watched) -> None:
    followed.handlers.on_pod_delete(a_pod_info("big", {"cpu": "2"}, node="n").pod)


@pytest.mark.parametrize(
    ("rejected_by", "event", "wakes"),
    [
        ("NodeResourcesFit", lambda f: f.handlers.on_node_update(node("new")), True),
        ("DynamicResources", lambda f: f.handlers.on_node_update(node("new")), True),
        (
            "DynamicResources",
            lambda f: f.handlers.on_node_update(node("n", labels={"a": "b"})),
            True,
        ),
        (
            "DynamicResources",
            lambda f: f.handlers.on_node_update(node("n", taints=["a=b:NoSchedule"])),
            False,
        ),
        ("DynamicResources", lambda f: f.handlers.on_node_update(node("n")), False),
        ("DynamicResources", lambda f: f.handlers.on_node_delete(node("n")), False),
        ("NodeResourcesFit", fits_less, True),
        ("DynamicResources", fits_less, False),
        (
            "DynamicResources",
            lambda f: f.handlers.on_class_update(None, DeviceClass(ObjectMeta(name="c"))),
            True,
        ),
        (
            "DynamicResources",
            lambda f: f.handlers.on_class_delete(DeviceClass(ObjectMeta(name="c"))),
            False,
        ),
        ("DynamicResources", lambda f: f.handlers.on_slice_update(None, a_slice()), True),
        ("DynamicResources", lambda f: f.handlers.on_slice_update(a_slice(), a_slice()), True),
        ("DynamicResources", lambda f: f.handlers.on_slice_delete(a_slice()), False),
        (
            "DynamicResources",
            lambda f: f.handlers.on_taint_rule_update(DeviceTaintRule(ObjectMeta(name="r"))),
            True,
        ),
        (
            "DynamicResources",
            lambda f: f.handlers.on_taint_rule_delete(DeviceTaintRule(ObjectMeta(name="r"))),
            True,
        ),
        ("NodeResourcesFit", lambda f: f.handlers.on_slice_update(None, a_slice()), False),
        ("DynamicResources", lambda f: f.claims.put(a_stored_claim("other", version=9)), True),
        ("DynamicResources", lambda f: f.claims.remove(a_stored_claim("other")), True),
        (
            "DynamicResources",
            lambda f: f.claims.put(a_stored_claim("other", version=9, allocation=GPU_0)),
            False,
        ),
        (
            "DynamicResources",
            lambda f: f.handlers.on_pod_update(
                a_pod_with_claims("claim", status={"resourceClaimStatuses": [{"name": "x"}]}).pod
            ),
            True,
        ),
        (
            "DynamicResources",
            lambda f: f.handlers.on_namespace_update(Namespace({"metadata": {"name": "x"}})),
            False,
        ),
    ],
    ids=[
        "a-new-node-for-fit", "a-new-node-for-devices", "labels", "taints", "a-heartbeat",
        "a-node-goes", "a-pod-goes-for-fit", "a-pod-goes-for-devices", "a-class", "a-class-goes",
        "a-slice", "a-slice-changes", "a-slice-goes", "a-taint-rule", "a-taint-rule-goes",
        "a-slice-for-fit", "a-claim-is-deallocated", "an-allocated-claim-goes",
        "a-claim-changes-hands", "the-pod's-claim-statuses", "a-namespace",
    ],
)  # fmt: skip
def test_which_changes_wake_a_pod(rejected_by: str, event: Any, wakes: bool) -> None:
    followed = Watched()
    followed.handlers.on_node_update(node("n"))
    followed.pod("big", {"cpu": "2"}, node="n")
    followed.claims.put(a_stored_claim("claim"))
    followed.claims.put(a_stored_claim("other", allocation=GPU_0))
    followed.waiting(
        rejected_by,
        requests={"cpu": "1"},
        resourceClaims=[{"name": "claim", "resourceClaimName": "claim"}],
    )

    event(followed)

    assert followed.sub_queue() is (SubQueue.ACTIVE if wakes else SubQueue.UNSCHEDULABLE)


def test_devices_that_were_only_decided_on_wake_pods_when_they_are_given_up() -> None:
    followed = Watched()
    followed.claims.put(a_stored_claim("claim"))
    other = a_stored_claim("other")
    followed.claims.put(other)
    flying = replace(other, status=replace(other.status, allocation=GPU_0))
    followed.claims.add_pending_allocation(flying)
    followed.waiting(
        "DynamicResources", resourceClaims=[{"name": "claim", "resourceClaimName": "claim"}]
    )
    followed.claims.remove(other)
    assert followed.sub_queue() is SubQueue.UNSCHEDULABLE, "its allocation was not seen"

    followed.claims.remove_pending_allocation(flying)

    assert followed.sub_queue() is SubQueue.ACTIVE


def test_a_claim_that_appears_opens_the_gate() -> None:
    followed = Watched()
    followed.pod(resourceClaims=[{"name": "claim", "resourceClaimName": "claim"}])
    assert followed.sub_queue() is SubQueue.GATED

    followed.claims.put(a_stored_claim("claim"))

    assert followed.sub_queue() is SubQueue.ACTIVE


def test_a_claim_that_appears_for_a_template_opens_the_gate_in_either_order() -> None:
    entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
    told = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "made"}]}
    made = a_stored_claim("made", owner=a_pod_info())
    for pod_first in (True, False):
        followed = Watched()
        followed.pod(resourceClaims=[entry])
        if pod_first:
            followed.pod(resourceClaims=[entry], status=told)
            followed.claims.put(made)
        else:
            followed.claims.put(made)
            assert followed.sub_queue() is SubQueue.GATED
            followed.pod(resourceClaims=[entry], status=told)

        assert followed.sub_queue() is SubQueue.ACTIVE


# --- nodes ---


def test_nodes_come_change_and_go() -> None:
    followed = Watched()
    followed.handlers.on_node_update(node("n"))
    assert followed.cluster.node("n") is not None

    followed.handlers.on_node_delete(node("n"))

    assert followed.cluster.node("n") is None


def test_devices_that_are_taken_touch_their_node_alone() -> None:
    followed = Watched()
    for name in ("n", "m"):
        followed.handlers.on_node_update(node(name))
        followed.handlers.on_slice_update(None, a_slice(name=name, node=name))
    before = {one.name: one.generation for one in followed.cluster.nodes}

    followed.claims.put(a_stored_claim("claim", allocation=an_allocation("gpu-0", pool="n")))

    after = {one.name: one.generation for one in followed.cluster.nodes}
    assert {name for name in after if after[name] != before[name]} == {"n"}


def test_a_delete_of_an_unknown_pod_is_ignored() -> None:
    followed = Watched()
    followed.handlers.on_pod_delete(Pod({"metadata": {"name": "x", "uid": "unknown"}}))

    assert followed.cluster.pods == {}
