"""The largest request of a class that one more claim could get on one node now, proven by allocating it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Final

from allot.allocation import Allocated, AllocationProblem, StepBudget, TargetNode, allocate
from allot.api.claims import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from allot.api.meta import ObjectMeta
from allot.questions.devices import DeviceRow
from allot.scheduler.explain.static_scheduler import StaticScheduler

MAX_DEVICES: Final = 32
"""A claim cannot have more."""
MAX_NODES: Final = 100
"""So many different nodes are tried, those with most free devices first."""
_MAX_STEPS: Final = 10_000


def largest_request(model: StaticScheduler, class_name: str, rows: Iterable[DeviceRow]) -> int:
    """How many devices of the class one request can get on the best node; `rows` are those of the class."""
    free = Counter(row.node for row in rows if row.is_free)
    anywhere = free.pop("", 0)
    best = 0
    seen: set[Hashable] = set()
    nodes = {node.name: node for node in model.cluster.nodes}
    ordered = sorted(nodes, key=lambda name: (-free[name], name))
    for name in ordered:
        bound = min(free[name] + anywhere, MAX_DEVICES)
        if bound <= best or len(seen) >= MAX_NODES:
            break
        target = model.devices.target(nodes[name])
        kind = model.devices.node_equivalence_class(target, model.claims.ledger)
        if kind is not None and kind in seen:
            continue
        seen.add(name if kind is None else kind)
        best = _largest_on(model, target, class_name, best, bound)
    return best


def _largest_on(
    model: StaticScheduler, node: TargetNode, class_name: str, least: int, most: int
) -> int:
    """The largest number between two that can be allocated; `least` is known to be possible."""
    if _fits(model, node, class_name, most):
        return most
    while least + 1 < most:
        middle = (least + most) // 2
        if _fits(model, node, class_name, middle):
            least = middle
        else:
            most = middle
    return least


def _fits(model: StaticScheduler, node: TargetNode, class_name: str, count: int) -> bool:
    exactly = ExactDeviceRequest(
        device_class_name=class_name, allocation_mode="ExactCount", count=count
    )
    spec = ResourceClaimSpec(DeviceClaim((DeviceRequest("devices", exactly),)))
    claim = ResourceClaim(ObjectMeta(name="largest", namespace="default", uid="largest"), spec)
    problem = AllocationProblem(
        node, [claim], model.devices.classes, model.devices.inventory, model.claims.ledger
    )
    outcome = allocate(problem, StepBudget(_MAX_STEPS), lambda: "share")
    return isinstance(outcome, Allocated)
