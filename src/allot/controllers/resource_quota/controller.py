"""The control loop that recalculates usage.

Admission adds to the usage with every write that it admits, and never subtracts. Quotas are recalculated when objects
are deleted, finish or shrink, when a quota changes, and periodically.

A quota is read before the objects are listed: objects created later change the quota too, so that a stale count
conflicts and is never written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Final

from allot.api.amounts import add
from allot.api.classes import DeviceClass
from allot.api.core import Pod, ResourceQuota
from allot.api.identities import ObjectKey
from allot.client.discovery import ServedKind
from allot.client.errors import ApiStatusError
from allot.client.metadata import MetadataObject
from allot.client.options import Scope
from allot.client.resources import (
    DEVICE_CLASSES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SERVICES,
    Resource,
)
from allot.client.served_kinds import ServedKinds
from allot.controllers.controller import ControllerContext, QueueController
from allot.quota.amounts import Amounts
from allot.quota.claims import is_for_extended
from allot.quota.decisions import total_usage, with_usage
from allot.quota.evaluators import (
    SPECIAL,
    Evaluator,
    GroupResource,
    ObjectCountEvaluator,
    PersistentVolumeClaimEvaluator,
    PodEvaluator,
    ResourceClaimEvaluator,
    ServiceEvaluator,
    object_count_resources,
)

DEBOUNCE_SECONDS: Final = 0.05
"""Deletion events come in bursts: debounce."""
SETTLE_SECONDS: Final = 1.0
"""Admission does not count objects for a quota that was just created or changed: recalculate once more."""
RESYNC_SECONDS: Final = 300.0
OBJECTS_AT_ONCE: Final = 50
"""Objects that are counted before other tasks get a turn."""
BY_NAMESPACE: Final = "quotas by namespace"


def _namespace(quota: ResourceQuota) -> Iterable[str]:
    return (quota.metadata.namespace,)


class ResourceQuotaController(QueueController[ObjectKey]):
    """Recalculates the usage of quotas."""

    name = "resourcequota-controller"
    queue_name = "resource_quota_controller_resource_changes"
    workers = 5

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        informers = context.informers
        self._extended = "DRAExtendedResource" in context.gates
        self._classes = informers.informer(DEVICE_CLASSES)
        self._quotas = informers.informer(RESOURCE_QUOTAS)
        self._quotas.add_index(BY_NAMESPACE, _namespace)
        self._quotas.add_handlers(
            on_add=lambda new: self.queue.add(new.key), on_update=self._quota_changed
        )
        informers.informer(PODS).add_handlers(on_update=self._pod_changed, needs=self._quotas)
        self._released: dict[str, set[GroupResource]] = {}
        """By namespace: resources of which objects use less than before."""
        self._kinds = informers.companion(ServedKinds)
        self._kinds.listen(self._object_changed, needs=self._quotas, every_update_of=_SHRINKING)

    async def run(self) -> None:
        await self._kinds.wait_discovered()  # otherwise unknown kinds would not be counted
        await super().run()

    def background_tasks(self) -> tuple[Coroutine[None, None, None], ...]:
        return (self._count_now_and_then(),)

    async def _count_now_and_then(self) -> None:
        while True:
            await self.clock.sleep(RESYNC_SECONDS)
            for quota in self._quotas.list():
                self.queue.add(quota.key)

    # --- event handlers ---

    def _quota_changed(self, old: ResourceQuota, new: ResourceQuota) -> None:
        if old.get("spec") != new.get("spec") or new.get("status", "hard") is None:
            self.queue.add(new.key)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if old.is_finished != new.is_finished or old.spec != new.spec:
            self._add_all(GroupResource("", "pods"), new.metadata.namespace)

    def _object_changed(
        self, kind: ServedKind, old: MetadataObject | None, new: MetadataObject | None
    ) -> None:
        if old is None:
            return
        resource = GroupResource(kind.group, kind.plural)
        if new is None or resource in _SHRINKING:
            self._add_all(resource, old.metadata.namespace)

    def _add_all(self, resource: GroupResource, namespace: str) -> None:
        """Queue the quotas that may limit a resource in a namespace, once for a burst of events."""
        resources = self._released.get(namespace)
        if resources is not None:
            resources.add(resource)
        elif self._quotas.by_index(BY_NAMESPACE, namespace):
            self._released[namespace] = {resource}
            self.clock.call_later(DEBOUNCE_SECONDS, lambda: self._add_released(namespace))

    def _add_released(self, namespace: str) -> None:
        resources = self._released.pop(namespace)
        is_special = not SPECIAL.isdisjoint(resources)
        for quota in self._quotas.by_index(BY_NAMESPACE, namespace):
            if is_special or not resources.isdisjoint(object_count_resources(quota.hard)):
                self.queue.add(quota.key)

    # --- counting ---

    async def reconcile(self, key: ObjectKey) -> None:
        # The informer may not have seen yet what admission has charged.
        quota = await self.client.find_listed(RESOURCE_QUOTAS, key)
        if quota is None or quota.metadata.deletion_timestamp is not None:
            return
        wanted = with_usage(quota, await self._count(quota))
        if wanted is quota:
            return
        try:
            await self.client.update_status(RESOURCE_QUOTAS, wanted)
        except ApiStatusError as error:
            if error.is_conflict:
                self.queue.add_after(key, DEBOUNCE_SECONDS)
            elif not error.is_not_found:
                raise
            return
        if wanted.get("status", "hard") != quota.get("status", "hard"):
            self.queue.add_after(key, SETTLE_SECONDS)

    async def _count(self, quota: ResourceQuota) -> Amounts:
        used: Amounts = {}
        known = {GroupResource(kind.group, kind.plural) for kind in self._kinds.kinds}
        if not object_count_resources(quota.hard) <= known:
            await self._kinds.refresh()  # a custom resource that was just defined
        for evaluator, resource in self._evaluators(quota):
            objects = await self._all(resource, quota.metadata.namespace)
            add(used, await _total_usage(quota, evaluator, objects))
        classes = self._classes.list()
        claims = ResourceClaimEvaluator(classes, _no_pod, extended_resources=self._extended)
        if claims.names(quota.hard):
            add(used, await self._count_claims(quota, classes))
        return used

    async def _count_claims(self, quota: ResourceQuota, classes: Sequence[DeviceClass]) -> Amounts:
        """Claims are counted together with the pods that they may have been created for."""
        namespace = quota.metadata.namespace
        claims = await self._all(RESOURCE_CLAIMS, namespace)
        pods = await self._all(PODS, namespace) if any(map(is_for_extended, claims)) else ()
        pod_by_key = {pod.key: pod for pod in pods}
        evaluator = ResourceClaimEvaluator(
            classes, pod_by_key.get, extended_resources=self._extended
        )
        return await _total_usage(quota, evaluator, claims)

    def _evaluators(self, quota: ResourceQuota) -> Iterable[tuple[Evaluator, Resource[Any]]]:
        """Evaluators that need only their own objects, and the resources of these."""
        special: tuple[tuple[Evaluator, Resource[Any]], ...] = (
            (PodEvaluator(self.clock.today()), PODS),
            (ServiceEvaluator(), SERVICES),
            (PersistentVolumeClaimEvaluator(), PERSISTENT_VOLUME_CLAIMS),
        )
        yield from (pair for pair in special if pair[0].names(quota.hard))
        wanted = object_count_resources(quota.hard)
        for kind in self._kinds.kinds:
            resource = GroupResource(kind.group, kind.plural)
            if resource in wanted and kind.namespaced and kind.can("list"):
                yield ObjectCountEvaluator(resource), kind.resource

    async def _all(self, resource: Resource[Any], namespace: str) -> list[Any]:
        try:
            return (await self.client.list(resource, Scope(namespace))).items
        except ApiStatusError as error:
            if error.is_not_found:
                return []  # not served
            raise


async def _total_usage(quota: ResourceQuota, evaluator: Evaluator, objects: list[Any]) -> Amounts:
    """`total_usage`, yielding to other tasks."""
    used = total_usage(quota, evaluator, objects[:OBJECTS_AT_ONCE])
    for start in range(OBJECTS_AT_ONCE, len(objects), OBJECTS_AT_ONCE):
        await asyncio.sleep(0)
        add(used, total_usage(quota, evaluator, objects[start : start + OBJECTS_AT_ONCE]))
    return used


_SHRINKING: Final = frozenset(
    {GroupResource("", "services"), GroupResource("", "persistentvolumeclaims")}
)
"""Resources whose objects may use less after an update."""


def _no_pod(_: ObjectKey) -> Pod | None:
    return None
