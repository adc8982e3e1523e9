"""Volumes and claims for volumes: their finalizers and annotations, and the default storage class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from allot.api.raw import RawObject

PVC_PROTECTION: Final = "kubernetes.io/pvc-protection"
PV_PROTECTION: Final = "kubernetes.io/pv-protection"

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""On a claim: it was bound."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""On a claim or a volume: a controller chose the other side, and may undo that."""
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
"""On a volume: the provisioner that made it, and that deletes it."""
PROVISIONERS: Final = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
"""On a claim: the provisioner that is asked for a volume."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""On a claim: the node that a volume is provisioned for."""
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
"""The storage class, in place of the field."""
DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


def names_no_class(claim: RawObject) -> bool:
    """Whether it leaves the class open. An empty name asks for volumes without a class."""
    return (
        claim.get("spec", "storageClassName") is None
        and CLASS_ANNOTATION not in claim.metadata.annotations
    )


def default_class(classes: Iterable[RawObject]) -> RawObject | None:
    """The newest of the classes that are marked as default."""
    marked = [
        each
        for each in classes
        if any(each.metadata.annotations.get(key) == "true" for key in DEFAULT_CLASS)
    ]
    marked.sort(key=lambda each: each.metadata.name)
    marked.sort(key=lambda each: each.get("metadata", "creationTimestamp") or "", reverse=True)
    return marked[0] if marked else None
