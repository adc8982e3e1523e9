"""Priority classes: that of a new pod is resolved to its priority; those of the system cannot be deleted."""

from __future__ import annotations

from typing import Any

from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted
from allot.apiserver.defaults.filling import Data
from allot.apiserver.defaults.pod_priority import (
    SYSTEM_PRIORITIES,
    Denied,
    PriorityClasses,
    resolve_priority,
)
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.known_results import LastResult
from allot.apiserver.pacing import Pacer
from allot.apiserver.watch_cache.caches import Caches, resource_named


class Priority:
    def __init__(self, caches: Caches) -> None:
        self._cache = caches.of(resource_named("scheduling.k8s.io", "priorityclasses"))
        self._pods = resource_named("", "pods")
        self._resolved = _resolver(PriorityClasses())
        self._version = (0, 0)
        """That of the cache for which the classes are known."""

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource is self._pods and operation == "create"

    async def admit(self, attributes: AdmissionAttributes) -> Any:
        pod = attributes.new
        spec = pod.rest.get("spec")
        resolved = (await self._resolver()).of(spec)
        if isinstance(resolved, Denied):
            raise api_errors.forbidden(attributes.resource, attributes.key.name, resolved.message)
        return pod if resolved["spec"] is spec else pod.with_parts({"spec": resolved["spec"]})

    async def _resolver(self) -> LastResult[Data | Denied]:
        """What all classes make of a spec: the same classes as for the last pod, unless one has changed."""
        cache = self._cache
        await cache.refresh()
        version = cache.epoch, cache.last_change
        if version != self._version:
            selected = cache.select(cache.prefix)
            classes = [stored.object.data async for stored in Pacer().each(selected)]
            by_name = {found["metadata"]["name"]: found for found in classes}
            defaults = [found for found in classes if found.get("globalDefault")]
            lowest = min(defaults, key=lambda found: found.get("value", 0), default=None)
            self._resolved = _resolver(PriorityClasses(by_name.get, lowest))
            self._version = version
        return self._resolved


def _resolver(classes: PriorityClasses) -> LastResult[Data | Denied]:
    return LastResult(lambda spec: resolve_priority({"spec": spec}, classes))


class SystemPriorityClasses:
    """Rejects the deletion of the classes that exist in every cluster."""

    def __init__(self) -> None:
        self._classes = resource_named("scheduling.k8s.io", "priorityclasses")

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource is self._classes and operation == "delete"

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        name = attributes.key.name
        if name in SYSTEM_PRIORITIES:
            why = "this is a system priority class and cannot be deleted"
            raise api_errors.forbidden(attributes.resource, name, why)
        return ADMITTED
