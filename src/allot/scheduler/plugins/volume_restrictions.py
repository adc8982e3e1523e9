"""VolumeRestrictions: disks and claims that only one pod may use at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from allot.api.identities import ObjectKey
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import (
    ASSIGNED_POD,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
)
from allot.scheduler.framework.plugins import (
    PRE_FILTER_SKIP,
    PRE_FILTER_SUCCESS,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
)
from allot.scheduler.framework.status import SUCCESS, Status, unresolvable, unschedulable
from allot.scheduler.plugins.volume_binding import uses_claim
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.volumes import READ_WRITE_ONCE_POD, VolumeState

DISK_CONFLICT: Final = unschedulable("node(s) had no available disk")
CLAIM_IN_USE: Final = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


@dataclass
class RestrictedClaims:
    """The pod's ReadWriteOncePod claims, and how many other pods use them."""

    keys: frozenset[tuple[str, str]]
    uses: int

    def clone(self) -> RestrictedClaims:
        return RestrictedClaims(self.keys, self.uses)

    def count(self, other: PodInfo, change: int) -> None:
        for ref in other.volume_claims:
            if (other.namespace, ref.name) in self.keys:
                self.uses += change


class VolumeRestrictions(PreFilterPlugin, FilterPlugin):
    """Filters by inline disks and ReadWriteOncePod claims."""

    name = "VolumeRestrictions"
    filters_locally = False

    def __init__(self, volumes: VolumeState) -> None:
        self._volumes = volumes

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        restricted = set()
        for ref in pod.volume_claims:
            claim = self._volumes.claims.get(ObjectKey(pod.namespace, ref.name))
            if claim is None:
                reason = f'persistentvolumeclaim "{ref.name}" not found'
                return PreFilterResult(unresolvable(reason))
            if READ_WRITE_ONCE_POD in claim.access_modes:
                restricted.add((pod.namespace, ref.name))
        if not restricted and not pod.inline_disks:
            return PRE_FILTER_SKIP
        uses = sum(cluster.volume_claim_uses.get(key, 0) for key in restricted)
        state[self.name] = RestrictedClaims(frozenset(restricted), uses)
        return PRE_FILTER_SUCCESS

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        state[self.name].count(other, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        state[self.name].count(other, -1)

    def may_reject(self, pod: PodInfo) -> bool:
        return bool(pod.volume_claims or pod.inline_disks)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if pod.inline_disks and _has_disk_conflict(pod, node):
            return DISK_CONFLICT
        return CLAIM_IN_USE if state[self.name].uses > 0 else SUCCESS

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        gone = ClusterEvent(ASSIGNED_POD, Action.DELETE)
        claims = ClusterEvent(PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE)
        return (
            EventRegistration(gone, _frees_volume),
            EventRegistration(ClusterEvent(NODE, Action.ADD)),
            EventRegistration(claims, uses_claim),
        )


def _has_disk_conflict(pod: PodInfo, node: NodeInfo) -> bool:
    return any(
        mine.conflicts_with(theirs)
        for other in node.pods.values()
        for theirs in other.inline_disks
        for mine in pod.inline_disks
    )


def _frees_volume(pod: PodInfo, old: PodInfo | None, _new: PodInfo | None) -> Hint:
    if old is None:
        return Hint.SKIP
    if old.namespace == pod.namespace and set(old.volume_claims) & set(pod.volume_claims):
        return Hint.QUEUE
    freed = any(
        mine.conflicts_with(theirs) for mine in pod.inline_disks for theirs in old.inline_disks
    )
    return Hint.QUEUE if freed else Hint.SKIP
