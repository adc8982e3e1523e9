"""Which volume a claim gets: one that is meant for it, or the smallest of those that fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from allot.api.identities import ObjectKey
from allot.api.quantity import Quantity, quantity_from_json
from allot.api.raw import RawObject
from allot.api.selectors import selects_labels
from allot.api.volumes import CLASS_ANNOTATION


def class_of(obj: RawObject) -> str:
    """The storage class of a claim or a volume."""
    annotated = obj.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated or obj.get("spec", "storageClassName") or ""


def claim_of(volume: RawObject) -> ObjectKey | None:
    """The claim that a volume is bound to, or meant for."""
    reference: Mapping[str, Any] | None = volume.get("spec", "claimRef")
    if not reference:
        return None
    return ObjectKey(reference.get("namespace") or "", reference.get("name") or "")


def is_meant_for(volume: RawObject, claim: RawObject) -> bool:
    uid = volume.get("spec", "claimRef", "uid") or ""
    return claim_of(volume) == claim.key and uid in ("", claim.metadata.uid)


def mismatch(claim: RawObject, volume: RawObject) -> str:
    """Why a claim cannot have the volume that it names; empty if it can."""
    if _size(volume, "capacity") < _size(claim, "resources", "requests"):
        return "requested PV is too small"
    if class_of(claim) != class_of(volume):
        return "storageClassName does not match"
    if _attributes_class(claim) != _attributes_class(volume):
        return "volumeAttributesClassName does not match"
    if _mode(claim) != _mode(volume):
        return "incompatible volumeMode"
    if not _access_modes(claim) <= _access_modes(volume):
        return "incompatible accessMode"
    return ""


def best_volume(
    claim: RawObject, volumes: Iterable[RawObject], *, only_meant: bool = False
) -> RawObject | None:
    """The volume for a claim that names none.

    As in Kubernetes, volumes with fewer access modes are taken first, and of those the smallest. `only_meant`: the
    scheduler chooses among the others when a pod needs the claim.
    """
    fitting = [
        volume
        for volume in volumes
        if (is_meant_for(volume, claim) if only_meant else _is_free_for(volume, claim))
        and _fits(volume, claim)
    ]
    return min(fitting, key=lambda volume: _preference(volume, claim), default=None)


def _preference(volume: RawObject, claim: RawObject) -> tuple[Any, ...]:
    modes = sorted(_access_modes(volume))
    is_other = not is_meant_for(volume, claim)
    return len(modes), modes, is_other, _size(volume, "capacity"), volume.metadata.name


def _is_free_for(volume: RawObject, claim: RawObject) -> bool:
    if is_meant_for(volume, claim):
        return True
    return (
        claim_of(volume) is None
        and volume.get("status", "phase") == "Available"
        and class_of(volume) == class_of(claim)
        and _is_selected(volume, claim.get("spec", "selector"))
    )


def _is_selected(volume: RawObject, selector: Mapping[str, Any] | None) -> bool:
    return selector is None or selects_labels(selector, volume.metadata.labels)


def _fits(volume: RawObject, claim: RawObject) -> bool:
    return (
        volume.metadata.deletion_timestamp is None
        and not _size(volume, "capacity") < _size(claim, "resources", "requests")
        and _attributes_class(volume) == _attributes_class(claim)
        and _mode(volume) == _mode(claim)
        and _access_modes(claim) <= _access_modes(volume)
    )


def _size(obj: RawObject, *path: str) -> Quantity:
    return quantity_from_json(obj.get("spec", *path, "storage") or "0")


def _attributes_class(obj: RawObject) -> str:
    return obj.get("spec", "volumeAttributesClassName") or ""


def _mode(obj: RawObject) -> str:
    return obj.get("spec", "volumeMode") or "Filesystem"


def _access_modes(obj: RawObject) -> frozenset[str]:
    return frozenset(obj.get("spec", "accessModes") or ())
