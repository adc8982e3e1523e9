"""VolumeZone: volumes with zone or region labels can be used in that zone or region only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.api.volumes import WAIT_FOR_FIRST_CONSUMER
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    Action,
    ClusterEvent,
    EventRegistration,
)
from allot.scheduler.framework.plugins import (
    PRE_FILTER_SKIP,
    PRE_FILTER_SUCCESS,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
)
from allot.scheduler.framework.status import SUCCESS, Status, unresolvable
from allot.scheduler.plugins.volume_binding import uses_claim
from allot.scheduler.state.affinity import REGION_LABEL, ZONE_LABEL
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.volumes import (
    VolumeClaimInfo,
    VolumeInfo,
    VolumeState,
)

WRONG_ZONE: Final = unresolvable("node(s) had no available volume zone")

CURRENT_LABEL: Final = {
    ZONE_LABEL: ZONE_LABEL,
    REGION_LABEL: REGION_LABEL,
    "failure-domain.beta.kubernetes.io/zone": ZONE_LABEL,
    "failure-domain.beta.kubernetes.io/region": REGION_LABEL,
}
"""Topology labels of volumes, with the current names of deprecated ones."""


class VolumeTopology(NamedTuple):
    """A topology label of a volume; it may have several values."""

    label: str
    values: frozenset[str]


class VolumeZone(PreFilterPlugin, FilterPlugin):
    """Filters by the topology labels of volumes."""

    name = "VolumeZone"
    filters_locally = False

    def __init__(self, volumes: VolumeState) -> None:
        self._volumes = volumes

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        topologies: list[VolumeTopology] = []
        for ref in pod.volume_claims:
            claim = self._volumes.claims.get(ObjectKey(pod.namespace, ref.name))
            if claim is None:
                reason = f'persistentvolumeclaim "{ref.name}" not found'
                return PreFilterResult(unresolvable(reason))
            volume = self._volume_of(claim)
            if isinstance(volume, Status):
                return PreFilterResult(volume)
            if volume is not None:
                topologies += _topologies(volume)
        if not topologies:
            return PRE_FILTER_SKIP
        state[self.name] = tuple(topologies)
        return PRE_FILTER_SUCCESS

    def may_reject(self, pod: PodInfo) -> bool:
        return bool(pod.volume_claims)

    def _volume_of(self, claim: VolumeClaimInfo) -> VolumeInfo | Status | None:
        """The claim's volume; None if it is not bound because of WaitForFirstConsumer."""
        if claim.volume_name:
            volume = self._volumes.volumes.get(claim.volume_name)
            if volume is None:
                return unresolvable(f'persistentvolume "{claim.volume_name}" not found')
            return volume
        if not claim.class_name:
            return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self._volumes.classes.get(claim.class_name)
        if storage_class is None:
            return unresolvable(f'storageclass.storage.k8s.io "{claim.class_name}" not found')
        if storage_class.binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return None
        return unresolvable("PersistentVolume had no name")

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        labels = node.labels
        if not any(label in labels for label in CURRENT_LABEL):
            return SUCCESS  # a cluster without zones
        for topology in state[self.name]:
            value = labels.get(topology.label) or labels.get(CURRENT_LABEL[topology.label])
            if value not in topology.values:
                return WRONG_ZONE
        return SUCCESS

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        changed = Action.ADD | Action.UPDATE
        return (
            EventRegistration(ClusterEvent(STORAGE_CLASS, Action.ADD)),
            EventRegistration(ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
            EventRegistration(ClusterEvent(PERSISTENT_VOLUME_CLAIM, changed), uses_claim),
            EventRegistration(ClusterEvent(PERSISTENT_VOLUME, changed)),
        )


def _topologies(volume: VolumeInfo) -> Iterator[VolumeTopology]:
    for label in CURRENT_LABEL:
        value = volume.labels.get(label)
        if value:
            yield VolumeTopology(label, frozenset(value.split("__")))
