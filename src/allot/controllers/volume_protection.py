"""Deleted volumes, and claims for volumes, stay until they are no longer used.

The API server gives new ones a finalizer; the controllers add it to older ones, and remove it from deleted ones that are
not used: from a claim when no pod that has a node refers to it, from a volume when it is not bound. A condition of bound
claims says whether pods refer to them, and since when not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar, Final

from allot.api.base import replace
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.volumes import PV_PROTECTION, PVC_PROTECTION
from allot.client.errors import ApiStatusError
from allot.client.options import Scope
from allot.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, Resource
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.pod_volume_claims import (
    BY_CLAIM,
    claim_index,
    is_owned_by,
    refers_to,
    volume_claims,
)
from allot.controllers.workloads.accessors import uid_of
from allot.controllers.workloads.conditions import ConditionUpdate, conditions_of, with_condition
from allot.controllers.workloads.status_writes import write_status

_UNUSED: Final = ConditionUpdate(
    "Unused", "True", "NoPodsUsingPVC", "No pods are currently referencing this PVC"
)
_IN_USE: Final = ConditionUpdate(
    "Unused", "False", "PodUsingPVC", "A pod is currently referencing this PVC"
)


def unused_status(claim: RawObject, pods: Iterable[Pod], now: datetime) -> dict[str, Any]:
    """The condition of a bound claim that says whether pods refer to it."""
    is_unused = not any(refers_to(pod, claim) and not pod.is_finished for pod in pods)
    update = _UNUSED if is_unused else _IN_USE
    return {"conditions": list(with_condition(conditions_of(claim), update, now))}


def is_used(claim: RawObject, pod: Pod) -> bool:
    """Whether a pod protects the claim. The kubelet does not start a pod whose claim is deleted, so a pod without a
    node does not; claims for ephemeral volumes are not needed by a finished pod."""
    if not pod.node_name or not refers_to(pod, claim):
        return False
    return not (pod.is_finished and is_owned_by(claim, pod))


def with_finalizer(obj: RawObject, finalizer: str, *, is_wanted: bool) -> RawObject:
    """The object with or without the finalizer; the same object if nothing changes."""
    finalizers = obj.metadata.finalizers
    if (finalizer in finalizers) == is_wanted:
        return obj
    others = tuple(each for each in finalizers if each != finalizer)
    wanted = (*others, finalizer) if is_wanted else others
    return obj.with_metadata(replace(obj.metadata, finalizers=wanted))


class _ProtectionController(QueueController[ObjectKey]):
    """Adds and removes one finalizer."""

    resource: ClassVar[Resource[RawObject]]
    finalizer: ClassVar[str]

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._objects = context.informers.informer(self.resource)
        self._objects.add_handlers(
            on_add=self._object_changed, on_update=lambda _, new: self._object_changed(new)
        )

    def _object_changed(self, obj: RawObject) -> None:
        is_deleted = obj.metadata.deletion_timestamp is not None
        if (self.finalizer in obj.metadata.finalizers) == is_deleted:
            self.queue.add(obj.key)

    async def reconcile(self, key: ObjectKey) -> None:
        obj = self._objects.get(key)
        if obj is None:
            return
        is_deleted = obj.metadata.deletion_timestamp is not None
        if is_deleted and await self._is_used(obj):
            return  # queued again when it is used no more
        changed = with_finalizer(obj, self.finalizer, is_wanted=not is_deleted)
        if changed is obj:
            return
        try:
            await self.client.update(self.resource, changed)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise

    @abstractmethod
    async def _is_used(self, obj: RawObject) -> bool:
        """Whether a deleted object is still used."""


class PersistentVolumeClaimProtectionController(_ProtectionController):
    name = "persistentvolumeclaim-protection-controller"
    queue_name = "pvcprotection"
    resource = PERSISTENT_VOLUME_CLAIMS
    finalizer = PVC_PROTECTION

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._pods = context.informers.informer(PODS)
        self._pods.add_index(BY_CLAIM, claim_index)
        self._pods.add_handlers(
            self._pod_event, self._pod_changed, self._pod_event, needs=self._objects
        )

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if not old.volumes and not new.volumes:
            return
        if (uid_of(old), old.node_name, old.is_finished) != (
            uid_of(new),
            new.node_name,
            new.is_finished,
        ):
            self._pod_event(old)
            self._pod_event(new)

    def _pod_event(self, pod: Pod) -> None:
        for key in volume_claims(pod):
            self.queue.add(key)

    def _object_changed(self, obj: RawObject) -> None:
        super()._object_changed(obj)
        if obj.get("status", "phase") == "Bound":
            self.queue.add(obj.key)

    async def reconcile(self, key: ObjectKey) -> None:
        claim = self._objects.get(key)
        if claim is not None and claim.get("status", "phase") == "Bound":
            pods = self._pods.by_index(BY_CLAIM, str(key))
            status = unused_status(claim, pods, self.clock.today())
            await write_status(self.client, PERSISTENT_VOLUME_CLAIMS, claim, status)
        await super().reconcile(key)

    async def _is_used(self, obj: RawObject) -> bool:
        if any(is_used(obj, pod) for pod in self._pods.by_index(BY_CLAIM, str(obj.key))):
            return True
        # The informer may not have seen yet that a pod was bound.
        pods = await self.client.list(PODS, Scope(obj.metadata.namespace))
        return any(is_used(obj, pod) for pod in pods.items)


class PersistentVolumeProtectionController(_ProtectionController):
    name = "persistentvolume-protection-controller"
    queue_name = "pvprotection"
    resource = PERSISTENT_VOLUMES
    finalizer = PV_PROTECTION

    async def _is_used(self, obj: RawObject) -> bool:
        return bool(obj.get("status", "phase") == "Bound")
