"""Pools: resource slices grouped by driver and pool name, newest generation only.

A pool is complete when every slice that its generation announces is present. What an incomplete or
invalid pool means for a claim is decided in `requests` (mode All) and by the search, which skips it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any, Final, Protocol, TypeVar

from allot.allocation.devices import CounterUse, PoolDevice, PoolId
from allot.allocation.errors import AllocationError
from allot.allocation.kubernetes_texts import device_text
from allot.allocation.node_selectors import selects_node
from allot.allocation.problem import TargetNode
from allot.allocation.search.work_meter import WorkMeter
from allot.allocation.slice_cache import SliceCache
from allot.allocation.taints import may_select
from allot.api.classes import DeviceTaintRule
from allot.api.slices import ResourceSlice
from allot.features import COMPATIBILITY_GROUPS, PARTITIONABLE_DEVICES, FeatureGates

__all__ = ["CounterBudget", "Pool", "PoolId", "SliceDevices", "WholePool", "gather_pools"]

_SLICE_WORK: Final = 2
_PREPARATION_WORK: Final = 8
"""Units of work to check a slice, and to prepare a device of it."""
_UNITS_AT_ONCE: Final = 64
"""How many devices are metered together."""
_LONGEST_RUN: Final = 256
"""How many items are sorted at once."""


class _SupportsLessThan(Protocol):
    """What can be sorted."""

    def __lt__(self, other: Any, /) -> bool: ...


Item = TypeVar("Item")


class SliceDevices:
    """A slice and its devices, prepared when a node first needs them."""

    __slots__ = ("_devices", "_taint_rules", "slice")

    def __init__(self, slice_: ResourceSlice, taint_rules: Sequence[DeviceTaintRule] = ()) -> None:
        self.slice = slice_
        self._taint_rules = taint_rules
        self._devices: tuple[PoolDevice, ...] | None = None

    def devices(self, meter: WorkMeter) -> tuple[PoolDevice, ...]:
        """The devices as allocation sees them."""
        if self._devices is None:
            spec = self.slice.spec
            units = len(self._taint_rules)
            rules = [
                rule for rule in self._taint_rules if may_select(rule, spec.driver, spec.pool.name)
            ]
            devices = spec.devices or ()
            cache = SliceCache(len(devices))
            prepared = []
            for number, device in enumerate(devices):
                units += _PREPARATION_WORK + len(rules)
                if units >= _UNITS_AT_ONCE:
                    meter.spend(units)
                    units = 0
                prepared.append(PoolDevice(self.slice, device, rules, cache, number))
            meter.spend(units)
            self._devices = tuple(prepared)
        return self._devices


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
        counted: Mapping[str, PoolDevice] | None = None,
        counters: CounterBudget | None = None,
        is_incomplete: bool = False,
        invalid_because: str = "",
        waits_for_binding: bool = False,
    ) -> None:
        self.id = id_
        self.generation = generation
        self.devices = devices
        self.counters = counters or {}
        self.counted = counted or {}
        """The devices that use counters, also those that only other nodes can use."""
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
    slices: Iterable[SliceDevices],
    whole_pool: WholePool,
    node: TargetNode,
    gates: FeatureGates,
    meter: WorkMeter,
) -> tuple[Pool, ...]:
    """The pools `node` can use, in the order in which allocation tries them.

    `slices` are those for this node, then those not bound to one node. Incomplete and invalid pools are
    included and marked, so that a failure can name them. `AllocationError` if a node selector is malformed.
    """
    relevant: dict[PoolId, list[SliceDevices]] = {}
    for entry in slices:
        meter.spend(_SLICE_WORK)
        if _is_ignored(entry.slice, gates, meter) or not _is_relevant(entry.slice, node, meter):
            continue
        spec = entry.slice.spec
        relevant.setdefault(PoolId(spec.driver, spec.pool.name), []).append(entry)
    pools = []
    for id_, entries in relevant.items():
        pool = _pool(id_, entries, whole_pool, gates, meter)
        if pool is not None:
            pools.append(pool)
    return tuple(_sorted_in_runs(pools, lambda pool: (pool.waits_for_binding, pool.id), meter))


def _is_ignored(slice_: ResourceSlice, gates: FeatureGates, meter: WorkMeter) -> bool:
    spec = slice_.spec
    if PARTITIONABLE_DEVICES not in gates and (
        spec.per_device_node_selection or spec.shared_counters
    ):
        return True
    return _is_ignored_for_groups(slice_, gates, meter)


def _is_ignored_for_groups(slice_: ResourceSlice, gates: FeatureGates, meter: WorkMeter) -> bool:
    if COMPATIBILITY_GROUPS in gates:
        return False
    devices = slice_.spec.devices or ()
    meter.spend(len(devices) // 2)
    return any(use.compatibility_groups for device in devices for use in device.consumes_counters)


def _is_relevant(slice_: ResourceSlice, node: TargetNode, meter: WorkMeter) -> bool:
    spec = slice_.spec
    if not spec.per_device_node_selection:
        try:
            return selects_node(node, spec.node_name, spec.all_nodes, spec.node_selector, meter)
        except AllocationError as error:
            raise AllocationError(
                f"failed to perform node selection for slice {slice_.metadata.name}: {error}"
            ) from None
    for device in spec.devices or ():
        meter.spend(1)
        try:
            if selects_node(node, device.node_name, device.all_nodes, device.node_selector, meter):
                return True
        except AllocationError as error:
            raise AllocationError(
                f"failed to perform node selection for device {device_text(device)}"
                f" in slice {slice_.metadata.name}: {error}"
            ) from None
    return False


def _pool(
    id_: PoolId,
    entries: list[SliceDevices],
    whole_pool: WholePool,
    gates: FeatureGates,
    meter: WorkMeter,
) -> Pool | None:
    """None if a newer generation exists elsewhere: the slices of this node are outdated."""
    generation, kept = _newest(entries, meter)
    announced = kept[0].slice.spec.pool.resource_slice_count
    waits = any(_waits_for_binding(entry.slice, meter) for entry in kept)
    others: list[SliceDevices] = []
    if len(kept) != announced:
        known: list[SliceDevices] = []
        for entry in whole_pool(id_):
            meter.spend(_SLICE_WORK)
            if entry.slice.spec.pool.generation > generation:
                return None
            if entry.slice.spec.pool.generation == generation and not _is_ignored_for_groups(
                entry.slice, gates, meter
            ):
                known.append(entry)
        if len(known) != announced:
            return Pool(id_, generation, is_incomplete=True, waits_for_binding=waits)
        mine = {id(entry.slice) for entry in kept}
        for entry in known:
            meter.spend(1)
            if id(entry.slice) not in mine and not _is_ignored(entry.slice, gates, meter):
                others.append(entry)
    return _complete_pool(id_, generation, kept, others, waits, gates, meter)


def _newest(entries: Iterable[SliceDevices], meter: WorkMeter) -> tuple[int, list[SliceDevices]]:
    """The highest generation, and its slices in order."""
    newest = 0
    kept: list[SliceDevices] = []
    for entry in entries:
        meter.spend(1)
        generation = entry.slice.spec.pool.generation
        if not kept or generation > newest:
            newest, kept = generation, []
        if generation == newest:
            kept.append(entry)
    return newest, kept


def _waits_for_binding(slice_: ResourceSlice, meter: WorkMeter) -> bool:
    devices = slice_.spec.devices or ()
    meter.spend(1 + len(devices) // 8)
    return any(device.binding_conditions is not None for device in devices)


def _complete_pool(
    id_: PoolId,
    generation: int,
    kept: Sequence[SliceDevices],
    others: Sequence[SliceDevices],
    waits: bool,
    gates: FeatureGates,
    meter: WorkMeter,
) -> Pool:
    partitionable = PARTITIONABLE_DEVICES in gates
    counters: CounterBudget = {}
    problem = ""
    if partitionable:
        for entry in (*kept, *others):
            for counter_set in entry.slice.spec.shared_counters or ():
                meter.spend(1 + len(counter_set.counters) // 4)
                if counter_set.name in counters:
                    problem = problem or f"duplicate counter set {counter_set.name}"
                counters[counter_set.name] = {
                    name: counter.value.nanos for name, counter in counter_set.counters.items()
                }
    providers = _sorted_in_runs(
        [entry for entry in kept if not (partitionable and entry.slice.spec.shared_counters)],
        lambda entry: entry.slice.metadata.name,
        meter,
    )
    devices: list[PoolDevice] = []
    names: set[str] = set()
    counted: dict[str, PoolDevice] = {}
    unknown = ""
    for entry in providers:
        prepared = entry.devices(meter)
        meter.spend(1 + len(prepared) // 4)
        devices += prepared
        before = len(names)
        names.update([device.id.device for device in prepared])
        if len(names) != before + len(prepared):
            problem = problem or f"duplicate device {_first_duplicate(devices, meter)}"
        unknown = unknown or _counted(prepared, counters, counted, meter)
    for entry in others:
        unknown = unknown or _counted(entry.devices(meter), counters, counted, meter)
    if partitionable:
        problem = problem or unknown
    if problem:
        return Pool(id_, generation, invalid_because=problem, waits_for_binding=waits)
    return Pool(
        id_,
        generation,
        devices=tuple(devices),
        counted=counted,
        counters=counters,
        waits_for_binding=waits,
    )


def _first_duplicate(devices: Iterable[PoolDevice], meter: WorkMeter) -> str:
    names: set[str] = set()
    for device in devices:
        meter.spend(1)
        if device.id.device in names:
            return device.id.device
        names.add(device.id.device)
    raise AssertionError("there is one")


def _counted(
    devices: Iterable[PoolDevice],
    counters: CounterBudget,
    counted: dict[str, PoolDevice],
    meter: WorkMeter,
) -> str:
    """Add the devices that use counters; returns what is wrong with one of them, if anything."""
    units = 0
    for device in devices:
        for use in device.counter_uses:
            counted[device.id.device] = device
            units += 1 + len(use.amounts) // 8
            if units >= _UNITS_AT_ONCE:
                meter.spend(units)
                units = 0
            known = counters.get(use.counter_set)
            if known is None or not use.amounts.keys() <= known.keys():
                return f"device {device.id.device} consumes unknown {_unknown(use, known)}"
    meter.spend(units)
    return ""


def _unknown(use: CounterUse, known: Mapping[str, int] | None) -> str:
    if known is None:
        return f"counter set {use.counter_set}"
    name = next(name for name in use.amounts if name not in known)
    return f"counter {use.counter_set}/{name}"


def _sorted_in_runs(
    items: list[Item], key: Callable[[Item], _SupportsLessThan], meter: WorkMeter
) -> Iterable[Item]:
    """The items in order. Many items are sorted in short runs, so that the deadline is checked in between."""
    if len(items) <= _LONGEST_RUN:
        meter.spend(len(items))
        return sorted(items, key=key)
    runs = []
    for start in range(0, len(items), _LONGEST_RUN):
        meter.spend(_LONGEST_RUN)
        runs.append(sorted(items[start : start + _LONGEST_RUN], key=key))
    return _merged(runs, key, meter)


def _merged(
    runs: list[list[Item]], key: Callable[[Item], _SupportsLessThan], meter: WorkMeter
) -> Iterator[Item]:
    for item in merge(*runs, key=key):
        meter.spend(4)
        yield item
