"""Claims for the ephemeral volumes of pods, which own them."""

from __future__ import annotations

from typing import Any

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.errors import ApiStatusError
from allot.client.events import WARNING, reference_to
from allot.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.pod_volume_claims import (
    BY_CLAIM,
    claim_index,
    ephemeral_claim_name,
    is_owned_by,
)


def missing_claims(pod: Pod) -> list[RawObject]:
    """The claims that a pod's ephemeral volumes need."""
    found = []
    for volume in pod.volumes:
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            found.append(_claim(pod, volume.get("name") or "", template))
    return found


def _claim(pod: Pod, volume: str, template: dict[str, Any]) -> RawObject:
    given = template.get("metadata") or {}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        "name": ephemeral_claim_name(pod.metadata.name, volume),
        "namespace": pod.metadata.namespace,
        "ownerReferences": [owner],
        **{key: given[key] for key in ("labels", "annotations") if given.get(key)},
    }
    return RawObject(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": template.get("spec") or {},
        }
    )


class EphemeralVolumeController(QueueController[ObjectKey]):
    name = "ephemeral-volume-controller"
    event_source = "ephemeral_volume"
    queue_name = "ephemeral_volume"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._recorder = context.recorder
        self._claims = context.informers.informer(PERSISTENT_VOLUME_CLAIMS)
        self._claims.add_handlers(on_delete=self._claim_deleted)
        self._pods = context.informers.informer(PODS)
        self._pods.add_index(BY_CLAIM, claim_index)
        self._pods.add_handlers(
            on_add=self._pod_changed, on_update=lambda _, new: self._pod_changed(new)
        )

    def _pod_changed(self, pod: Pod) -> None:
        if pod.volumes and any(volume.get("ephemeral") for volume in pod.volumes):
            self.queue.add(pod.key)

    def _claim_deleted(self, claim: RawObject) -> None:
        for pod in self._pods.by_index(BY_CLAIM, str(claim.key)):
            self._pod_changed(pod)

    async def reconcile(self, key: ObjectKey) -> None:
        pod = self._pods.get(key)
        if pod is None or pod.is_finished or pod.metadata.deletion_timestamp is not None:
            return
        for wanted in missing_claims(pod):
            known = self._claims.get(wanted.key)
            if known is None:
                await self._create(pod, wanted)
            elif not is_owned_by(known, pod):
                self._record_event(pod, _not_owned(known, pod))

    async def _create(self, pod: Pod, claim: RawObject) -> None:
        try:
            await self.client.create(PERSISTENT_VOLUME_CLAIMS, claim)
        except ApiStatusError as error:
            if error.is_already_exists:
                raise  # the informer will know whose it is
            self._record_event(pod, f"ephemeral volume: create PVC {claim.key}: {error}")
            raise

    def _record_event(self, pod: Pod, message: str) -> None:
        reason = "FailedBinding"
        self._recorder.event(reference_to(PODS, pod), WARNING, reason, reason, message)


def _not_owned(claim: RawObject, pod: Pod) -> str:
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
