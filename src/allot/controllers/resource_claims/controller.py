"""Event handlers for pods, claims and templates, and the control loop."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, NamedTuple

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.resources import PODS, RESOURCE_CLAIMS
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.resource_claims.claim_creation import TEMPLATES, ClaimCreator
from allot.controllers.resource_claims.decisions import lacks_reservation
from allot.controllers.resource_claims.indexes import (
    CLAIMS_BY_POD,
    PODS_BY_CLAIM,
    PODS_BY_TEMPLATE,
    claims_used_by_pod,
    owning_pod,
    pods_behind_claim,
    templates_used_by_pod,
)
from allot.controllers.resource_claims.metrics import ClaimMetrics
from allot.controllers.resource_claims.pods import has_claims, is_deleting, is_done, uid_of
from allot.controllers.resource_claims.reservations import Reservations


class KeyKind(Enum):
    POD = "pod"
    CLAIM = "claim"

    __hash__ = object.__hash__  # that of enums is written in Python


class ClaimControllerKey(NamedTuple):
    """A pod that may need claims, or a claim that may be unused."""

    kind: KeyKind
    object: ObjectKey

    def __str__(self) -> str:
        return f"{self.kind.value} {self.object}"


class ResourceClaimController(QueueController[ClaimControllerKey]):
    """Creates claims from templates, and releases claims whose pods are done."""

    name: ClassVar[str] = "resourceclaim-controller"
    event_source = "resource_claim"
    queue_name: ClassVar[str] = "resource_claim"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        informers = context.informers
        self._pods = informers.informer(PODS)
        self._claims = informers.informer(RESOURCE_CLAIMS)
        templates = informers.informer(TEMPLATES)
        self._metrics = ClaimMetrics(context.registry)
        self._reservations = Reservations(self.client, self._pods, self._claims)
        self._maker = ClaimCreator(
            self.client,
            self._claims,
            templates,
            context.recorder,
            context.gates,
            self._metrics,
            lambda pod: self.queue.add(ClaimControllerKey(KeyKind.POD, pod)),
        )
        self._pods.add_index(PODS_BY_CLAIM, claims_used_by_pod)
        self._pods.add_index(PODS_BY_TEMPLATE, templates_used_by_pod)
        self._claims.add_index(CLAIMS_BY_POD, pods_behind_claim)
        self._pods.add_handlers(
            self._pod_changed, lambda _, pod: self._pod_changed(pod), self._pod_deleted
        )
        self._claims.add_handlers(
            self._claim_changed, lambda _, claim: self._claim_changed(claim), self._claim_deleted
        )
        templates.add_handlers(self._template_added)

    async def reconcile(self, key: ClaimControllerKey) -> None:
        match key.kind:
            case KeyKind.POD:
                pod = self._pods.get(key.object)
                if pod is None or pod.is_finished or is_deleting(pod):
                    return
                if pod.node_name:
                    await self._reservations.add_missing(pod)
                await self._maker.create_missing(pod)
            case KeyKind.CLAIM:
                await self._reservations.clean_up(key.object)

    # --- event handlers ---

    def _pod_changed(self, pod: Pod) -> None:
        if is_done(pod):
            self._queue_claims_of(pod)
        elif has_claims(pod) and not self._is_settled(pod):
            self.queue.add(ClaimControllerKey(KeyKind.POD, pod.key))

    def _is_settled(self, pod: Pod) -> bool:
        """Whether the informers have all that the pod needs. Most of its changes are not about claims."""
        is_reserved = not pod.node_name or self._reservations.are_complete(pod)
        return is_reserved and self._maker.has_created_all(pod)

    def _pod_deleted(self, pod: Pod) -> None:
        if self._queue_claims_of(pod):
            self._reservations.pod_deleted(uid_of(pod))

    def _queue_claims_of(self, pod: Pod) -> bool:
        """Queue all claims that the pod uses, has reserved or owns; whether there may be any."""
        namespace = pod.key.namespace
        keys = {ObjectKey(namespace, name) for name in pod.used_claims}
        for claim in self._claims.by_index(CLAIMS_BY_POD, uid_of(pod)):
            keys.add(claim.key)
        for key in keys:
            self.queue.add(ClaimControllerKey(KeyKind.CLAIM, key))
        return bool(keys) or has_claims(pod)

    def _claim_changed(self, claim: ResourceClaim) -> None:
        key = claim.key
        self._metrics.claim_seen(key, claim)
        self._maker.claim_seen(key)
        if self._reservations.may_need_cleanup(claim):
            self.queue.add(ClaimControllerKey(KeyKind.CLAIM, key))
        if claim.status.allocation is not None:
            for pod in self._pods.by_index(PODS_BY_CLAIM, f"{key.namespace}/{key.name}"):
                if pod.node_name and lacks_reservation(claim, uid_of(pod)):
                    self.queue.add(ClaimControllerKey(KeyKind.POD, pod.key))

    def _claim_deleted(self, claim: ResourceClaim) -> None:
        key = claim.key
        self._metrics.claim_seen(key, None)
        self._maker.claim_seen(key)
        pods = {pod.key for pod in self._pods.by_index(PODS_BY_CLAIM, str(key))}
        if (owner := owning_pod(claim)) is not None:
            pods.add(ObjectKey(key.namespace, owner.name))
        for pod in pods:
            self.queue.add(ClaimControllerKey(KeyKind.POD, pod))

    def _template_added(self, template: RawObject) -> None:
        for pod in self._pods.by_index(PODS_BY_TEMPLATE, str(template.key)):
            self.queue.add(ClaimControllerKey(KeyKind.POD, pod.key))
