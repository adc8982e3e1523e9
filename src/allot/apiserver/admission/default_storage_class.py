"""Claims for volumes that name no storage class get the default one."""

from __future__ import annotations

from typing import Any

from allot.api.volumes import default_class, names_no_class
from allot.apiserver.admission.chain import AdmissionAttributes
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import Caches, resource_named


class DefaultStorageClass:
    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._claims = resource_named("", "persistentvolumeclaims")
        self._classes = resource_named("storage.k8s.io", "storageclasses")

    def handles(self, operation: str, resource: Resource) -> bool:
        return operation == "create" and resource is self._claims

    async def admit(self, attributes: AdmissionAttributes) -> Any:
        claim = attributes.new
        if not names_no_class(claim):
            return claim
        cache = self._caches.of(self._classes)
        await cache.refresh()
        default = default_class(stored.object for stored in cache.select(cache.prefix))
        if default is None:
            return claim
        return claim.with_value(default.metadata.name, "spec", "storageClassName")
