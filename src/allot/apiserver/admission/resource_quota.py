"""Enforces ResourceQuotas: a write that exceeds one is rejected, all others are counted in the same transaction.

So concurrent writes, also through several servers, cannot exceed a quota together. Released usage is not counted
here: the quota controller does that, and a quota is not in force before its first count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceClass
from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.resource import GROUP as DRA
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import Pacer, Workers, json_work
from allot.apiserver.watch_cache.caches import Caches, key_prefix, resource_named
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.features import FeatureGates
from allot.quota.decisions import Charge, Exceeded, is_in_force
from allot.quota.evaluators import (
    Evaluator,
    GroupResource,
    ObjectCountEvaluator,
    PersistentVolumeClaimEvaluator,
    PodEvaluator,
    ResourceClaimEvaluator,
    ServiceEvaluator,
)
from allot.storage.interface import Operation, Put

_GROWING: Final = frozenset({"pods", "services", "persistentvolumeclaims"})
"""Core resources whose usage may grow with an update."""
CLASS_WORK: Final = 64
"""A DeviceClass is as much work as so many bytes."""


class ResourceQuotaAdmission:
    """Charges the quotas of the namespace for every write that uses them."""

    def __init__(
        self,
        caches: Caches,
        gates: FeatureGates,
        clock: Callable[[], datetime],
        workers: Workers,
    ) -> None:
        self._caches = caches
        self._workers = workers
        self._gates = gates
        self._clock = clock
        self._quotas = resource_named("", "resourcequotas")
        self._cache = caches.of(self._quotas)
        self._pods = resource_named("", "pods")
        self._claims = resource_named(DRA, "resourceclaims")
        self._classes = resource_named(DRA, "deviceclasses")
        self._claim_evaluators: dict[tuple[int, int], ResourceClaimEvaluator] = {}
        """The one for the DeviceClasses as they are, by the version of their cache."""
        self._creation_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def creation_lock(self, namespace: str) -> asyncio.Lock | None:
        """Held during a create: concurrent creates that charge one quota would only cause write conflicts."""
        if not namespace or not self._cache.count or not self._of(namespace):
            return None
        return self._creation_locks.setdefault(namespace, asyncio.Lock())

    def handles(self, operation: str, resource: Resource) -> bool:
        """Whether such writes may use more of a quota than before."""
        if not resource.namespaced:
            return False
        may_grow = not resource.group and resource.plural in _GROWING
        return operation == "create" or (operation == "update" and may_grow)

    @property
    def is_idle(self) -> bool:
        return self._cache.is_current and not self._cache.count

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        await self._cache.refresh()
        quotas = self._of(attributes.key.namespace) if self._cache.count else []
        if not quotas:
            return ADMITTED
        new, old, size = attributes.new, attributes.old, attributes.info.size
        evaluator: Evaluator
        if attributes.resource is self._claims:
            owners = await self._owners(new)
            size += sum(json_work(stored.entry.value) for stored in owners.values())
            evaluator = await self._claim_evaluator(owners)
        else:
            evaluator = self._evaluator(attributes.resource)
        charge = await self._workers.run(size, lambda: Charge(evaluator, new, old))
        operations: list[Operation] = []
        async for stored in Pacer().each(quotas):
            work = partial(_charged, charge, stored)
            charged = await self._workers.run(size + json_work(stored.entry.value), work)
            if isinstance(charged, Exceeded):
                name = attributes.key.name
                raise api_errors.forbidden(attributes.resource, name, charged.message)
            if charged is not None:
                operations.append(charged)
        return Admitted(tuple(operations))

    def _of(self, namespace: str) -> list[StoredObject]:
        """The quotas of a namespace by name, decoded only as they are needed."""
        return self._cache.select(key_prefix(self._quotas, namespace))

    def _evaluator(self, resource: Resource) -> Evaluator:
        match resource.group, resource.plural:
            case "", "pods":
                return PodEvaluator(self._clock())
            case "", "services":
                return ServiceEvaluator()
            case "", "persistentvolumeclaims":
                return PersistentVolumeClaimEvaluator()
            case group, plural:
                return ObjectCountEvaluator(GroupResource(group, plural))

    async def _owners(self, claim: ResourceClaim) -> dict[ObjectKey, StoredObject]:
        """The pods that a claim may have been made for."""
        keys = {
            ObjectKey(claim.metadata.namespace, ref.name)
            for ref in claim.metadata.owner_references
            if ref.controller and ref.kind == "Pod"
        }
        if not keys:
            return {}
        pods = self._caches.of(self._pods)
        await pods.refresh()
        found = {key: pods.get(self._caches.key(self._pods, *key)) for key in keys}
        return {key: stored for key, stored in found.items() if stored is not None}

    async def _claim_evaluator(
        self, owners: Mapping[ObjectKey, StoredObject]
    ) -> ResourceClaimEvaluator:
        def pod_of(key: ObjectKey) -> Pod | None:
            stored = owners.get(key)
            return stored.object if stored is not None else None

        cache = self._caches.of(self._classes)
        await cache.refresh()
        version = cache.epoch, cache.last_change
        known = self._claim_evaluators.get(version)
        if known is None:  # there may be thousands of classes: not for every claim
            selected = cache.select(cache.prefix)
            classes: list[DeviceClass] = [stored.object async for stored in Pacer().each(selected)]
            extended = "DRAExtendedResource" in self._gates
            known = await self._workers.run(
                len(classes) * CLASS_WORK,
                lambda: ResourceClaimEvaluator(classes, _no_pod, extended_resources=extended),
            )
            self._claim_evaluators = {version: known}
        return known.with_pods(pod_of)


def _no_pod(_: ObjectKey) -> Pod | None:
    return None


def _charged(charge: Charge, stored: StoredObject) -> Put | Exceeded | None:
    """The write of a quota that a charge counts towards."""
    quota = stored.object
    charged = charge.to(quota) if is_in_force(quota) else None
    if charged is None or isinstance(charged, Exceeded):
        return charged
    codec = stored.codec
    return Put(stored.key, codec.encode(charged, codec.storage_version), stored.revision)
