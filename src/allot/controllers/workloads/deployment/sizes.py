"""The number of replicas of each replica set of a deployment.

All functions return sizes by set name, only for sets whose size changes (or is confirmed).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from allot.api.raw import RawObject
from allot.controllers.workloads.accessors import (
    Json,
    annotations_of,
    counted,
    created_at,
    name_of,
    replicas_of,
)
from allot.controllers.workloads.int_or_percent import resolve

RECREATE: Final = "Recreate"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"

Sizes = dict[str, int]


class RollingBounds(NamedTuple):
    """maxSurge and maxUnavailable as counts."""

    surge: int
    unavailable: int


def is_recreated(deployment: RawObject) -> bool:
    return bool(deployment.get("spec", "strategy", "type") == RECREATE)


def rolling_bounds(deployment: RawObject) -> RollingBounds:
    """Percentages round up for maxSurge and down for maxUnavailable; if both are zero, maxUnavailable is 1."""
    if is_recreated(deployment):
        return RollingBounds(0, 0)
    rolling: Json = deployment.get("spec", "strategy", "rollingUpdate", default={})
    desired = replicas_of(deployment)
    surge = resolve(rolling.get("maxSurge"), desired, round_up=True)
    unavailable = resolve(rolling.get("maxUnavailable"), desired, round_up=False)
    if not surge and not unavailable:
        unavailable = 1
    return RollingBounds(surge, min(unavailable, desired))


def surge_of(deployment: RawObject) -> int:
    return rolling_bounds(deployment).surge


def total_size(sets: Iterable[RawObject]) -> int:
    return sum(map(replicas_of, sets))


def active_sets(sets: Iterable[RawObject]) -> list[RawObject]:
    return [found for found in sets if replicas_of(found) > 0]


# --- rolling update ---


def first_size(deployment: RawObject, old_sets: Iterable[RawObject]) -> int:
    """The initial size of a new set."""
    return _grown(deployment, 0, total_size(old_sets))


def next_size_of_new(
    deployment: RawObject, new_set: RawObject, old_sets: Iterable[RawObject]
) -> int:
    """The size of the new set within the bounds; scaling the deployment down shrinks it."""
    size, desired = replicas_of(new_set), replicas_of(deployment)
    if size >= desired:
        return desired
    return _grown(deployment, size, size + total_size(old_sets))


def _grown(deployment: RawObject, size: int, total: int) -> int:
    desired = replicas_of(deployment)
    if is_recreated(deployment):
        return desired
    room = desired + surge_of(deployment) - total
    return size + max(min(room, desired - size), 0)


def next_sizes_of_old(
    deployment: RawObject, new_set: RawObject, old_sets: Sequence[RawObject]
) -> Sizes:
    """Scale old sets down while enough pods stay available; unhealthy replicas first.

    Unavailable pods of the new set count as unavailable, so that a broken version never replaces the old one.
    """
    least = replicas_of(deployment) - rolling_bounds(deployment).unavailable
    everything = (*old_sets, new_set)
    missing = replicas_of(new_set) - counted(new_set, "availableReplicas")
    budget = total_size(everything) - least - missing
    if budget <= 0:
        return {}
    old = sorted(active_sets(old_sets), key=lambda found: (created_at(found), name_of(found)))
    sizes = _without_broken(old, budget)
    available = sum(counted(found, "availableReplicas") for found in everything)
    for found in old:
        size = sizes.get(name_of(found), replicas_of(found))
        fewer = min(size, available - least)
        if fewer > 0:
            sizes[name_of(found)] = size - fewer
            available -= fewer
    return sizes


def _without_broken(old: Iterable[RawObject], budget: int) -> Sizes:
    sizes: Sizes = {}
    for found in old:
        size = replicas_of(found)
        fewer = min(budget, size - counted(found, "availableReplicas"))
        if fewer > 0:
            sizes[name_of(found)] = size - fewer
            budget -= fewer
    return sizes


# --- scaling ---


def scaled_sizes(
    deployment: RawObject, new_set: RawObject | None, old_sets: Sequence[RawObject]
) -> Sizes:
    """Scale the sets after the deployment was resized.

    A single active set gets all replicas. During a rollout the sets are scaled proportionally, which keeps
    the risk constant.
    """
    desired = replicas_of(deployment)
    everything = [*old_sets, new_set] if new_set is not None else list(old_sets)
    active = active_sets(everything)
    if len(active) <= 1:
        only = active[0] if active else _latest(new_set, old_sets)
        return {name_of(only): desired} if only is not None else {}
    if new_set is not None and _is_saturated(new_set, desired):
        return {name_of(found): 0 for found in active_sets(old_sets)}
    if is_recreated(deployment):
        return {}
    return _shares(deployment, active)


def _latest(new_set: RawObject | None, old_sets: Sequence[RawObject]) -> RawObject | None:
    return new_set if new_set is not None else max(old_sets, key=created_at, default=None)


def _is_saturated(new_set: RawObject, desired: int) -> bool:
    """Whether the new set is complete, and only old sets remain to be scaled down."""
    return replicas_of(new_set) == desired == counted(new_set, "availableReplicas")


def _shares(deployment: RawObject, active: Sequence[RawObject]) -> Sizes:
    """Proportional sizes; the rounding remainder goes to the largest set."""
    desired = replicas_of(deployment)
    allowed = desired + surge_of(deployment) if desired else 0
    left = allowed - total_size(active)
    newest_first = left > 0  # growth goes to new sets, shrinking to old ones
    ordered = sorted(active, key=lambda found: (created_at(found), name_of(found)))
    if newest_first:
        ordered.reverse()
    ordered.sort(key=replicas_of, reverse=True)
    sizes: Sizes = {}
    for found in ordered:
        share = _share(deployment, found, allowed) if left else 0
        share = max(min(share, left), 0) if newest_first else min(max(share, left), 0)
        sizes[name_of(found)] = replicas_of(found) + share
        left -= share
    largest = name_of(ordered[0])
    sizes[largest] = max(sizes[largest] + left, 0)
    return sizes


def _share(deployment: RawObject, found: RawObject, allowed: int) -> int:
    """The change of a set's size that keeps its proportion."""
    size = replicas_of(found)
    if not allowed:
        return -size
    whole = _whole(annotations_of(found)) or counted(deployment, "replicas")
    return (2 * size * allowed + whole) // (2 * whole) - size if whole else 0  # rounded


def _whole(annotations: Mapping[str, str]) -> int:
    text = annotations.get(MAX_REPLICAS, "")
    return int(text) if text.isascii() and text.isdigit() else 0
