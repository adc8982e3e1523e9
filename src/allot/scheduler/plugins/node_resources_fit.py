"""NodeResourcesFit: the pod's requests must fit into the free resources of the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import (
    ASSIGNED_POD,
    DEVICE_CLASS,
    NODE,
    WAITING_POD,
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
)
from allot.scheduler.framework.plugins import FilterPlugin, ScorePlugin
from allot.scheduler.framework.status import SUCCESS, Code, Status
from allot.scheduler.plugins.resource_scoring import scoring_strategy
from allot.scheduler.state.nodes import NodeFacts, NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.resources import CPU, EPHEMERAL_STORAGE, MEMORY, amount_of

TOO_MANY_PODS: Final = "Too many pods"


def never(_name: str) -> bool:
    """No extended resource is backed by a DeviceClass."""
    return False


class NodeResourcesFit(FilterPlugin, ScorePlugin):
    """Filters by requests, scores by utilization.

    `is_dra_backed` says which extended resources a DeviceClass backs: where a node's
    allocatable has none, they are DynamicResources' to find. It belongs to the configuration:
    when its answers change, remembered answers of this plugin are void.
    """

    name = "NodeResourcesFit"

    def __init__(
        self,
        args: Mapping[str, Any] | None = None,
        is_dra_backed: Callable[[str], bool] = never,
    ) -> None:
        args = args or {}
        self._ignored = frozenset(args.get("ignoredResources") or ())
        self._ignored_groups = frozenset(args.get("ignoredResourceGroups") or ())
        self._strategy = scoring_strategy(args.get("scoringStrategy"))
        self._is_dra_backed = is_dra_backed

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        milli_cpu, memory, ephemeral_storage, scalars = pod.requests
        if (
            len(node.pods) < node.max_pods
            and (
                not milli_cpu or milli_cpu <= node.allocatable_milli_cpu - node.requested_milli_cpu
            )
            and (not memory or memory <= node.allocatable_memory - node.requested_memory)
            and (
                not ephemeral_storage
                or ephemeral_storage
                <= node.allocatable_ephemeral_storage - node.requested_ephemeral_storage
            )
            and (not scalars or not any(self._scarce_scalars(pod, node)))
        ):
            return SUCCESS
        return self._refusal(pod, node)

    def _refusal(self, pod: PodInfo, node: NodeInfo) -> Status:
        reasons = []
        is_unresolvable = False
        if len(node.pods) >= node.max_pods:
            reasons.append(TOO_MANY_PODS)
        for name, wanted, allocatable in self._scarce(pod, node):
            reasons.append(f"Insufficient {name}")
            is_unresolvable = is_unresolvable or wanted > allocatable
        return Status(Code.UNRESOLVABLE if is_unresolvable else Code.UNSCHEDULABLE, tuple(reasons))

    def shortages(self, pod: PodInfo, node: NodeInfo) -> Iterator[str]:
        """The insufficient resources with amounts, as text."""
        if len(node.pods) >= node.max_pods:
            yield f"pods: {len(node.pods)} of {node.max_pods} are there"
        used = {
            CPU: node.requested_milli_cpu,
            MEMORY: node.requested_memory,
            EPHEMERAL_STORAGE: node.requested_ephemeral_storage,
        } | node.requested_scalars
        for name, wanted, allocatable in self._scarce(pod, node):
            left = allocatable - used.get(name, 0)
            asked, free, total = (amount_of(name, each) for each in (wanted, left, allocatable))
            yield f"{name}: {asked} requested, {free} of {total} left"

    def _scarce(self, pod: PodInfo, node: NodeInfo) -> Iterator[tuple[str, int, int]]:
        """The insufficient resources: name, requested amount, and allocatable amount."""
        requests = pod.requests
        for name, wanted, allocatable, used in (
            (CPU, requests.milli_cpu, node.allocatable_milli_cpu, node.requested_milli_cpu),
            (MEMORY, requests.memory, node.allocatable_memory, node.requested_memory),
            (
                EPHEMERAL_STORAGE,
                requests.ephemeral_storage,
                node.allocatable_ephemeral_storage,
                node.requested_ephemeral_storage,
            ),
        ):
            if wanted and wanted > allocatable - used:
                yield name, wanted, allocatable
        yield from self._scarce_scalars(pod, node)

    def _scarce_scalars(self, pod: PodInfo, node: NodeInfo) -> Iterator[tuple[str, int, int]]:
        for name, wanted in pod.requests.scalars:
            allocatable = node.allocatable_scalars.get(name, 0)
            if wanted <= allocatable - node.requested_scalars.get(name, 0):
                continue
            if name in self._ignored or name.split("/", 1)[0] in self._ignored_groups:
                continue
            if not allocatable and self._is_dra_backed(name):
                continue
            yield name, wanted, allocatable

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return self._strategy(pod, node)

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        freed = ClusterEvent(ASSIGNED_POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)
        smaller = ClusterEvent(WAITING_POD, Action.UPDATE_POD_SCALE_DOWN)
        grown = ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        backed = ClusterEvent(DEVICE_CLASS, Action.ADD | Action.UPDATE)
        return (
            EventRegistration(freed),
            EventRegistration(smaller),
            EventRegistration(grown, self._node_could_fit),
            EventRegistration(backed, self._devices_could_serve),
        )

    def _devices_could_serve(self, pod: PodInfo, _old: Any, _new: Any) -> Hint:
        """A DeviceClass may back an extended resource of the pod now."""
        is_backed = any(self._is_dra_backed(name) for name, _ in pod.requests.scalars)
        return Hint.QUEUE if is_backed else Hint.SKIP

    def _node_could_fit(self, pod: PodInfo, old: NodeFacts | None, new: NodeFacts | None) -> Hint:
        """A node may help if the pod would fit on it when empty, and it has more than before."""
        if new is None or any(self._scarce(pod, NodeInfo(new.name, new))):
            return Hint.SKIP
        if old is None:
            return Hint.QUEUE
        has_more = new.allocatable.exceeds(old.allocatable) or new.max_pods > old.max_pods
        gave_up = any(
            old.allocatable.amount(name) and not new.allocatable.amount(name)
            for name, _ in pod.requests.scalars
        )  # devices serve it: without them the node would not fit
        return Hint.QUEUE if has_more or gave_up else Hint.SKIP
