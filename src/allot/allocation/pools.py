"""Pools: resource slices grouped by driver and pool name, newest generation only.

A pool is complete when every slice its generation announces is here. What an incomplete or invalid
pool means for a claim is decided in `requests` (mode All) and by the search, which skips it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from allot.allocation.devices import PoolDevice
from allot.allocation.errors import AllocationError
from allot.allocation.go_texts import device_text
from allot.allocation.node_selectors import selects_node
from allot.allocation.problem import TargetNode
from allot.api.slices import ResourceSlice
from allot.features import COMPATIBILITY_GROUPS, PARTITIONABLE_DEVICES, FeatureGates


class PoolId(NamedTuple):
    """A pool, unique in the cluster. Sorts by driver, then name."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class SliceDevices(NamedTuple):
    """A slice and its devices, prepared."""

    slice: ResourceSlice
    devices: tuple[PoolDevice, ...]


CounterBudget = dict[str, dict[str, int]]
"""Amount in billionths by counter set and counter."""


class Pool:
    """A pool as one node sees it. Incomplete and invalid pools have no devices."""

    def __init__(
        self,
        id_: PoolId,
        generation: int,
        *,
        devices: tuple[PoolDevice, ...] = (),
        others: tuple[PoolDevice, ...] = (),
        counters: CounterBudget | None = None,
        is_incomplete: bool = False,
        invalid_because: str = "",
        waits_for_binding: bool = False,
    ) -> None:
        self.id = id_
        self.generation = generation
        self.devices = devices
        self.counters = counters or {}
        self.counted = {
            device.id.device: device for device in (*devices, *others) if device.counter_uses
        }
        """The devices that use counters, also those which only other nodes can use."""
        self.is_incomplete = is_incomplete
        self.invalid_because = invalid_because
        self.waits_for_binding = waits_for_binding

    @property
    def is_invalid(self) -> bool:
        return bool(self.invalid_because)

    @property
    def is_usable(self) -> bool:
        return not self.is_incomplete and not self.invalid_because


WholePool = Callable[[PoolId], Iterable[SliceDevices]]
"""All slices of a pool, whatever node they are for."""


def gather_pools(
    slices: Iterable[SliceDevices], whole_pool: WholePool, node: TargetNode, gates: FeatureGates
) -> tuple[Pool, ...]:
    """The pools `node` can use, in the order in which allocation tries them.

    `slices` are those for this node, then those for no node in particular. Incomplete and invalid
    pools are included and marked, so that a failure can name them. `AllocationError` if a node
    selector cannot be read.
    """
    relevant: dict[PoolId, list[SliceDevices]] = {}
    for entry in slices:
        if _is_ignored(entry.slice, gates) or not _is_relevant(entry.slice, node):
            continue
        spec = entry.slice.spec
        relevant.setdefault(PoolId(spec.driver, spec.pool.name), []).append(entry)
    pools = []
    for id_, entries in relevant.items():
        pool = _pool(id_, entries, whole_pool, gates)
        if pool is not None:
            pools.append(pool)
    pools.sort(key=lambda pool: (pool.waits_for_binding, pool.id))
    return tuple(pools)


def _is_ignored(slice_: ResourceSlice, gates: FeatureGates) -> bool:
    spec = slice_.spec
    if PARTITIONABLE_DEVICES not in gates and (
        spec.per_device_node_selection or spec.shared_counters
    ):
        return True
    return _is_ignored_for_groups(slice_, gates)


def _is_ignored_for_groups(slice_: ResourceSlice, gates: FeatureGates) -> bool:
    return COMPATIBILITY_GROUPS not in gates and any(
        use.compatibility_groups
        for device in slice_.spec.devices or ()
        for use in device.consumes_counters
    )


def _is_relevant(slice_: ResourceSlice, node: TargetNode) -> bool:
    spec = slice_.spec
    if not spec.per_device_node_selection:
        try:
            return selects_node(node, spec.node_name, spec.all_nodes, spec.node_selector)
        except AllocationError as error:
            raise AllocationError(
                f"failed to perform node selection for slice {slice_.metadata.name}: {error}"
            ) from None
    for device in spec.devices or ():
        try:
            if selects_node(node, device.node_name, device.all_nodes, device.node_selector):
                return True
        except AllocationError as error:
            raise AllocationError(
                f"failed to perform node selection for device {device_text(device)}"
                f" in slice {slice_.metadata.name}: {error}"
            ) from None
    return False


def _pool(
    id_: PoolId, entries: list[SliceDevices], whole_pool: WholePool, gates: FeatureGates
) -> Pool | None:
    """None if a newer generation exists elsewhere: what this node has is of the past."""
    generation = max(entry.slice.spec.pool.generation for entry in entries)
    kept = [entry for entry in entries if entry.slice.spec.pool.generation == generation]
    announced = kept[0].slice.spec.pool.resource_slice_count
    waits = any(
        device.device.binding_conditions is not None for entry in kept for device in entry.devices
    )
    others: list[SliceDevices] = []
    if len(kept) != announced:
        everywhere = list(whole_pool(id_))
        if any(entry.slice.spec.pool.generation > generation for entry in everywhere):
            return None
        same = [entry for entry in everywhere if entry.slice.spec.pool.generation == generation]
        known = [entry for entry in same if not _is_ignored_for_groups(entry.slice, gates)]
        if len(known) != announced:
            return Pool(id_, generation, is_incomplete=True, waits_for_binding=waits)
        mine = {id(entry.slice) for entry in kept}
        others = [
            entry
            for entry in known
            if id(entry.slice) not in mine and not _is_ignored(entry.slice, gates)
        ]
    return _complete_pool(id_, generation, kept, others, waits, gates)


def _complete_pool(
    id_: PoolId,
    generation: int,
    kept: Sequence[SliceDevices],
    others: Sequence[SliceDevices],
    waits: bool,
    gates: FeatureGates,
) -> Pool:
    partitionable = PARTITIONABLE_DEVICES in gates
    counters: CounterBudget = {}
    problem = ""
    if partitionable:
        for entry in (*kept, *others):
            for counter_set in entry.slice.spec.shared_counters or ():
                if counter_set.name in counters:
                    problem = problem or f"duplicate counter set {counter_set.name}"
                counters[counter_set.name] = {
                    name: counter.value.nanos for name, counter in counter_set.counters.items()
                }
    providers = sorted(
        (entry for entry in kept if not (partitionable and entry.slice.spec.shared_counters)),
        key=lambda entry: entry.slice.metadata.name,
    )
    devices = tuple(device for entry in providers for device in entry.devices)
    elsewhere = tuple(device for entry in others for device in entry.devices)
    names: set[str] = set()
    for device in devices:
        if device.id.device in names:
            problem = problem or f"duplicate device {device.id.device}"
        names.add(device.id.device)
    if partitionable:
        problem = problem or _unknown_counter((*devices, *elsewhere), counters)
    if problem:
        return Pool(id_, generation, invalid_because=problem, waits_for_binding=waits)
    return Pool(
        id_,
        generation,
        devices=devices,
        others=elsewhere,
        counters=counters,
        waits_for_binding=waits,
    )


def _unknown_counter(
    devices: Iterable[PoolDevice], counters: Mapping[str, Mapping[str, int]]
) -> str:
    for device in devices:
        for use in device.counter_uses:
            known = counters.get(use.counter_set)
            if known is None:
                return f"device {device.id.device} consumes unknown counter set {use.counter_set}"
            for name in use.amounts:
                if name not in known:
                    return (
                        f"device {device.id.device} consumes unknown counter"
                        f" {use.counter_set}/{name}"
                    )
    return ""
