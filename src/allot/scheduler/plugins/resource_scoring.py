"""Scores by utilization: LeastAllocated, MostAllocated, RequestedToCapacityRatio."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from allot.scheduler.framework.scores import MAX_SCORE
from allot.scheduler.state.nodes import NodeInfo
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar

MAX_CURVE_SCORE: Final = 10


class ResourceWeight(NamedTuple):
    """The weight of a resource."""

    name: str
    weight: int


CPU_AND_MEMORY: Final = (ResourceWeight(CPU, 1), ResourceWeight(MEMORY, 1))

Strategy = Callable[[PodInfo, NodeInfo], int]


def read_weights(raw: Any) -> tuple[ResourceWeight, ...]:
    """Resources in a plugin's arguments; cpu and memory if there are none."""
    weights = tuple(ResourceWeight(one["name"], one.get("weight") or 1) for one in raw or ())
    return weights or CPU_AND_MEMORY


def scoring_strategy(raw: Mapping[str, Any] | None) -> Strategy:
    """The strategy that NodeResourcesFit's arguments ask for; LeastAllocated by default."""
    raw = raw or {}
    weights = read_weights(raw.get("resources"))
    match raw.get("type") or "LeastAllocated":
        case "LeastAllocated":
            return least_allocated(weights)
        case "MostAllocated":
            return most_allocated(weights)
        case "RequestedToCapacityRatio":
            points = (raw.get("requestedToCapacityRatio") or {}).get("shape") or ()
            curve = tuple((one.get("utilization") or 0, one.get("score") or 0) for one in points)
            return requested_to_capacity_ratio(weights, curve)
        case unknown:
            raise ValueError(f"unknown scoring strategy {unknown!r}")


def allocatable_and_used(
    pod: PodInfo, node: NodeInfo, name: str, *, exact: bool
) -> tuple[int, int]:
    """The allocatable amount of a resource, and the requested amount with the pod.

    Unless `exact`, containers without requests for cpu or memory count with a small default. Scalar
    resources that the pod does not ask for count as absent.
    """
    requests = pod.requests
    if name == CPU:
        if exact:
            return node.allocatable_milli_cpu, node.requested_milli_cpu + requests.milli_cpu
        return node.allocatable_milli_cpu, node.nonzero_milli_cpu + pod.nonzero_milli_cpu
    if name == MEMORY:
        if exact:
            return node.allocatable_memory, node.requested_memory + requests.memory
        return node.allocatable_memory, node.nonzero_memory + pod.nonzero_memory
    if name == EPHEMERAL_STORAGE:
        return (
            node.allocatable_ephemeral_storage,
            node.requested_ephemeral_storage + requests.ephemeral_storage,
        )
    wanted = requests.amount(name)
    if not wanted and is_scalar(name):
        return 0, 0
    return (
        node.allocatable_scalars.get(name, 0),
        node.requested_scalars.get(name, 0) + wanted,
    )


def least_allocated(weights: tuple[ResourceWeight, ...]) -> Strategy:
    def emptiness(pod: PodInfo, node: NodeInfo) -> int:
        total = weight_sum = 0
        for name, weight in weights:
            capacity, used = allocatable_and_used(pod, node, name, exact=False)
            if capacity:
                weight_sum += weight
                if used < capacity:
                    total += (capacity - used) * MAX_SCORE // capacity * weight
        return total // weight_sum if weight_sum else 0

    return emptiness


def most_allocated(weights: tuple[ResourceWeight, ...]) -> Strategy:
    def fullness(pod: PodInfo, node: NodeInfo) -> int:
        total = weight_sum = 0
        for name, weight in weights:
            capacity, used = allocatable_and_used(pod, node, name, exact=False)
            if capacity:
                weight_sum += weight
                total += min(used, capacity) * MAX_SCORE // capacity * weight
        return total // weight_sum if weight_sum else 0

    return fullness


def requested_to_capacity_ratio(
    weights: tuple[ResourceWeight, ...], curve: tuple[tuple[int, int], ...]
) -> Strategy:
    """Scores along a curve of (utilization 0..100, score 0..10) points in rising order."""
    points = tuple((use, score * MAX_SCORE // MAX_CURVE_SCORE) for use, score in curve)

    def on_curve(pod: PodInfo, node: NodeInfo) -> int:
        total = weight_sum = 0
        for name, weight in weights:
            capacity, used = allocatable_and_used(pod, node, name, exact=False)
            if not capacity:
                continue
            full = used > capacity
            score = _interpolate(points, 100 if full else used * 100 // capacity)
            if score > 0:
                total += score * weight
                weight_sum += weight
        return (2 * total + weight_sum) // (2 * weight_sum) if weight_sum else 0

    return on_curve


def _interpolate(points: tuple[tuple[int, int], ...], at: int) -> int:
    previous: tuple[int, int] | None = None
    for use, score in points:
        if at <= use:
            if previous is None:
                return score
            rise, run = score - previous[1], use - previous[0]
            # Truncated towards zero, as integer division of the curve's falling parts is.
            step = abs(rise) * (at - previous[0]) // run
            return previous[1] + (step if rise >= 0 else -step)
        previous = (use, score)
    return previous[1] if previous else 0
