"""Which volumes a pod's claims get on a node. No side effects.

A claim of a WaitForFirstConsumer class is bound when its first pod is scheduled: to the smallest volume
that fits and is usable on the node, or to one that is provisioned for the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.volumes import (
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
)
from allot.scheduler.framework.status import Status, unresolvable
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.volumes import (
    StorageClassInfo,
    VolumeClaimInfo,
    VolumeInfo,
    VolumeState,
)

UNBOUND_IMMEDIATE: Final = unresolvable("pod has unbound immediate PersistentVolumeClaims")
OUT_OF_REACH: Final = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND: Final = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_STORAGE: Final = "node(s) did not have enough free storage"
VOLUME_MISSING: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


class PodVolumes(NamedTuple):
    """A pod's claims: bound ones, and those to bind, smallest first."""

    bound: tuple[VolumeClaimInfo, ...]
    to_bind: tuple[VolumeClaimInfo, ...]
    candidates: tuple[tuple[VolumeInfo, ...], ...]
    """For each claim to be bound, the volumes it could get on some node, best first."""


class BindingPlan(NamedTuple):
    """What is written when the pod is scheduled to a node."""

    bindings: tuple[tuple[VolumeClaimInfo, VolumeInfo], ...] = ()
    provisions: tuple[VolumeClaimInfo, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.bindings or self.provisions)


def find_claims(pod: PodInfo, volumes: VolumeState) -> list[VolumeClaimInfo] | Status:
    """The pod's PersistentVolumeClaims, or why they cannot be used yet."""
    found = []
    for ref in pod.volume_claims:
        claim = volumes.claims.get(ObjectKey(pod.namespace, ref.name))
        if claim is None:
            if ref.is_ephemeral:
                return unresolvable(
                    f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{ref.name}"'
                )
            return unresolvable(f'persistentvolumeclaim "{ref.name}" not found')
        if claim.is_terminating:
            return unresolvable(f'persistentvolumeclaim "{ref.name}" is being deleted')
        if claim.is_lost:
            return unresolvable(
                f'persistentvolumeclaim "{ref.name}" bound to non-existent persistentvolume "{claim.volume_name}"'
            )
        if ref.is_ephemeral and pod.uid not in claim.owner_uids:
            return unresolvable(
                f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
            )
        found.append(claim)
    return found


def sort_claims(pod: PodInfo, volumes: VolumeState) -> PodVolumes | Status:
    """The pod's claims, bound and to bind, or why the pod fits on no node."""
    claims = find_claims(pod, volumes)
    if isinstance(claims, Status):
        return claims
    bound, to_bind = [], []
    for claim in claims:
        if claim.is_bound:
            bound.append(claim)
            continue
        storage_class = volumes.classes.get(claim.class_name)
        if claim.class_name and storage_class is None and not claim.volume_name:
            return unresolvable(f'storageclass.storage.k8s.io "{claim.class_name}" not found')
        waits = storage_class is not None and storage_class.binding_mode == WAIT_FOR_FIRST_CONSUMER
        if not waits or claim.volume_name:
            return UNBOUND_IMMEDIATE
        to_bind.append(claim)
    to_bind.sort(key=lambda claim: claim.request_bytes)
    candidates = tuple(tuple(matching_volumes(claim, volumes)) for claim in to_bind)
    return PodVolumes(tuple(bound), tuple(to_bind), candidates)


def matching_volumes(claim: VolumeClaimInfo, volumes: VolumeState) -> Iterable[VolumeInfo]:
    """Volumes the claim could be bound to: those meant for it first, then from small to large."""

    def fits(volume: VolumeInfo) -> bool:
        holder = volumes.holder_of(volume)
        if holder is not None:
            ours = holder == claim.key and volume.claim_uid in ("", claim.uid)
            available = ours
        else:
            available = volume.phase in ("", "Available")
        return (
            available
            and not volume.is_terminating
            and volume.capacity_bytes >= claim.request_bytes
            and volume.volume_mode == claim.volume_mode
            and volume.attributes_class == claim.attributes_class
            and claim.access_modes <= volume.access_modes
            and (claim.selector is None or claim.selector.matches(volume.labels))
        )

    fitting = filter(fits, volumes.volumes_of_class(claim.class_name))
    return sorted(
        fitting,
        key=lambda one: (volumes.holder_of(one) is None, one.capacity_bytes, one.name),
    )


