"""Rejects the deletion of the default namespaces."""

from __future__ import annotations

from typing import Final

from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import resource_named

IMMORTAL_NAMESPACES: Final = ("default", "kube-public", "kube-system")


class NamespaceLifecycle:
    """That a namespace exists and is not terminating is checked on create, in the same transaction."""

    def __init__(self) -> None:
        self._namespaces = resource_named("", "namespaces")

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource is self._namespaces and operation == "delete"

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        name = attributes.key.name
        if name in IMMORTAL_NAMESPACES:
            raise api_errors.forbidden(
                attributes.resource, name, "this namespace may not be deleted"
            )
        return ADMITTED
