"""Rejects pods whose service account does not exist.

The account `default` is not looked up: the controller creates it with the namespace, and a server without
controllers has none.
"""

from __future__ import annotations

from typing import Final

from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import Caches, resource_named

DEFAULT_ACCOUNT: Final = "default"
MIRROR: Final = "kubernetes.io/config.mirror"


class ServiceAccountAdmission:
    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._pods = resource_named("", "pods")
        self._accounts = resource_named("", "serviceaccounts")

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource is self._pods and operation == "create"

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        pod = attributes.new
        name = (pod.rest.get("spec") or {}).get("serviceAccountName") or DEFAULT_ACCOUNT
        if name == DEFAULT_ACCOUNT or MIRROR in pod.metadata.annotations:
            return ADMITTED
        namespace = attributes.key.namespace
        key = self._caches.key(self._accounts, namespace, name)
        if await self._caches.get(self._accounts, key) is None:
            raise api_errors.forbidden(
                attributes.resource,
                attributes.key.name,
                f"error looking up service account {namespace}/{name}:"
                f' serviceaccount "{name}" not found',
            )
        return ADMITTED