def plan_for_node(
    pod_volumes: PodVolumes, node: NodeInfo, volumes: VolumeState
) -> BindingPlan | tuple[str, ...]:
    """The decision for the claims on this node, or why the node does not fit."""
    reasons = list(_reasons_of_bound(pod_volumes.bound, node, volumes))
    if not pod_volumes.to_bind:
        return tuple(reasons) if reasons else _NOTHING_TO_DO
    bindings: list[tuple[VolumeClaimInfo, VolumeInfo]] = []
    provisions: list[VolumeClaimInfo] = []
    taken: set[str] = set()
    for claim, candidates in zip(pod_volumes.to_bind, pod_volumes.candidates, strict=True):
        selected = volumes.selected_node_of(claim)
        if selected and selected != node.name:
            reasons.append(NOTHING_TO_BIND)
            break
        volume = None
        if not selected:  # otherwise a volume is being provisioned
            volume = next(
                (
                    one
                    for one in candidates
                    if one.name not in taken and one.is_reachable_from(node.name, node.labels)
                ),
                None,
            )
        if volume is not None:
            taken.add(volume.name)
            bindings.append((claim, volume))
        else:
            provisions.append(claim)
    else:
        reason = next(_reasons_against_provisioning(provisions, node, volumes), None)
        if reason is not None:
            reasons.append(reason)
    return tuple(reasons) if reasons else BindingPlan(tuple(bindings), tuple(provisions))


_NOTHING_TO_DO: Final = BindingPlan()


def _reasons_of_bound(
    bound: Iterable[VolumeClaimInfo], node: NodeInfo, volumes: VolumeState
) -> Iterator[str]:
    for claim in bound:
        volume = volumes.volumes.get(claim.volume_name)
        if volume is None:
            yield VOLUME_MISSING
            return
        if not volume.is_reachable_from(node.name, node.labels):
            yield OUT_OF_REACH
            return


def _reasons_against_provisioning(
    claims: Iterable[VolumeClaimInfo], node: NodeInfo, volumes: VolumeState
) -> Iterator[str]:
    for claim in claims:
        storage_class = volumes.classes.get(claim.class_name)
        if (
            storage_class is None
            or storage_class.provisioner in ("", NO_PROVISIONER)
            or not _is_allowed_on(storage_class, node)
        ):
            yield NOTHING_TO_BIND
        elif not _has_storage(storage_class, claim.request_bytes, node, volumes):
            yield NOT_ENOUGH_STORAGE


def _is_allowed_on(storage_class: StorageClassInfo, node: NodeInfo) -> bool:
    allowed = storage_class.topologies
    return allowed is None or allowed.matches(node.name, node.labels)


def _has_storage(
    storage_class: StorageClassInfo, wanted_bytes: int, node: NodeInfo, volumes: VolumeState
) -> bool:
    """Whether the driver has capacity for the volume; true for drivers that publish no capacity."""
    if storage_class.provisioner not in volumes.drivers_with_capacity:
        return True
    return any(
        capacity.class_name == storage_class.name
        and capacity.largest_bytes >= wanted_bytes
        and capacity.nodes is not None
        and capacity.nodes.matches(node.labels)
        for capacity in volumes.capacities.values()
    )


# --- what is written, and when it is done ---


def volume_bound_to(volume: RawObject, claim: VolumeClaimInfo) -> RawObject:
    """The volume, reserved for the claim."""
    reference: dict[str, Any] = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": claim.key.namespace,
        "name": claim.key.name,
        "uid": claim.uid,
    }
    version = claim.object.get("metadata", "resourceVersion")
    if version:
        reference["resourceVersion"] = version
    bound = volume.with_value(reference, "spec", "claimRef")
    return bound.with_value("yes", "metadata", "annotations", BOUND_BY_CONTROLLER)


def claim_with_selected_node(claim: RawObject, node_name: str) -> RawObject:
    """The claim with this node as its selected node."""
    return claim.with_value(node_name, "metadata", "annotations", SELECTED_NODE)


class BindingFailedError(Exception):
    """The volumes cannot be bound; the pod needs another decision."""


def all_bound(plan: BindingPlan, node: NodeInfo, volumes: VolumeState) -> bool:
    """Whether everything that was written has taken effect.

    `BindingFailedError` if it never will.
    """
    for claim, volume in plan.bindings:
        current = volumes.volumes.get(volume.name)
        if current is None or current.claim != claim.key:
            raise BindingFailedError(f'ClaimRef got reset for pv "{volume.name}"')
    claims = [claim for claim, _ in plan.bindings] + list(plan.provisions)
    settled = [_is_settled(claim, plan, node, volumes) for claim in claims]  # each may fail
    return all(settled)


def _is_settled(
    claim: VolumeClaimInfo, plan: BindingPlan, node: NodeInfo, volumes: VolumeState
) -> bool:
    current = volumes.claims.get(claim.key)
    if current is None:
        raise BindingFailedError(f'persistentvolumeclaim "{claim.key.name}" not found')
    if current.is_bound:
        volume = volumes.volumes.get(current.volume_name)
        if volume is None:
            return False  # the claim's event came before the volume's
        if not volume.is_reachable_from(node.name, node.labels):
            raise BindingFailedError(
                f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}"'
            )
        return True
    if claim in plan.provisions and volumes.selected_node_of(current) != node.name:
        raise BindingFailedError(f'provisioning failed for PVC "{claim.key.name}"')
    return False
