"""A scheduler on objects in memory: queue, scheduling cycles, plugins, preemption. Nothing is written anywhere else.

    pop ─► decide ─► reserve ─► claims allocated and reserved, pod bound, all in memory
              └─ no node ─► preemption: victims are deleted, a node nominated ─► unschedulable until an event helps

The queue, its hints, the plugins and the allocator are those of `allot scheduler`; binding takes no time. The decisions
are bounded by step budgets, so that the same objects give the same answer on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.backoff import Backoff
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.questions.equal_pods import EqualPods, class_of
from allot.questions.observed_cluster import ObservedCluster
from allot.questions.placements import (
    TOO_MANY_CONSUMERS,
    Placement,
    bound_pod,
    claims_after_binding,
)
from allot.scheduler.configuration import ProfileConfiguration
from allot.scheduler.core.binding_cycle import run_reserve_and_permit
from allot.scheduler.core.decisions import Chosen, CycleError, NoNode
from allot.scheduler.core.event_handlers import EventHandlers
from allot.scheduler.core.failure_handler import filter_plugin_names
from allot.scheduler.core.scheduling_cycle import SchedulingCycle
from allot.scheduler.core.scheduling_queue import SchedulingQueue
from allot.scheduler.core.unschedulable_pods import QueuedPodInfo, SubQueue
from allot.scheduler.explain.explanations import NodeExplanation
from allot.scheduler.explain.static_scheduler import WORKLOAD_KINDS, StaticScheduler
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.dry_run import DryRunFilters
from allot.scheduler.framework.durations import Durations
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import SUCCESS, Status, unresolvable
from allot.scheduler.plugins.default_preemption import DefaultPreemption
from allot.scheduler.plugins.dynamic_resources.binding_conditions import waits_for_binding
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME
from allot.scheduler.plugins.preemption_victims import DisruptionBudget, Victims
from allot.scheduler.state.pods import PodInfo

FLUSH_UNSCHEDULABLE_SECONDS: Final = 30.0
SPREADING_KINDS: Final = frozenset(resource.kind for resource in WORKLOAD_KINDS)
"""Whose pods are spread by default."""


class Failure(NamedTuple):
    """The last attempt to schedule a pod, which found no node."""

    pod: PodInfo
    message: str
    """As in the condition PodScheduled."""
    statuses: object = None
    """The statuses of all nodes, shared by pods of one equivalence class."""


class ClusterWrites(Protocol):
    """What the scheduler changes in a cluster."""

    def bind(self, placement: Placement) -> None:
        """The pod has a node, and its claims are allocated."""

    def evict(self, victim: PodInfo, preemptor: PodInfo) -> None:
        """Delete a victim of preemption."""


class SchedulingSimulator(StaticScheduler):
    """Schedules the pods of a snapshot, which follows: bound pods and allocated claims are put into it."""

    def __init__(self, cluster: ObservedCluster, clock: Callable[[], float] = lambda: 0.0) -> None:
        """`clock` has the seconds since `cluster.now`. The objects of the cluster are changed."""
        self.clock = clock
        self.failures: dict[str, Failure] = {}
        """By uid, of pods without a node that were tried."""
        self.attempts = 0
        self.preempts = True
        """Whether pods may evict less important ones."""
        self.writes: ClusterWrites | None = None
        self._equal = EqualPods()
        super().__init__(
            cluster.objects,
            cluster.configuration,
            cluster.gates,
            lambda: cluster.now + timedelta(seconds=clock()),
            clock=clock,
        )

    # --- state ---

    def _percentage_of_nodes_to_score(self, configuration: ProfileConfiguration) -> int:
        return configuration.percentage_of_nodes_to_score

    def _follow(self) -> None:
        configuration = self._configuration
        self.queue = SchedulingQueue.of_profiles(
            self.profiles,
            Backoff(configuration.initial_backoff_seconds, configuration.max_backoff_seconds),
        )
        self.handlers = EventHandlers(self.queue, self._handle, self.profiles.__contains__)
        self._durations = Durations()
        self._cycles = {
            name: SchedulingCycle(profile, self.cluster) for name, profile in self.profiles.items()
        }
        self._preemption = {
            profile.scheduler_name: self._preemption_of(profile)
            for profile in configuration.profiles
            if DefaultPreemption.name in profile.plugins
        }
        self._next_flush = self.clock() + FLUSH_UNSCHEDULABLE_SECONDS

    def _preemption_of(self, configuration: ProfileConfiguration) -> DefaultPreemption:
        filters = DryRunFilters(self.cluster)
        filters.profile = self.profiles[configuration.scheduler_name]

        async def evict(_victim: PodInfo, _pod: PodInfo, _node: str) -> None:
            raise AssertionError("decisions are carried out by the simulator")

        return DefaultPreemption(
            filters,
            lambda: map(DisruptionBudget.of, self.snapshot.of(resources.POD_DISRUPTION_BUDGETS)),
            evict,
            lambda _number: 0,
            configuration.args.get(DefaultPreemption.name) or {},
        )

    def _fill_pods(self, snapshot: Snapshot) -> None:
        pods = sorted(snapshot.of(resources.PODS), key=_age)
        for pod in pods:
            self.handlers.on_pod_update(pod)

    def put_pod(self, pod: Pod) -> None:
        """A pod was added or changed."""
        self.snapshot.put(resources.PODS, pod)
        self.handlers.on_pod_update(pod)

    def remove_pod(self, pod: Pod) -> None:
        self.snapshot.remove(resources.PODS, pod.key)
        uid = pod.metadata.uid
        self.failures.pop(uid, None)
        self.handlers.on_pod_delete(pod)
        self._try_next_equal(uid)

    def put_claim(self, claim: ResourceClaim) -> None:
        """A claim was added or changed."""
        self.snapshot.put(resources.RESOURCE_CLAIMS, claim)
        if self.claims.get(claim.key) is None:
            self.claims.put(claim)
        else:
            self.claims.assume(claim)

    def remove_claim(self, claim: ResourceClaim) -> None:
        self.snapshot.remove(resources.RESOURCE_CLAIMS, claim.key)
        self.claims.remove(claim)

    def put_workload(self, workload: RawObject) -> None:
        """A Service or a workload was added or changed: its pods are spread by its selector."""
        known, kind = self._handle.workloads, workload.kind
        if kind == resources.SERVICES.kind:
            known.set_service(*workload.key, workload.data)
        elif kind in SPREADING_KINDS:
            known.set_workload(kind, *workload.key, workload.data)

    def remove_workload(self, workload: RawObject) -> None:
        known, kind = self._handle.workloads, workload.kind
        if kind == resources.SERVICES.kind:
            known.remove_service(*workload.key)
        elif kind in SPREADING_KINDS:
            known.remove_workload(kind, *workload.key)

    # --- scheduling ---

    def waiting(self) -> Iterator[PodInfo]:
        """The pods without a node that a profile is responsible for."""
        yield from (queued.pod for queued in self.queue.pods())
        yield from self._equal

    @property
    def waiting_count(self) -> int:
        """The number of pods without a node."""
        return self.queue.size + len(self._equal)

    def stop_waiting(self) -> None:
        """Forget all pods without a node."""
        for pod in list(self.waiting()):
            self.queue.delete(pod.uid)
        self._equal.clear()

    def gate_of(self, pod: PodInfo) -> str:
        """Why the pod is not tried; empty if it is."""
        queued = self.queue.find(pod.uid)
        return queued.gate.message if queued and queued.sub_queue is SubQueue.GATED else ""

    def next_due(self) -> float | None:
        """When the next pod can be tried; None if that takes an event."""
        return self.queue.next_due()

    def schedule_all(self) -> int:
        """Try all pods that are due, until none is. The number of attempts."""
        number = 0
        while self.schedule_next():
            number += 1
        return number

    def schedule_next(self) -> bool:
        """Try the next pod; False if none is due."""
        now = self.clock()
        self.queue.flush(now)
        if now >= self._next_flush:
            self.queue.flush_unschedulable(now)
            self._next_flush = now + FLUSH_UNSCHEDULABLE_SECONDS
        queued = self.queue.pop(now)
        if queued is None:
            return False
        self.attempts += 1
        self._attempt(queued, now)
        return True

    def _attempt(self, queued: QueuedPodInfo, now: float) -> None:
        pod = queued.pod
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None or pod.is_terminating or self.cluster.pod(pod.uid) is not None:
            self.queue.done(queued)
            return
        if self._equal.any_tried and self._wait_for_equal(queued):
            return
        decision = self._cycles[pod.scheduler_name].decide(pod)
        match decision:
            case Chosen():
                placed = self._place(profile, queued, decision)
                if isinstance(placed, Status):
                    self._reject(queued, now, placed)
            case NoNode():
                self._handle_failure(profile, queued, decision, now)
            case CycleError(_, status):
                self.failures[pod.uid] = Failure(pod, status.message)
                self.queue.requeue(queued, now)

    def profile_of(self, pod: PodInfo) -> Profile:
        """The profile that schedules the pod; the first one if its scheduler is not known here."""
        return self.profiles.get(pod.scheduler_name) or next(iter(self.profiles.values()))

    def place_on(self, pod: PodInfo, node_name: str) -> Placement | Status | None:
        """Place a pod of the queue on this node, and nowhere else; or the status that rejects it.

        None: whether it fits there depends on other nodes.
        """
        profile = self.profile_of(pod)
        decision = self._cycles[profile.scheduler_name].decide_on(pod, node_name)
        if not isinstance(decision, Chosen):
            return decision
        queued = self.queue.find(pod.uid)
        assert queued is not None, "the pod is not in the queue"
        return self._place(profile, queued, decision)

    def fits_on(self, pod: PodInfo, node_name: str) -> Status | None:
        """SUCCESS or the status that rejects the pod; None if that depends on other nodes."""
        profile = self.profile_of(pod)
        decision = self._cycles[profile.scheduler_name].decide_on(pod, node_name)
        return SUCCESS if isinstance(decision, Chosen) else decision

    def status_on(self, pod: PodInfo, node_name: str) -> NodeExplanation | None:
        """Why the node rejects the pod, with values; None if it does not."""
        profile, node = self.profile_of(pod), self.cluster.node(node_name)
        state = CycleState()
        if node is None:
            return None
        for plugin in profile.pre_filter:
            status, _ = plugin.pre_filter(state, pod, self.cluster)
            if status.is_skip:
                state.skipped_filters.add(plugin.name)
            elif not status.is_success:
                return NodeExplanation(node_name, plugin.name, status.reasons)
        for filter_ in profile.filter:
            if filter_.name in state.skipped_filters:
                continue
            status = filter_.filter(state, pod, node)
            if not status.is_success:
                found = status.by(filter_.name)
                return self.explainer.explain_node(profile, state, pod, node, found)
        return None

    def _reject(self, queued: QueuedPodInfo, now: float, status: Status) -> None:
        pod = queued.pod
        self.failures[pod.uid] = Failure(pod, status.message)
        rejected_by = {status.plugin} if status.is_rejection and status.plugin else ()
        self.queue.requeue(queued, now, rejected_by=rejected_by)

    # --- a node fits ---

    def _place(self, profile: Profile, queued: QueuedPodInfo, chosen: Chosen) -> Placement | Status:
        """The placement, or why the pod cannot be bound after all."""
        pod, node_name, state = queued.pod, chosen.node_name, chosen.state
        self.cluster.assume_pod(pod, node_name)
        self.cluster.nominations.remove(pod.uid)
        outcome = run_reserve_and_permit(profile, self._durations, state, pod, node_name)
        claims = (
            None
            if isinstance(outcome, Status)
            else claims_after_binding(profile, state, pod, self.cluster.node(node_name))
        )
        if claims is None:
            for plugin in reversed(profile.reserve):
                plugin.unreserve(state, pod, node_name)
            self.cluster.forget_pod(pod.uid)
            return (
                outcome
                if isinstance(outcome, Status)
                else unresolvable(TOO_MANY_CONSUMERS).by(NAME)
            )
        self.queue.end_in_flight(queued)
        waits = any(
            claim.status.allocation is not None and waits_for_binding(claim.status.allocation)
            for claim in claims
        )
        for claim in claims:
            self.put_claim(claim)
        self.queue.done(queued)
        self.failures.pop(pod.uid, None)
        self._try_next_equal(pod.uid)
        placement = Placement(pod, node_name, claims, waits)
        if self.writes is not None:
            self.writes.bind(placement)
        else:
            self.put_pod(bound_pod(placement))
        return placement

    # --- no node fits ---

    def _handle_failure(
        self, profile: Profile, queued: QueuedPodInfo, decision: NoNode, now: float
    ) -> None:
        pod = queued.pod
        message = ""
        if not decision.is_pending:
            message = self._preempt(profile, pod, decision)
        self.failures[pod.uid] = Failure(
            pod, decision.message(len(self.cluster), message), decision.statuses
        )
        self.queue.requeue(
            queued,
            now,
            rejected_by=decision.rejected_by or filter_plugin_names(profile),
            pending_on=decision.pending_on,
        )
        if not decision.is_pending and (class_ := class_of(pod, self.claims.get)):
            self._equal.set_tried(class_, pod)

    def _wait_for_equal(self, queued: QueuedPodInfo) -> bool:
        """Take a pod out of the queue if an equal one waits; whether it was."""
        pod = queued.pod
        class_ = class_of(pod, self.claims.get)
        first = self._equal.tried(class_) if class_ is not None else None
        if first is None or first == pod.uid:
            return False
        known = self.failures.get(first)
        if known is None or first not in self.queue:
            return False
        self.queue.delete(pod.uid)
        self._equal.wait(class_, pod)
        self.failures[pod.uid] = known._replace(pod=pod)
        return True

    def _try_next_equal(self, uid: str) -> None:
        """A pod has a node or is gone: if it was the one that was tried, the next equal one is."""
        following = self._equal.remove(uid)
        if following is not None:
            self.queue.add(following, self.clock())

    def _preempt(self, profile: Profile, pod: PodInfo, decision: NoNode) -> str:
        """Evict less important pods, if that helps; what preemption says otherwise."""
        plugin = self._preemption.get(profile.scheduler_name)
        if plugin is None or not self.preempts or not len(self.cluster):
            return ""
        answer = plugin.decide(decision.state, pod, self.cluster, decision.statuses)
        if not isinstance(answer, Victims):
            return answer.status.message
        for victim in answer.pods:
            if self.writes is not None:
                self.writes.evict(victim, pod)
            else:
                self.remove_pod(victim.pod)
        self.cluster.nominations.put(pod, answer.node_name)
        self.put_pod(pod.pod.with_value(answer.node_name, "status", "nominatedNodeName"))
        return ""


def _age(pod: Pod) -> str:
    """Pods are queued in the order of their creation."""
    return str(pod.get("metadata", "creationTimestamp", default=""))
