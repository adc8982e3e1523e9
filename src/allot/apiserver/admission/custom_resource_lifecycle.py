"""Rejects new custom resources while their definition is being deleted."""

from __future__ import annotations

from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import Caches, resource_named


class CustomResourceLifecycle:
    """That a definition exists at all is decided by routing."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._definitions = resource_named("apiextensions.k8s.io", "customresourcedefinitions")

    def handles(self, operation: str, resource: Resource) -> bool:
        return operation == "create" and resource.custom is not None

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        resource = attributes.resource
        key = self._caches.key(self._definitions, "", resource.qualified_name)
        definition = await self._caches.get(self._definitions, key)
        if definition is None or definition.object.metadata.deletion_timestamp is not None:
            raise api_errors.forbidden(
                resource,
                attributes.key.name,
                "create not allowed while custom resource definition is terminating",
            )
        return ADMITTED
