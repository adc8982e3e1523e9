"""Taints new nodes as not ready, so that no pod is placed on them before they have reported.

The node lifecycle controller removes the taint.
"""

from __future__ import annotations

from typing import Any, Final

from allot.apiserver.admission.chain import AdmissionAttributes
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.watch_cache.caches import resource_named

NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNodesByCondition:
    def __init__(self) -> None:
        self._nodes = resource_named("", "nodes")

    def handles(self, operation: str, resource: Resource) -> bool:
        return resource is self._nodes and operation == "create"

    async def admit(self, attributes: AdmissionAttributes) -> Any:
        node = attributes.new
        taints: list[dict[str, Any]] = node.get("spec", "taints", default=[])
        if any(taint.items() >= NOT_READY.items() for taint in taints):
            return node
        return node.with_value([*taints, dict(NOT_READY)], "spec", "taints")
