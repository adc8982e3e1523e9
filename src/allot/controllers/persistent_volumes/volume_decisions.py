"""What happens to a volume: available, bound, released, reclaimed. No side effects."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from allot.api.base import replace
from allot.api.raw import RawObject
from allot.api.volumes import BOUND_BY_CONTROLLER, PROVISIONED_BY

AVAILABLE: Final = "Available"
BOUND: Final = "Bound"
RELEASED: Final = "Released"
FAILED: Final = "Failed"
_DELETABLE_PATH: Final = re.compile(r"/tmp/.+")  # noqa: S108 - Kubernetes' own rule


class SetPhase(NamedTuple):
    phase: str


class Unbind(NamedTuple):
    """The claim has another volume, or the volume was recycled."""

    volume: RawObject
    is_recycled: bool = False


class Delete(NamedTuple):
    """The volume was released, and is to be deleted with its claim."""


class Fail(NamedTuple):
    """It should be deleted and cannot be."""

    message: str


VolumeDecision = SetPhase | Unbind | Delete | Fail | None


def decide_volume(volume: RawObject, claim: RawObject | None) -> VolumeDecision:
    """`claim` is the one that the volume refers to, None if it is gone or was replaced by another one."""
    reference = volume.get("spec", "claimRef")
    if not reference:
        return SetPhase(AVAILABLE)
    if not reference.get("uid"):
        return SetPhase(AVAILABLE)  # meant for a claim that does not have it yet
    if claim is None:
        phase = volume.get("status", "phase")
        return reclaim(volume) if phase in (RELEASED, FAILED) else SetPhase(RELEASED)
    bound_to = claim.get("spec", "volumeName") or ""
    if not bound_to:
        return None  # what is decided about the claim comes first
    if bound_to == volume.metadata.name:
        return SetPhase(BOUND)
    if PROVISIONED_BY in volume.metadata.annotations and _policy(volume) == "Delete":
        phase = volume.get("status", "phase")
        return reclaim(volume) if phase in (RELEASED, FAILED) else SetPhase(RELEASED)
    return Unbind(unbound(volume))


def reclaim(volume: RawObject) -> VolumeDecision:
    """What the reclaim policy asks for, of a released volume."""
    match _policy(volume):
        case "Recycle":  # simulated volumes hold no data that would have to be removed
            return Unbind(unbound(volume), is_recycled=True)
        case "Delete":
            if volume.get("status", "phase") == FAILED:
                return None
            if PROVISIONED_BY in volume.metadata.annotations or volume.get("spec", "csi"):
                return None  # its provisioner deletes it
            return _deletion(volume)
        case _:
            return None


def _deletion(volume: RawObject) -> VolumeDecision:
    path = volume.get("spec", "hostPath", "path")
    if path is None:
        name = volume.metadata.name
        return Fail(
            f'error getting deleter volume plugin for volume "{name}": no deletable volume plugin matched'
        )
    if not _DELETABLE_PATH.match(path):
        return Fail(f"host_path deleter only supports /tmp/.+ but received provided {path}")
    return Delete()


def unbound(volume: RawObject) -> RawObject:
    """The volume without its claim, or if that was not a controller's choice, still meant for it."""
    metadata = volume.metadata
    if BOUND_BY_CONTROLLER not in metadata.annotations:
        reference = dict(volume.get("spec", "claimRef", default={}))
        reference.pop("uid", None)
        return volume.with_value(reference, "spec", "claimRef")
    annotations = {
        key: value for key, value in metadata.annotations.items() if key != BOUND_BY_CONTROLLER
    }
    spec = {key: value for key, value in volume.get("spec").items() if key != "claimRef"}
    return volume.with_value(spec, "spec").with_metadata(replace(metadata, annotations=annotations))


def _policy(volume: RawObject) -> str:
    return volume.get("spec", "persistentVolumeReclaimPolicy") or "Retain"
