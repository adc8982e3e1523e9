"""Both sides of a binding, as they are written: the volume first, then the claim."""

from __future__ import annotations

from typing import Any

from allot.api.base import replace
from allot.api.raw import RawObject
from allot.api.volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONERS
from allot.controllers.persistent_volumes.matching import claim_of, is_meant_for


def volume_bound_to(volume: RawObject, claim: RawObject) -> RawObject:
    """The volume, bound to the claim; the same object if it is."""
    reference = volume.get("spec", "claimRef") or {}
    if claim_of(volume) == claim.key and reference.get("uid") == claim.metadata.uid:
        return volume
    bound = volume.with_value(
        {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": claim.metadata.namespace,
            "name": claim.metadata.name,
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
        },
        "spec",
        "claimRef",
    )
    # Not of a volume that was meant for the claim: that stays if the claim is deleted.
    return bound if is_meant_for(volume, claim) else annotated(bound, BOUND_BY_CONTROLLER)


def claim_bound_to(claim: RawObject, volume: RawObject) -> RawObject:
    """The claim, bound to the volume; the same object if it is."""
    bound, name = claim, volume.metadata.name
    if (claim.get("spec", "volumeName") or "") != name:
        bound = annotated(claim.with_value(name, "spec", "volumeName"), BOUND_BY_CONTROLLER)
    return annotated(bound, BIND_COMPLETED)


def claim_with_provisioner(claim: RawObject, provisioner: str) -> RawObject:
    """The claim, with the provisioner that is to make a volume."""
    for annotation in PROVISIONERS:
        claim = annotated(claim, annotation, provisioner)
    return claim


def annotated(obj: RawObject, annotation: str, value: str = "yes") -> RawObject:
    """The object with the annotation; the same object if it has it."""
    annotations = obj.metadata.annotations
    if annotations.get(annotation) == value:
        return obj
    return obj.with_metadata(replace(obj.metadata, annotations={**annotations, annotation: value}))


def bound_status(claim: RawObject, volume: RawObject) -> dict[str, Any]:
    """The status of a claim that has the volume. A capacity stays: a volume that grows has to be resized first."""
    status: dict[str, Any] = {
        "phase": "Bound",
        "accessModes": volume.get("spec", "accessModes"),
        "currentVolumeAttributesClassName": volume.get("spec", "volumeAttributesClassName"),
    }
    if claim.get("status", "phase") != "Bound":
        storage = volume.get("spec", "capacity", "storage")
        status["capacity"] = None if storage is None else {"storage": storage}
    return status


LOST_STATUS: dict[str, Any] = {"phase": "Lost", "accessModes": None, "capacity": None}
