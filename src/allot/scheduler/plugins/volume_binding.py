"""VolumeBinding: the pod's volumes must be usable on the node, or be bound or provisioned for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from allot.api.raw import RawObject
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
)
from allot.scheduler.framework.plugins import (
    PRE_FILTER_SKIP,
    PRE_FILTER_SUCCESS,
    FilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
)
from allot.scheduler.framework.status import SUCCESS, Status, failed, unresolvable
from allot.scheduler.plugins.volume_decisions import (
    BindingFailedError,
    BindingPlan,
    PodVolumes,
    all_bound,
    claim_with_selected_node,
    plan_for_node,
    sort_claims,
    volume_bound_to,
)
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.volumes import VolumeState

DEFAULT_TIMEOUT_SECONDS: Final = 600.0


class VolumeApi(Protocol):
    """The API calls of `pre_bind`."""

    async def update(self, changed: RawObject) -> RawObject:
        """Write a PersistentVolume or PersistentVolumeClaim; an exception if it is refused."""

    async def wait_until(self, is_done: Callable[[], bool], timeout_seconds: float) -> bool:
        """Ask `is_done` after every change of volumes or claims; False if time runs out first."""


@dataclass
class VolumeBindingState:
    """The pod's claims, the decision for them on each node, and the assumed one."""

    volumes: PodVolumes
    plans: dict[str, BindingPlan] = field(default_factory=dict)
    node: NodeInfo | None = None


class VolumeBinding(PreFilterPlugin, FilterPlugin, ReservePlugin, PreBindPlugin):
    """Filters by volumes, and binds those that wait for their first consumer."""

    name = "VolumeBinding"
    filters_locally = False

    def __init__(
        self,
        volumes: VolumeState,
        cluster: ClusterState,
        api: VolumeApi | None = None,
        args: Mapping[str, Any] | None = None,
    ) -> None:
        self._volumes = volumes
        self._cluster = cluster
        self._api = api
        self._timeout_seconds = float(
            (args or {}).get("bindTimeoutSeconds") or DEFAULT_TIMEOUT_SECONDS
        )

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        if not pod.volume_claims:
            return PRE_FILTER_SKIP
        sorted_ = sort_claims(pod, self._volumes)
        if isinstance(sorted_, Status):
            return PreFilterResult(sorted_)
        state[self.name] = VolumeBindingState(sorted_)
        return PRE_FILTER_SUCCESS

    def may_reject(self, pod: PodInfo) -> bool:
        return bool(pod.volume_claims)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        found: VolumeBindingState = state[self.name]
        plan = plan_for_node(found.volumes, node, self._volumes)
        if isinstance(plan, BindingPlan):
            found.plans[node.name] = plan
            return SUCCESS
        return unresolvable(*plan)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        found: VolumeBindingState | None = state.get(self.name)
        plan = None if found is None else found.plans.get(node_name)
        if found is None or not plan:
            return SUCCESS
        found.node = self._cluster.node(node_name)
        for claim, volume in plan.bindings:
            self._volumes.reserved_volumes[volume.name] = claim.key
        for claim in plan.provisions:
            self._volumes.selected_nodes[claim.key] = node_name
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        plan = self._plan(state, node_name)
        for claim, volume in plan.bindings:
            if self._volumes.reserved_volumes.get(volume.name) == claim.key:
                del self._volumes.reserved_volumes[volume.name]
        for claim in plan.provisions:
            if self._volumes.selected_nodes.get(claim.key) == node_name:
                del self._volumes.selected_nodes[claim.key]

    def needs_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> bool:
        return state.get(self.name) is not None and bool(self._plan(state, node_name))

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        plan = self._plan(state, node_name)
        found: VolumeBindingState | None = state.get(self.name)
        if not plan or found is None or found.node is None or self._api is None:
            return SUCCESS
        node = found.node
        for claim, volume in plan.bindings:
            if volume.claim is None or not volume.claim_uid:
                written = await self._api.update(volume_bound_to(volume.object, claim))
                self._volumes.set_volume(written)
        for claim in plan.provisions:
            if claim.selected_node != node_name:
                asking = claim_with_selected_node(claim.object, node_name)
                self._volumes.set_claim(await self._api.update(asking))
        try:
            done = await self._api.wait_until(
                lambda: all_bound(plan, node, self._volumes), self._timeout_seconds
            )
        except BindingFailedError as error:
            return failed(error)
        return SUCCESS if done else failed(TimeoutError("binding volumes: timed out"))

    def _plan(self, state: CycleState, node_name: str) -> BindingPlan:
        found: VolumeBindingState | None = state.get(self.name)
        return (found.plans.get(node_name) if found else None) or BindingPlan()

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        come_or_change = Action.ADD | Action.UPDATE
        return (
            EventRegistration(ClusterEvent(STORAGE_CLASS, come_or_change)),
            EventRegistration(ClusterEvent(PERSISTENT_VOLUME_CLAIM, come_or_change), uses_claim),
            EventRegistration(ClusterEvent(PERSISTENT_VOLUME, come_or_change)),
            EventRegistration(ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
            EventRegistration(ClusterEvent(CSI_NODE, come_or_change)),
            EventRegistration(ClusterEvent(CSI_DRIVER, Action.UPDATE)),
            EventRegistration(ClusterEvent(CSI_STORAGE_CAPACITY, come_or_change)),
        )


def uses_claim(pod: PodInfo, old: RawObject | None, new: RawObject | None) -> Hint:
    """A PersistentVolumeClaim may help only pods that mount it."""
    claim = new or old
    if claim is None or claim.metadata.namespace != pod.namespace:
        return Hint.SKIP
    used = any(ref.name == claim.metadata.name for ref in pod.volume_claims)
    return Hint.QUEUE if used else Hint.SKIP
