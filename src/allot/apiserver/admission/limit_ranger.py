"""LimitRanges: fills in what containers do not ask for, and rejects pods and claims outside of the limits."""

from __future__ import annotations

from typing import Any

from allot.api.raw import RawObject
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import Caches, key_prefix, resource_named
from allot.quota.limit_ranges import claim_problems, pod_problems, with_default_resources


class LimitRanger:
    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._ranges = resource_named("", "limitranges")
        self._pods = resource_named("", "pods")
        self._claims = resource_named("", "persistentvolumeclaims")

    def handles(self, operation: str, resource: Resource) -> bool:
        if resource is self._pods:
            return operation == "create"
        return resource is self._claims and operation in ("create", "update")

    async def admit(self, attributes: AdmissionAttributes) -> Any:
        if attributes.resource is not self._pods:
            return attributes.new
        await self._caches.of(self._ranges).refresh()
        ranges = self._ranges_in(attributes.key.namespace)
        return with_default_resources(attributes.new, ranges) if ranges else attributes.new

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        if attributes.is_removal or attributes.info.subresource:
            return ADMITTED
        if attributes.resource is not self._pods:  # those of pods are up to date since `admit`
            await self._caches.of(self._ranges).refresh()
        ranges = self._ranges_in(attributes.key.namespace)
        if not ranges:
            return ADMITTED
        find = pod_problems if attributes.resource is self._pods else claim_problems
        problems = find(attributes.new, ranges)
        if not problems:
            return ADMITTED
        # Several problems are shown once each, in brackets.
        distinct = list(dict.fromkeys(problems))
        message = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
        raise api_errors.forbidden(attributes.resource, attributes.key.name, message)

    def _ranges_in(self, namespace: str) -> list[RawObject]:
        cache = self._caches.of(self._ranges)
        if not cache.count:
            return []
        return [stored.object for stored in cache.select(key_prefix(self._ranges, namespace))]
