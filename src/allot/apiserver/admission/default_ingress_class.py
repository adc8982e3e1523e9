"""Ingresses that name no class get the default one."""

from __future__ import annotations

from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.admission.chain import AdmissionAttributes
from allot.apiserver.kinds.ingress_class import newest_default
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import Caches, resource_named

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
"""How ingresses named their class before there was a field."""
_GROUP: Final = "networking.k8s.io"


class DefaultIngressClass:
    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._ingresses = resource_named(_GROUP, "ingresses")
        self._classes = resource_named(_GROUP, "ingressclasses")

    def handles(self, operation: str, resource: Resource) -> bool:
        return operation == "create" and resource is self._ingresses

    async def admit(self, attributes: AdmissionAttributes) -> Any:
        ingress: RawObject = attributes.new
        names_class = ingress.get("spec", "ingressClassName") is not None
        if names_class or CLASS_ANNOTATION in ingress.metadata.annotations:
            return ingress
        cache = self._caches.of(self._classes)
        await cache.refresh()
        default = newest_default(stored.object for stored in cache.select(cache.prefix))
        if default is None:
            return ingress
        return ingress.with_value(default.metadata.name, "spec", "ingressClassName")
