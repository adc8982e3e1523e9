"""NodeVolumeLimits: the limit of attached volumes per node and CSI driver."""

from __future__ import annotations

from typing import Final

from allot.api.identities import ObjectKey
from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import (
    ASSIGNED_POD,
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    VOLUME_ATTACHMENT,
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
from allot.scheduler.framework.status import SUCCESS, Status, unschedulable
from allot.scheduler.plugins.volume_binding import uses_claim
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.volumes import CsiVolume, VolumeState

TOO_MANY: Final = unschedulable("node(s) exceed max volume count")


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """Filters by the limits in CSINode. A volume counts once per node, however many pods use it."""

    name = "NodeVolumeLimits"
    filters_locally = False

    def __init__(self, volumes: VolumeState) -> None:
        self._volumes = volumes

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> PreFilterResult:
        if not pod.volume_claims or not self._volumes.limits_by_node:
            return PRE_FILTER_SKIP
        wanted = {
            volume
            for ref in pod.volume_claims
            if (volume := self._csi_volume(ObjectKey(pod.namespace, ref.name))) is not None
        }
        if not wanted:
            return PRE_FILTER_SKIP
        state[self.name] = wanted
        return PRE_FILTER_SUCCESS

    def may_reject(self, pod: PodInfo) -> bool:
        return bool(pod.volume_claims)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        limits = self._volumes.limits_by_node.get(node.name)
        if not limits:
            return SUCCESS
        attached = self._attached_to(node)
        added: set[CsiVolume] = state[self.name] - attached
        for driver in {volume.driver for volume in added}:
            limit = limits.get(driver)
            if limit is not None:
                total = sum(one.driver == driver for one in attached | added)
                if total > limit:
                    return TOO_MANY
        return SUCCESS

    def _attached_to(self, node: NodeInfo) -> set[CsiVolume]:
        attached = set()
        for namespace, name in node.volume_claim_uses:
            volume = self._csi_volume(ObjectKey(namespace, name))
            if volume is not None:
                attached.add(volume)
        for attachment in self._volumes.attachments_on(node.name):
            info = self._volumes.volumes.get(attachment.volume_name)
            if info is not None and info.csi is not None:
                attached.add(info.csi)
        return attached

    def _csi_volume(self, key: ObjectKey) -> CsiVolume | None:
        """The volume of a claim; for one that is not provisioned yet, a unique name."""
        claim = self._volumes.claims.get(key)
        if claim is None:
            return None
        if claim.volume_name:
            volume = self._volumes.volumes.get(claim.volume_name)
            if volume is not None:
                return volume.csi
        storage_class = self._volumes.classes.get(claim.class_name)
        if storage_class is None:
            return None
        return CsiVolume(storage_class.provisioner, f"{storage_class.provisioner}-{key}")

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        return (
            EventRegistration(ClusterEvent(CSI_NODE, Action.ADD | Action.UPDATE)),
            EventRegistration(ClusterEvent(ASSIGNED_POD, Action.DELETE), _had_volumes),
            EventRegistration(
                ClusterEvent(PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE), uses_claim
            ),
            EventRegistration(ClusterEvent(VOLUME_ATTACHMENT, Action.DELETE)),
        )


def _had_volumes(_pod: PodInfo, old: PodInfo | None, _new: PodInfo | None) -> Hint:
    return Hint.QUEUE if old is not None and old.volume_claims else Hint.SKIP
