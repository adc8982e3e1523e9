"""The strategy of every kind."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from allot.apiserver.kinds.cluster_kinds import (
    DeviceClassStrategy,
    DeviceTaintRuleStrategy,
    ResourcePoolStatusRequestStrategy,
    ResourceSliceStrategy,
)
from allot.apiserver.kinds.raw_kinds import raw_strategy
from allot.apiserver.kinds.resource_claim import (
    ResourceClaimStrategy,
    ResourceClaimTemplateStrategy,
)
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.kinds.strategy import Strategy

_TYPED: Final[dict[str, Strategy[Any]]] = {
    "ResourceClaim": ResourceClaimStrategy(),
    "ResourceClaimTemplate": ResourceClaimTemplateStrategy(),
    "ResourceSlice": ResourceSliceStrategy(),
    "DeviceClass": DeviceClassStrategy(),
    "DeviceTaintRule": DeviceTaintRuleStrategy(),
    "ResourcePoolStatusRequest": ResourcePoolStatusRequestStrategy(),
}


@cache
def strategy_for(resource: Resource) -> Strategy[Any]:
    return _TYPED[resource.kind] if resource.info.is_typed else raw_strategy(resource)
