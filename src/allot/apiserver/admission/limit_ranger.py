"""LimitRanges: fills in what containers do not ask for, and rejects pods and claims outside of the limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted, Grown
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import VALUE, Workers, json_work
from allot.apiserver.watch_cache.caches import Caches, key_prefix, resource_named
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.quota.limit_ranges import (
    Filled,
    TooManyChecksError,
    claim_problems,
    pod_problems,
    with_default_resources,
)
from allot.validation.fields import MAX_ERRORS

PLAIN_RANGE: Final = 1024
"""Bytes of LimitRanges for which an object is as much work as without them."""


class LimitRanger:
    def __init__(self, caches: Caches, workers: Workers) -> None:
        self._workers = workers
        self._ranges = resource_named("", "limitranges")
        self._cache = caches.of(self._ranges)
        self._pods = resource_named("", "pods")
        self._claims = resource_named("", "persistentvolumeclaims")

    def handles(self, operation: str, resource: Resource) -> bool:
        if resource is self._pods:
            return operation == "create"
        return resource is self._claims and operation in ("create", "update")

    async def admit(self, attributes: AdmissionAttributes) -> Any:
        if attributes.resource is not self._pods:
            return attributes.new
        if not self._cache.is_current:
            await self._cache.refresh()
        ranges = self._ranges_in(attributes.key.namespace) if self._cache.count else []
        if not ranges:
            return attributes.new

        def fill() -> Filled:
            return with_default_resources(attributes.new, _objects(ranges))

        filled = await self._workers.run(_work(attributes, ranges), fill)
        return Grown(filled.pod, filled.added * VALUE) if filled.added else attributes.new

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        if attributes.is_removal or attributes.info.subresource:
            return ADMITTED
        if attributes.resource is not self._pods:  # those of pods are up to date since `admit`
            await self._cache.refresh()
        ranges = self._ranges_in(attributes.key.namespace) if self._cache.count else []
        if not ranges:
            return ADMITTED
        find = pod_problems if attributes.resource is self._pods else claim_problems

        def check() -> list[str]:
            return find(attributes.new, _objects(ranges))

        try:
            problems = await self._workers.run(_work(attributes, ranges), check)
        except TooManyChecksError as error:
            problems = [str(error)]
        if not problems:
            return ADMITTED
        # Several problems are shown once each, in brackets.
        distinct = list(dict.fromkeys(problems))[:MAX_ERRORS]
        message = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
        raise api_errors.forbidden(attributes.resource, attributes.key.name, message)

    def _ranges_in(self, namespace: str) -> list[StoredObject]:
        return self._cache.select(key_prefix(self._ranges, namespace))


def _objects(ranges: Sequence[StoredObject]) -> list[RawObject]:
    return [stored.object for stored in ranges]


def _work(attributes: AdmissionAttributes, ranges: Sequence[StoredObject]) -> int:
    """Every container is compared with every limit: the work is the product of both."""
    of_ranges = sum([json_work(stored.entry.value) for stored in ranges])
    return max(attributes.info.size * of_ranges // PLAIN_RANGE, of_ranges)
