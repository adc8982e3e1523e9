"""Laws of the scheduler's memory: what is kept up to date bit by bit is what one would find from scratch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import Ledger
from allot.api.base import replace
from allot.api.claims import AllocationResult, ResourceClaim
from allot.api.classes import DeviceClass, DeviceClassSpec
from allot.api.identities import ObjectKey
from allot.api.meta import ObjectMeta
from allot.api.slices import ResourcePool
from allot.client.client import Client
from allot.features import DEFAULTS
from allot.scheduler.core.decisions import Chosen, CycleError, Decision, NoNode
from allot.scheduler.core.scheduling_cycle import SchedulingCycle
from allot.scheduler.core.scheduling_queue import MAX_UNSCHEDULABLE_SECONDS, SchedulingQueue
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo, SubQueue
from allot.scheduler.framework.events import NODE, Action, ClusterEvent, EventRegistration
from allot.scheduler.framework.handle import Handle
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from allot.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from allot.scheduler.plugins.node_affinity import NodeAffinity
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit
from allot.scheduler.plugins.priority_sort import PrioritySort
from allot.scheduler.plugins.taint_toleration import TaintToleration
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.device_state import DeviceState
from allot.scheduler.state.pods import PodInfo
from allot.testing.builders import (
    DRIVER,
    GPU,
    a_device,
    a_request,
    a_selector,
    a_slice,
    an_allocation,
    an_alternative,
    an_exact_request,
)
from tests.unit.client.fakes import START, ScriptedTransport
from tests.unit.scheduler.plugins.dynamic_resources.claims import (
    a_pod_with_claims,
    a_stored_claim,
)
from tests.unit.scheduler.state.objects import a_node_facts, a_pod_info

small = st.integers(0, 3)

# --- the ledger ---

allocations = st.none() | st.builds(
    an_allocation, st.sampled_from(["x", "y"]), pool=st.sampled_from(["p", "q"])
)


@given(st.data())
def test_the_ledger_is_what_claims_and_decisions_add_up_to(data: st.DataObject) -> None:
    """Whatever the informer, our own writes and decisions say, in whatever order."""
    tracker = ClaimTracker(DEFAULTS)
    expected_flights: dict[str, ResourceClaim] = {}
    heard: dict[ObjectKey, ResourceClaim] = {}

    def listener(old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new or old
        assert claim is not None
        key = ObjectKey("default", claim.metadata.name)
        assert heard.get(key) == old, "listeners hear everything, once and in order"
        if new is None:
            del heard[key]
        else:
            heard[key] = new

    tracker.add_listener(listener)
    for version in range(1, data.draw(st.integers(1, 25)) + 1):
        name = data.draw(st.sampled_from(["a", "b"]))
        uid = f"{name}-{data.draw(st.integers(0, 1))}"
        number = max(1, version - data.draw(small))
        allocation = data.draw(allocations)
        claim = a_stored_claim(name, version=number, uid=uid, allocation=allocation)
        match data.draw(
            st.sampled_from(["put", "remove", "assume", "add pending", "remove pending"])
        ):
            case "put":
                known = tracker.get(ObjectKey("default", name))
                if known is None or known.metadata.resource_version != str(number):
                    tracker.put(claim)  # one version of an object has one content
            case "remove":
                tracker.remove(claim)
            case "assume":
                tracker.assume(claim)
            case "add pending" if allocation is not None:
                tracker.add_pending_allocation(claim)
                expected_flights[uid] = claim
            case "remove pending":
                tracker.remove_pending_allocation(claim)
                expected_flights.pop(uid, None)
        expected = Ledger(DEFAULTS)
        known_by_name = {key.name: found for key, found in heard.items()}
        holdings = {found.metadata.uid: found for found in known_by_name.values()}
        for uid, found in (holdings | expected_flights).items():
            if found.status.allocation is not None:
                key = f"default/{found.metadata.name}"
                expected.add(f"{key}#{uid}", found.status.allocation)
        assert tracker.ledger.snapshot() == expected.snapshot()
        assert {name: tracker.get(ObjectKey("default", name)) for name in known_by_name} == (
            known_by_name
        )


# --- remembered verdicts ---

REQUESTS = {
    "one": a_request("r", GPU),
    "two": a_request("r", an_exact_request(count=2)),
    "big": a_request("r", an_exact_request(selectors=(a_selector("device.attributes[device.driver].big"),))),
    "choice": a_request(
        "r",
        first_available=(
            an_alternative("b", selectors=(a_selector("device.attributes[device.driver].big"),)),
            an_alternative("a"),
        ),
    ),
}  # fmt: skip


class World:
    """The state that a scheduler follows, and two ways to decide on it."""

    def __init__(self) -> None:
        self.cluster = ClusterState()
        self.tracker = ClaimTracker(DEFAULTS)
        self.devices = DeviceState(DEFAULTS, self.cluster.touch)
        self.tracker.add_ledger_listener(self.devices.allocation_changed)
        self.plugin = self._plugin()
        self.remembering = self._cycle(self.plugin)
        self.version = 0
        self.pods: dict[str, PodInfo] = {}

    def _plugin(self) -> DynamicResources:
        handle = Handle(DEFAULTS, self.cluster, self.tracker, self.devices, utc_now=lambda: START)
        return DynamicResources(handle, ClaimWriter(Client(ScriptedTransport()), self.tracker.get))

    def _cycle(self, plugin: DynamicResources) -> SchedulingCycle:
        plugins = (
            TaintToleration(),
            NodeAffinity(),
            NodeResourcesFit(),
            plugin,
            NodeResourcesBalancedAllocation(),
        )
        weights = {"TaintToleration": 3, "NodeAffinity": 2, "DynamicResources": 2}
        return SchedulingCycle(Profile("default-scheduler", plugins, weights), self.cluster)

    def decide_anew(self, pod: PodInfo) -> Decision:
        return self._cycle(self._plugin()).decide(pod)

    def next_version(self) -> int:
        self.version += 1
        return self.version


def shown(decision: Decision) -> Any:
    match decision:
        case Chosen():
            return decision.node_name, decision.feasible
        case NoNode():
            return dict(decision.statuses), decision.rejected_by
        case CycleError():
            return decision.status.message


def change_node(world: World, data: st.DataObject) -> None:
    name = f"n{data.draw(small)}"
    if data.draw(st.booleans()) and len(world.cluster) > 1:
        world.cluster.remove_node(name)
        return
    world.cluster.set_node(
        a_node_facts(
            name,
            {"cpu": data.draw(st.sampled_from(["1", "4"]))},
            labels={"zone": data.draw(st.sampled_from("ab"))},
            taints=data.draw(st.sampled_from([(), ("a=b:NoSchedule",), ("a=b:PreferNoSchedule",)])),
        )
    )


def put_slice(
    world: World, data: st.DataObject, name: str, pool: str, node: str, slices: int = 1
) -> None:
    """A slice of one node, or (without a name) of all."""
    devices = [
        a_device(f"d{index}", {"big": data.draw(st.booleans())})
        for index in range(data.draw(st.integers(1, 2)))
    ]
    sub_queue: dict[str, Any] = (
        {"node_name": node} if node else {"node_name": None, "all_nodes": True}
    )
    world.devices.put_slice(
        a_slice(*devices, name=name, pool=ResourcePool(pool, 1, slices), **sub_queue)
    )


def change_slice(world: World, data: st.DataObject) -> None:
    name = f"s{data.draw(small)}"
    known = {found.metadata.name: found for found in world.devices.inventory.slices()}
    if data.draw(st.booleans()) and name in known:
        world.devices.remove_slice(known[name])
        return
    # Most pools belong to one node, as usual; some do not.
    number = data.draw(small)
    node = data.draw(st.sampled_from([f"n{number}", f"n{number}", "n0", ""]))
    put_slice(world, data, name, f"p{number}", node, data.draw(st.sampled_from([1, 1, 2])))


def change_class(world: World, data: st.DataObject) -> None:
    selectors = data.draw(st.sampled_from([(), ("device.attributes[device.driver].big",)]))
    spec = DeviceClassSpec(selectors=tuple(map(a_selector, selectors)))
    world.devices.put_class(DeviceClass(ObjectMeta(name=DRIVER), spec))


def put_claim(world: World, data: st.DataObject, name: str) -> None:
    kind = data.draw(st.sampled_from(["one", "one", "one", "choice", "choice", "big", "two"]))
    request = REQUESTS[kind]
    world.tracker.put(a_stored_claim(name, request, version=world.next_version()))


def change_claim(world: World, data: st.DataObject) -> None:
    """Others create, delete, allocate or free a claim."""
    name = f"c{data.draw(st.integers(0, 5))}"
    known = world.tracker.get(ObjectKey("default", name))
    if known is None:
        put_claim(world, data, name)
        return
    if data.draw(st.integers(0, 5)) == 0:
        world.tracker.remove(known)
        return
    allocation: AllocationResult | None = None
    if known.status.allocation is None:
        number = data.draw(small)
        node = data.draw(st.sampled_from(["", f"n{number}"]))
        device = f"d{data.draw(st.integers(0, 1))}"
        allocation = an_allocation(device, pool=f"p{number}", node=node)
    metadata = replace(known.metadata, resource_version=str(world.next_version()))
    status = replace(known.status, allocation=allocation)
    world.tracker.put(replace(known, metadata=metadata, status=status))


def change_pod(world: World, data: st.DataObject) -> None:
    """A pod that has a place comes or goes."""
    name = f"running-{data.draw(small)}"
    if name in world.pods:
        world.cluster.remove_pod(world.pods.pop(name).uid)
    else:
        pod = a_pod_info(name, {"cpu": "1"}, node=f"n{data.draw(small)}")
        world.cluster.set_pod(pod)
        world.pods[name] = pod


def schedule(world: World, data: st.DataObject) -> None:
    """The law: with and without memory the decision is the same. Then it may be carried out."""
    number = data.draw(st.integers(0, 5))
    claims = data.draw(st.sampled_from([(number,), (number,), (number, (number + 1) % 6), ()]))
    zone = data.draw(st.sampled_from([{}, {}, {"nodeSelector": {"zone": "a"}}]))
    pod = a_pod_with_claims(
        *(f"c{number}" for number in claims),
        pod=f"pod-{world.next_version()}",
        requests={"cpu": "100m"},
        **zone,
    )
    anew = world.decide_anew(pod)
    decision = world.remembering.decide(pod)
    assert shown(decision) == shown(anew)
    if isinstance(decision, Chosen) and data.draw(st.booleans()):
        world.cluster.assume_pod(pod, decision.node_name)
        assert world.plugin.reserve(decision.state, pod, decision.node_name).is_success
        if data.draw(st.booleans()):
            world.plugin.unreserve(decision.state, pod, decision.node_name)
            world.cluster.forget_pod(pod.uid)


CHANGES: list[Callable[[World, st.DataObject], None]] = [
    change_node, change_slice, change_slice, change_class, change_claim, change_claim, change_pod,
    *[schedule] * 8,
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_decisions_from_memory_are_those_made_anew(data: st.DataObject) -> None:
    world = World()
    for number in range(3):
        world.cluster.set_node(a_node_facts(f"n{number}", labels={"zone": "a"}))
        put_slice(world, data, f"s{number}", f"p{number}", f"n{number}")
    put_slice(world, data, "s3", "p3", "")
    world.devices.put_class(DeviceClass(ObjectMeta(name=DRIVER)))
    for number in range(6):
        put_claim(world, data, f"c{number}")
    for _ in range(25):
        data.draw(st.sampled_from(CHANGES))(world, data)


# --- the queue ---

NODE_ADDED = ClusterEvent(NODE, Action.ADD)


@settings(deadline=None)
@given(st.data())
def test_no_pod_is_lost_in_the_queue(data: st.DataObject) -> None:
    """Every pod that was added and not deleted or bound is tried again, whatever happened to it."""
    queue = SchedulingQueue(PrioritySort(), {}, {"Fit": [EventRegistration(NODE_ADDED)]})
    alive: set[str] = set()
    trying: dict[str, QueuedPodInfo] = {}
    now = 0.0
    for _ in range(data.draw(st.integers(1, 40))):
        now += data.draw(st.sampled_from([0.0, 0.5, 3.0]))
        name = f"p{data.draw(small)}"
        uid = f"uid-default-{name}"
        match data.draw(
            st.sampled_from(["add", "update", "delete", "pop", "end", "event", "flush"])
        ):
            case "add" if name not in alive:
                queue.add(a_pod_info(name, priority=data.draw(small)), now)
                alive.add(name)
            case "update" if name in alive:
                queue.update(a_pod_info(name, priority=data.draw(small)), now)
            case "delete":
                queue.delete(uid)
                alive.discard(name)
            case "pop":
                queued = queue.pop(now)
                if queued is not None:
                    assert queued.pod.name in alive
                    assert queued.sub_queue is SubQueue.IN_FLIGHT
                    trying[queued.pod.name] = queued
            case "end" if name in trying:
                queued = trying.pop(name)
                match data.draw(st.sampled_from(["bound", "failed", "rejected"])):
                    case "bound":
                        queue.end_in_flight(queued)
                        if any(one is queued for one in queue.pods()):
                            queue.done(queued)
                            alive.discard(name)
                    case "failed":
                        queue.requeue(queued, now)
                    case "rejected":
                        queue.requeue(queued, now, rejected_by=["Fit"])
            case "event":
                queue.on_cluster_event(NODE_ADDED, None, None, now)
            case "flush":
                queue.flush(now)
        assert {queued.pod.name for queued in queue.pods()} == alive
    for queued in trying.values():
        queue.requeue(queued, now, rejected_by=["Fit"])
    now += MAX_UNSCHEDULABLE_SECONDS + 20
    queue.flush_unschedulable(now)
    queue.flush(now + 20)
    popped = set()
    while (again := queue.pop(now + 20)) is not None:
        popped.add(again.pod.name)
    assert popped == alive
