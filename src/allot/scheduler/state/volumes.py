"""Volumes: claims, volumes, classes and CSI objects, and what the scheduler has assumed about them.

Assumptions are kept apart from the objects of the API, so that no event in between can undo them: a volume
that is reserved for a claim, and the node that a claim's volume is provisioned for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.selectors import (
    LabelSelector,
    NodeSelection,
    NodeTerm,
    Requirement,
    label_selector,
    node_selection,
)
from allot.api.volumes import BIND_COMPLETED, CLASS_ANNOTATION, SELECTED_NODE
from allot.scheduler.state.resources import read_amounts

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"


class CsiVolume(NamedTuple):
    """A volume as its CSI driver knows it."""

    driver: str
    handle: str


class VolumeClaimInfo(Struct, frozen=True, eq=False):
    """A PersistentVolumeClaim."""

    object: RawObject
    key: ObjectKey
    uid: str
    volume_name: str
    is_bound: bool
    is_lost: bool
    is_terminating: bool
    class_name: str
    access_modes: frozenset[str]
    volume_mode: str
    attributes_class: str
    request_bytes: int
    selector: LabelSelector | None
    """None if the claim accepts any volume."""
    selected_node: str
    owner_uids: frozenset[str]

    @classmethod
    def of(cls, claim: RawObject) -> VolumeClaimInfo:
        meta: Mapping[str, Any] = claim.data.get("metadata") or {}
        spec: Mapping[str, Any] = claim.data.get("spec") or {}
        annotations: Mapping[str, str] = meta.get("annotations") or {}
        volume_name = spec.get("volumeName") or ""
        requests = read_amounts((spec.get("resources") or {}).get("requests"))
        return cls(
            object=claim,
            key=claim.key,
            uid=meta.get("uid") or "",
            volume_name=volume_name,
            is_bound=bool(volume_name) and BIND_COMPLETED in annotations,
            is_lost=(claim.data.get("status") or {}).get("phase") == "Lost",
            is_terminating=meta.get("deletionTimestamp") is not None,
            class_name=annotations.get(CLASS_ANNOTATION) or spec.get("storageClassName") or "",
            access_modes=frozenset(spec.get("accessModes") or ()),
            volume_mode=spec.get("volumeMode") or "Filesystem",
            attributes_class=spec.get("volumeAttributesClassName") or "",
            request_bytes=requests.get("storage", 0),
            selector=label_selector(spec.get("selector")),
            selected_node=annotations.get(SELECTED_NODE) or "",
            owner_uids=frozenset(
                owner.get("uid", "")
                for owner in meta.get("ownerReferences") or ()
                if owner.get("controller")
            ),
        )


class VolumeInfo(Struct, frozen=True, eq=False):
    """A PersistentVolume."""

    object: RawObject
    name: str
    labels: Mapping[str, str]
    class_name: str
    capacity_bytes: int
    access_modes: frozenset[str]
    volume_mode: str
    attributes_class: str
    nodes: NodeSelection | None
    """None if it can be used anywhere."""
    claim: ObjectKey | None
    claim_uid: str
    phase: str
    is_terminating: bool
    csi: CsiVolume | None

    def is_reachable_from(self, name: str, labels: Mapping[str, str]) -> bool:
        return self.nodes is None or self.nodes.matches(name, labels)

    @classmethod
    def of(cls, volume: RawObject) -> VolumeInfo:
        meta: Mapping[str, Any] = volume.data.get("metadata") or {}
        spec: Mapping[str, Any] = volume.data.get("spec") or {}
        ref: Mapping[str, Any] | None = spec.get("claimRef")
        csi = spec.get("csi")
        annotations = meta.get("annotations") or {}
        return cls(
            object=volume,
            name=meta.get("name") or "",
            labels=meta.get("labels") or {},
            class_name=annotations.get(CLASS_ANNOTATION) or spec.get("storageClassName") or "",
            capacity_bytes=read_amounts(spec.get("capacity")).get("storage", 0),
            access_modes=frozenset(spec.get("accessModes") or ()),
            volume_mode=spec.get("volumeMode") or "Filesystem",
            attributes_class=spec.get("volumeAttributesClassName") or "",
            nodes=node_selection((spec.get("nodeAffinity") or {}).get("required")),
            claim=ObjectKey(ref.get("namespace") or "", ref.get("name") or "") if ref else None,
            claim_uid=(ref or {}).get("uid") or "",
            phase=(volume.data.get("status") or {}).get("phase") or "",
            is_terminating=meta.get("deletionTimestamp") is not None,
            csi=CsiVolume(csi.get("driver") or "", csi.get("volumeHandle") or "") if csi else None,
        )


class StorageClassInfo(Struct, frozen=True):
    """A StorageClass."""

    name: str
    provisioner: str
    binding_mode: str
    topologies: NodeSelection | None
    """Where volumes can be provisioned; None: anywhere."""

    @classmethod
    def of(cls, storage_class: RawObject) -> StorageClassInfo:
        data = storage_class.data
        allowed = data.get("allowedTopologies") or ()
        return cls(
            name=(data.get("metadata") or {}).get("name") or "",
            provisioner=data.get("provisioner") or "",
            binding_mode=data.get("volumeBindingMode") or "Immediate",
            topologies=NodeSelection(tuple(map(_topology_term, allowed))) if allowed else None,
        )


def _topology_term(raw: Mapping[str, Any]) -> NodeTerm:
    return NodeTerm(
        tuple(
            Requirement(one.get("key") or "", "In", frozenset(one.get("values") or ()))
            for one in raw.get("matchLabelExpressions") or ()
        )
    )


class StorageCapacityInfo(Struct, frozen=True):
    """A CSIStorageCapacity: the size of volumes of a class that can be provisioned on some nodes."""

    class_name: str
    largest_bytes: int
    nodes: LabelSelector | None

    @classmethod
    def of(cls, capacity: RawObject) -> StorageCapacityInfo:
        data = capacity.data
        amounts = read_amounts(
            {name: data[name] for name in ("capacity", "maximumVolumeSize") if data.get(name)}
        )
        largest = amounts.get("maximumVolumeSize", amounts.get("capacity", 0))
        return cls(
            data.get("storageClassName") or "", largest, label_selector(data.get("nodeTopology"))
        )


class Attachment(NamedTuple):
    """A VolumeAttachment: a volume that is, or is being, attached to a node."""

    node_name: str
    driver: str
    volume_name: str


class VolumeState:
    """The state of all volumes."""

    def __init__(self) -> None:
        self.claims: dict[ObjectKey, VolumeClaimInfo] = {}
        self.volumes: dict[str, VolumeInfo] = {}
        self.classes: dict[str, StorageClassInfo] = {}
        self.capacities: dict[ObjectKey, StorageCapacityInfo] = {}
        self.drivers_with_capacity: set[str] = set()
        """CSI drivers that publish storage capacity."""
        self.limits_by_node: dict[str, dict[str, int]] = {}
        """The attach limit, by node and driver."""
        self.reserved_volumes: dict[str, ObjectKey] = {}
        """Volumes that are reserved for a claim and not bound yet."""
        self.selected_nodes: dict[ObjectKey, str] = {}
        """By claim: the node that a volume is about to be provisioned for."""
        self._attachments: dict[str, Attachment] = {}
        self._volumes_by_class: dict[str, dict[str, VolumeInfo]] = {}
        self._attachments_by_node: dict[str, dict[str, Attachment]] = {}

    # --- what the API server says ---

    def set_claim(self, claim: RawObject) -> None:
        info = VolumeClaimInfo.of(claim)
        self.claims[info.key] = info
        if info.selected_node or info.is_bound:
            self.selected_nodes.pop(info.key, None)

    def remove_claim(self, namespace: str, name: str) -> None:
        self.claims.pop(ObjectKey(namespace, name), None)

    def set_volume(self, volume: RawObject) -> None:
        info = VolumeInfo.of(volume)
        self.remove_volume(info.name)
        self.volumes[info.name] = info
        self._volumes_by_class.setdefault(info.class_name, {})[info.name] = info
        if info.claim is not None:
            self.reserved_volumes.pop(info.name, None)

    def remove_volume(self, name: str) -> None:
        info = self.volumes.pop(name, None)
        if info is not None:
            del self._volumes_by_class[info.class_name][name]

    def set_class(self, storage_class: RawObject) -> None:
        info = StorageClassInfo.of(storage_class)
        self.classes[info.name] = info

    def remove_class(self, name: str) -> None:
        self.classes.pop(name, None)

    def set_capacity(self, capacity: RawObject) -> None:
        self.capacities[capacity.key] = StorageCapacityInfo.of(capacity)

    def remove_capacity(self, namespace: str, name: str) -> None:
        self.capacities.pop(ObjectKey(namespace, name), None)

    def set_csi_driver(self, driver: RawObject) -> None:
        if driver.get("spec", "storageCapacity", default=False):
            self.drivers_with_capacity.add(driver.metadata.name)
        else:
            self.drivers_with_capacity.discard(driver.metadata.name)

    def remove_csi_driver(self, name: str) -> None:
        self.drivers_with_capacity.discard(name)

    def set_csi_node(self, csi_node: RawObject) -> None:
        self.limits_by_node[csi_node.metadata.name] = {
            driver.get("name", ""): driver["allocatable"]["count"]
            for driver in csi_node.get("spec", "drivers", default=())
            if (driver.get("allocatable") or {}).get("count") is not None
        }

    def remove_csi_node(self, name: str) -> None:
        self.limits_by_node.pop(name, None)

    def set_attachment(self, attachment: RawObject) -> None:
        name = attachment.metadata.name
        self.remove_attachment(name)
        info = Attachment(
            attachment.get("spec", "nodeName", default=""),
            attachment.get("spec", "attacher", default=""),
            attachment.get("spec", "source", "persistentVolumeName", default=""),
        )
        self._attachments[name] = info
        self._attachments_by_node.setdefault(info.node_name, {})[name] = info

    def remove_attachment(self, name: str) -> None:
        info = self._attachments.pop(name, None)
        if info is not None:
            del self._attachments_by_node[info.node_name][name]

    # --- questions ---

    def volumes_of_class(self, class_name: str) -> Iterator[VolumeInfo]:
        yield from self._volumes_by_class.get(class_name, {}).values()

    def attachments_on(self, node_name: str) -> Iterator[Attachment]:
        yield from self._attachments_by_node.get(node_name, {}).values()

    def holder_of(self, volume: VolumeInfo) -> ObjectKey | None:
        """The claim that has the volume, or will have it."""
        return volume.claim or self.reserved_volumes.get(volume.name)

    def selected_node_of(self, claim: VolumeClaimInfo) -> str:
        return self.selected_nodes.get(claim.key) or claim.selected_node
