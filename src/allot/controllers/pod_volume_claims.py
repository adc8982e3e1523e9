"""The claims for volumes that pods refer to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject

BY_CLAIM: Final = "claims for volumes"
"""The index of pods by all their claims."""


def volume_claims(pod: Pod) -> Iterator[ObjectKey]:
    """All claims of a pod, those of its ephemeral volumes included."""
    namespace, name = pod.key
    for volume in pod.volumes:
        if source := volume.get("persistentVolumeClaim"):
            yield ObjectKey(namespace, source.get("claimName") or "")
        elif volume.get("ephemeral"):
            yield ObjectKey(namespace, ephemeral_claim_name(name, volume.get("name") or ""))


def claim_index(pod: Pod) -> tuple[str, ...]:
    """The function of the index `BY_CLAIM`."""
    return tuple(map(str, volume_claims(pod)))


def ephemeral_claim_name(pod: str, volume: str) -> str:
    return f"{pod}-{volume}"


def refers_to(pod: Pod, claim: RawObject) -> bool:
    """Whether the claim is for a volume of the pod. One of another owner with the name of an ephemeral volume is not."""
    if claim.key not in volume_claims(pod):
        return False
    sources = (each.get("persistentVolumeClaim") for each in pod.volumes)
    if any(source and source.get("claimName") == claim.metadata.name for source in sources):
        return True
    return is_owned_by(claim, pod)


def is_owned_by(claim: RawObject, pod: Pod) -> bool:
    return any(owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)
