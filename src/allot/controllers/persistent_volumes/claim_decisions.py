"""What happens to a claim for a volume: bound, provisioned, pending with a reason, or lost. No side effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from allot.api.raw import RawObject
from allot.api.volumes import (
    BIND_COMPLETED,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    names_no_class,
)
from allot.client.events import NORMAL, WARNING
from allot.controllers.persistent_volumes.matching import (
    best_volume,
    claim_of,
    class_of,
    is_meant_for,
    mismatch,
)

IN_TREE = "kubernetes.io/"
"""The prefix of provisioners that were part of Kubernetes; none of them is left."""


class EventText(NamedTuple):
    type: str
    reason: str
    message: str


class Bind(NamedTuple):
    """The claim gets this volume, or has it already."""

    volume: RawObject


class Wait(NamedTuple):
    """The claim stays pending."""

    event: EventText | None = None


class Provision(NamedTuple):
    """The claim waits for an external provisioner."""

    provisioner: str

    @property
    def event(self) -> EventText:
        return EventText(
            NORMAL,
            "ExternalProvisioning",
            "Waiting for a volume to be created either by the external provisioner"
            f" '{self.provisioner}' or manually by the system administrator. If volume creation is"
            " delayed, please verify that the provisioner is running and correctly registered.",
        )


class UseDefaultClass(NamedTuple):
    """The claim named no class, and there is a default one by now."""

    name: str


class Lost(NamedTuple):
    """The volume of a bound claim is gone."""

    event: EventText


ClaimDecision = Bind | Wait | Provision | UseDefaultClass | Lost


class VolumeListers(NamedTuple):
    """What a decision about a claim reads."""

    volume: Callable[[str], RawObject | None]
    candidates: Callable[[RawObject], Iterable[RawObject]]
    """Volumes of the claim's class, and those that are meant for it."""
    storage_class: Callable[[str], RawObject | None]
    default_class: Callable[[], RawObject | None]
    unscheduled_pods: Callable[[RawObject], Sequence[str]]
    """The names of pods that use the claim and have no node."""


def decide_claim(claim: RawObject, listers: VolumeListers) -> ClaimDecision:
    name = claim.get("spec", "volumeName") or ""
    if BIND_COMPLETED in claim.metadata.annotations:
        return _bound(claim, name, listers)
    if claim.metadata.deletion_timestamp is not None:
        return Wait()
    if name:
        return _requested(claim, listers.volume(name))
    return _unbound(claim, listers)


def _bound(claim: RawObject, name: str, listers: VolumeListers) -> ClaimDecision:
    if not name:
        return _lost("ClaimLost", "Bound claim has lost reference to PersistentVolume.")
    volume = listers.volume(name)
    if volume is None:
        return _lost("ClaimLost", "Bound claim has lost its PersistentVolume.")
    if claim_of(volume) is None or volume.get("spec", "claimRef", "uid") == claim.metadata.uid:
        return Bind(volume)
    text = "Two claims are bound to the same volume, this one is bound incorrectly"
    return Lost(EventText(WARNING, "ClaimMisbound", text))


def _lost(reason: str, text: str) -> Lost:
    return Lost(EventText(WARNING, reason, f"{text} Data on the volume is lost!"))


def _requested(claim: RawObject, volume: RawObject | None) -> ClaimDecision:
    """A claim that names its volume, or a volume that was chosen and is not written completely."""
    if volume is None:
        return Wait()
    name = volume.metadata.name
    if claim_of(volume) is None:
        problem = mismatch(claim, volume)
        if problem:
            text = f'Cannot bind to requested volume "{name}": {problem}'
            return Wait(EventText(WARNING, "VolumeMismatch", text))
        return Bind(volume)
    if is_meant_for(volume, claim):
        return Bind(volume)
    text = f'volume "{name}" already bound to a different claim.'
    return Wait(EventText(WARNING, "FailedBinding", text))


def _unbound(claim: RawObject, listers: VolumeListers) -> ClaimDecision:
    class_name = class_of(claim)
    storage_class = listers.storage_class(class_name) if class_name else None
    waits = (
        storage_class is not None
        and storage_class.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
        and SELECTED_NODE not in claim.metadata.annotations
    )
    volume = best_volume(claim, listers.candidates(claim), only_meant=waits)
    if volume is not None:
        return Bind(volume)
    if waits:
        return Wait(_waiting_for_pods(listers.unscheduled_pods(claim)))
    if not class_name:
        default = listers.default_class() if names_no_class(claim) else None
        if default is not None:
            return UseDefaultClass(default.metadata.name)
        text = "no persistent volumes available for this claim and no storage class is set"
        return Wait(EventText(NORMAL, "FailedBinding", text))
    if storage_class is None:
        text = f'storageclass.storage.k8s.io "{class_name}" not found'
        return Wait(EventText(WARNING, "ProvisioningFailed", text))
    provisioner = storage_class.get("provisioner") or ""
    if provisioner.startswith(IN_TREE):
        text = f"no volume plugin matched name: {provisioner}"
        return Wait(EventText(WARNING, "ProvisioningFailed", text))
    return Provision(provisioner)


def _waiting_for_pods(pods: Sequence[str]) -> EventText:
    if pods:
        text = f"waiting for pod {','.join(pods)} to be scheduled"
        return EventText(NORMAL, "WaitForPodScheduled", text)
    text = "waiting for first consumer to be created before binding"
    return EventText(NORMAL, "WaitForFirstConsumer", text)
