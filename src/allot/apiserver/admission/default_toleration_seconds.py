"""Adds the tolerations that every pod gets for a node that is not ready or unreachable.

It runs after defaulting; the added tolerations have no field manager.
"""

from __future__ import annotations

from typing import Any

from allot.apiserver.admission.chain import AdmissionAttributes, OfWholeObjects
from allot.apiserver.defaults.pods import tolerate_short_outages
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.known_results import LastResult
from allot.apiserver.watch_cache.caches import resource_named


class DefaultTolerationSeconds(OfWholeObjects):
    """A pod was admitted when its spec was written: its status and its binding add nothing."""

    def __init__(self) -> None:
        self._pods = resource_named("", "pods")
        self._tolerant = LastResult(tolerate_short_outages)

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource is self._pods and operation in ("create", "update")

    async def admit(self, attributes: AdmissionAttributes) -> Any:
        pod = attributes.new
        spec = pod.rest.get("spec") or {}
        tolerant = self._tolerant.of(spec)
        return pod if tolerant is spec else pod.with_parts({"spec": tolerant})
