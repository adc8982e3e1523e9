"""Watches volumes, claims for volumes, storage classes and pods; writes what was decided.

A volume is written with the version that the decision was made on, so that two claims never get the same one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.api.volumes import BIND_COMPLETED, default_class
from allot.client.errors import ApiStatusError
from allot.client.events import NORMAL, WARNING, reference_to
from allot.client.options import DeleteOptions
from allot.client.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Resource,
)
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.persistent_volumes.claim_decisions import (
    Bind,
    EventText,
    Lost,
    Provision,
    UseDefaultClass,
    VolumeListers,
    Wait,
    decide_claim,
)
from allot.controllers.persistent_volumes.matching import best_volume, claim_of, class_of
from allot.controllers.persistent_volumes.volume_decisions import (
    AVAILABLE,
    BOUND,
    FAILED,
    Delete,
    Fail,
    SetPhase,
    Unbind,
    decide_volume,
)
from allot.controllers.persistent_volumes.writes import (
    LOST_STATUS,
    bound_status,
    claim_bound_to,
    claim_with_provisioner,
    volume_bound_to,
)
from allot.controllers.pod_volume_claims import volume_claims
from allot.controllers.workloads.status_writes import with_status, write_status

CLAIM, VOLUME, CLASS = "claim", "volume", "class"
BY_CLAIM, BY_CLASS, BY_VOLUME = "claim", "class", "volume"
UNSCHEDULED: Final = "claims of unscheduled pods"
SETTLE_SECONDS: Final = 0.1
"""New volumes come in bursts: the claims of their class are looked at once."""


class Item(NamedTuple):
    """A claim, a volume, or a class with volumes that have become available."""

    kind: str
    key: ObjectKey


class PersistentVolumeController(QueueController[Item]):
    name = "persistentvolume-binder-controller"
    event_source = "persistentvolume-controller"
    queue_name = "claims"
    workers = 1  # decisions depend on each other

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._recorder = context.recorder
        self._volumes = context.informers.informer(PERSISTENT_VOLUMES)
        self._volumes.add_index(BY_CLASS, lambda volume: (class_of(volume),))
        self._volumes.add_index(
            BY_CLAIM, lambda volume: tuple(map(str, filter(None, (claim_of(volume),))))
        )
        self._volumes.add_handlers(
            self._volume_changed, lambda _, new: self._volume_changed(new), self._volume_deleted
        )
        self._claims = context.informers.informer(PERSISTENT_VOLUME_CLAIMS)
        self._claims.add_index(
            BY_CLASS, lambda claim: (class_of(claim),) if _is_unbound(claim) else ()
        )
        self._claims.add_index(BY_VOLUME, _volume_names)
        self._claims.add_handlers(
            self._claim_changed, lambda _, new: self._claim_changed(new), self._claim_deleted
        )
        self._classes = context.informers.informer(STORAGE_CLASSES)
        self._classes.add_handlers(
            self._class_changed, lambda _, new: self._class_changed(new), lambda _: None
        )
        self._pods = context.informers.informer(PODS)
        self._pods.add_index(UNSCHEDULED, _claims_without_node)
        self._listers = VolumeListers(
            volume=lambda name: self._volumes.get(ObjectKey("", name)),
            candidates=self._candidates,
            storage_class=lambda name: self._classes.get(ObjectKey("", name)),
            default_class=lambda: default_class(self._classes.list()),
            unscheduled_pods=self._unscheduled_pods,
        )

    # --- events ---

    def _volume_changed(self, volume: RawObject) -> None:
        self.queue.add(Item(VOLUME, volume.key))
        self._ask_claims_of(volume)
        if claim_of(volume) is None and volume.get("status", "phase") == AVAILABLE:
            self.queue.add_after(Item(CLASS, ObjectKey("", class_of(volume))), SETTLE_SECONDS)

    def _volume_deleted(self, volume: RawObject) -> None:
        self._ask_claims_of(volume)

    def _ask_claims_of(self, volume: RawObject) -> None:
        claim = claim_of(volume)
        if claim is not None:
            self.queue.add(Item(CLAIM, claim))
        for naming in self._claims.by_index(BY_VOLUME, volume.metadata.name):
            self.queue.add(Item(CLAIM, naming.key))

    def _claim_changed(self, claim: RawObject) -> None:
        self.queue.add(Item(CLAIM, claim.key))
        for name in _volume_names(claim):
            self.queue.add(Item(VOLUME, ObjectKey("", name)))

    def _claim_deleted(self, claim: RawObject) -> None:
        for volume in self._volumes.by_index(BY_CLAIM, str(claim.key)):
            self.queue.add(Item(VOLUME, volume.key))

    def _class_changed(self, storage_class: RawObject) -> None:
        for name in (storage_class.metadata.name, ""):  # it may be the default one
            for claim in self._claims.by_index(BY_CLASS, name):
                self.queue.add(Item(CLAIM, claim.key))

    # --- what decisions read ---

    def _candidates(self, claim: RawObject) -> list[RawObject]:
        meant = self._volumes.by_index(BY_CLAIM, str(claim.key))
        return [*meant, *self._volumes.by_index(BY_CLASS, class_of(claim))]

    def _unscheduled_pods(self, claim: RawObject) -> list[str]:
        found = self._pods.by_index(UNSCHEDULED, str(claim.key))
        return sorted(pod.metadata.name for pod in found)

    # --- decisions ---

    async def reconcile(self, key: Item) -> None:
        try:
            match key.kind:
                case "claim":
                    await self._reconcile_claim(key.key)
                case "volume":
                    await self._reconcile_volume(key.key)
                case _:
                    self._wake_claims(key.key.name)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise

    def _wake_claims(self, class_name: str) -> None:
        """Queue the claims that can have one of the class's volumes."""
        for claim in self._claims.by_index(BY_CLASS, class_name):
            if best_volume(claim, self._candidates(claim)) is not None:
                self.queue.add(Item(CLAIM, claim.key))

    async def _reconcile_claim(self, key: ObjectKey) -> None:
        claim = self._claims.get(key)
        if claim is None:
            return
        match decide_claim(claim, self._listers):
            case Bind(volume):
                await self._bind(volume, claim)
            case Wait(event):
                if event is not None:
                    self._record_event(PERSISTENT_VOLUME_CLAIMS, claim, event)
            case Provision(provisioner) as decision:
                asking = claim_with_provisioner(claim, provisioner)
                if asking is not claim:
                    claim = await self.client.update(PERSISTENT_VOLUME_CLAIMS, asking)
                self._record_event(PERSISTENT_VOLUME_CLAIMS, claim, decision.event)
            case UseDefaultClass(name):
                named = claim.with_value(name, "spec", "storageClassName")
                await self.client.update(PERSISTENT_VOLUME_CLAIMS, named)
            case Lost(event):
                if claim.get("status", "phase") != "Lost":
                    await write_status(self.client, PERSISTENT_VOLUME_CLAIMS, claim, LOST_STATUS)
                    self._record_event(PERSISTENT_VOLUME_CLAIMS, claim, event)

    async def _bind(self, volume: RawObject, claim: RawObject) -> None:
        bound = volume_bound_to(volume, claim)
        if bound is not volume:
            bound = await self.client.update(PERSISTENT_VOLUMES, bound)
        await self._set_phase(bound, BOUND)
        wanted = claim_bound_to(claim, bound)
        if wanted is not claim:
            claim = await self.client.update(PERSISTENT_VOLUME_CLAIMS, wanted)
        status = bound_status(claim, bound)
        await write_status(self.client, PERSISTENT_VOLUME_CLAIMS, claim, status)

    async def _reconcile_volume(self, key: ObjectKey) -> None:
        volume = self._volumes.get(key)
        if volume is None:
            return
        match decide_volume(volume, await self._claim_of(volume)):
            case SetPhase(phase):
                await self._set_phase(volume, phase)
            case Unbind(unbound, is_recycled):
                if is_recycled:
                    event = EventText(NORMAL, "VolumeRecycled", "Volume recycled")
                    self._record_event(PERSISTENT_VOLUMES, volume, event)
                written = await self.client.update(PERSISTENT_VOLUMES, unbound)
                await self._set_phase(written, AVAILABLE)
            case Delete():
                options = DeleteOptions(uid=volume.metadata.uid)
                await self.client.delete(PERSISTENT_VOLUMES, key, options)
            case Fail(message):
                await self._set_phase(volume, FAILED, message)
                event = EventText(WARNING, "VolumeFailedDelete", message)
                self._record_event(PERSISTENT_VOLUMES, volume, event)
            case None:
                pass

    async def _claim_of(self, volume: RawObject) -> RawObject | None:
        """The claim that the volume refers to. That it is gone is asked of the API server: it means data loss."""
        key, uid = claim_of(volume), volume.get("spec", "claimRef", "uid") or ""
        if key is None or not uid:
            return None
        claim = self._claims.get(key)
        if claim is None or claim.metadata.uid != uid:
            claim = await self.client.find(PERSISTENT_VOLUME_CLAIMS, key)
        return claim if claim is not None and claim.metadata.uid == uid else None

    async def _set_phase(self, volume: RawObject, phase: str, message: str = "") -> None:
        status = {"phase": phase, "message": message or None, "reason": None}
        wanted = with_status(volume, status)
        if wanted is not volume:
            await self.client.update_status(PERSISTENT_VOLUMES, wanted)

    def _record_event(
        self, resource: Resource[RawObject], obj: RawObject, event: EventText
    ) -> None:
        self._recorder.event(
            reference_to(resource, obj), event.type, event.reason, event.reason, event.message
        )


def _is_unbound(claim: RawObject) -> bool:
    return BIND_COMPLETED not in claim.metadata.annotations


def _volume_names(claim: RawObject) -> tuple[str, ...]:
    name = claim.get("spec", "volumeName")
    return (name,) if name else ()


def _claims_without_node(pod: Pod) -> tuple[str, ...]:
    return () if pod.node_name or pod.is_finished else tuple(map(str, volume_claims(pod)))
