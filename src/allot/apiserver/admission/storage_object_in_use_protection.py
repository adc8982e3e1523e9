"""Adds the finalizers that keep volumes and claims for volumes as long as they are used.

The protection controllers remove them.
"""

from __future__ import annotations

from typing import Any, Final

from allot.api.base import replace
from allot.api.volumes import PV_PROTECTION, PVC_PROTECTION
from allot.apiserver.admission.chain import AdmissionAttributes
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import resource_named

_FINALIZERS: Final = (
    ("persistentvolumeclaims", PVC_PROTECTION),
    ("persistentvolumes", PV_PROTECTION),
)


class StorageObjectInUseProtection:
    def __init__(self) -> None:
        self._finalizers = {
            id(resource_named("", plural)): finalizer for plural, finalizer in _FINALIZERS
        }

    def handles(self, operation: str, resource: Resource) -> bool:
        return operation == "create" and id(resource) in self._finalizers

    async def admit(self, attributes: AdmissionAttributes) -> Any:
        obj = attributes.new
        finalizer = self._finalizers[id(attributes.resource)]
        finalizers = obj.metadata.finalizers
        if finalizer in finalizers:
            return obj
        return obj.with_metadata(replace(obj.metadata, finalizers=(*finalizers, finalizer)))
