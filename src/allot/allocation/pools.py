"""Pools: resource slices grouped by driver and pool name, newest generation only.

A pool is complete when every slice that its generation announces is present. What an incomplete or
invalid pool means for a claim is decided in `requests` (mode All) and by the search, which skips it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from typing import Any, Final, Protocol, TypeVar

from allot.allocation.devices import CounterUse, PoolDevice, PoolId
from allot.allocation.errors import AllocationError
from allot.allocation.kubernetes_texts import device_text
from allot.allocation.node_selectors import selects_node
from allot.allocation.problem import TargetNode
from allot.allocation.search.work_meter import WorkMeter
from allot.allocation.slice_cache import SliceCache
from allot.allocation.taints import PoolTaintRules, TaintRules
from allot.api.slices import ResourceSlice
from allot.features import COMPATIBILITY_GROUPS, PARTITIONABLE_DEVICES, FeatureGates

__all__ = [
    "CounterBudget",
    "Pool",
    "PoolAssembly",
    "PoolId",
    "SliceDevices",
    "WholePool",
    "gather_pools",
]

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
    """A slice and its devices, prepared when a node first needs them.

    What is asked about all devices is found out once: a node's pools are gathered again after each change of a slice.
    """

    __slots__ = (
        "_devices",
        "_has_groups",
        "_taint_rules",
        "_waits_for_binding",
        "counted",
        "has_duplicates",
        "names",
        "slice",
    )

    def __init__(self, slice_: ResourceSlice, taint_rules: TaintRules | None = None) -> None:
        self.slice = slice_
        self._taint_rules = taint_rules
        self._devices: tuple[PoolDevice, ...] | None = None
        self._has_groups: bool | None = None
        self._waits_for_binding: bool | None = None
        self.names: tuple[str, ...] = ()
        """Of its devices, once they are prepared."""
        self.has_duplicates = False
        """Whether two of them have the same name."""
        self.counted: tuple[PoolDevice, ...] = ()
        """Those of its devices that use counters, once they are prepared."""

    def has_groups(self, meter: WorkMeter) -> bool:
        """Whether a device names compatibility groups."""
        if self._has_groups is None:
            devices = self.slice.spec.devices or ()
            meter.spend(len(devices) // 2)
            self._has_groups = any(
                use.compatibility_groups for device in devices for use in device.consumes_counters
            )
        return self._has_groups

    def waits_for_binding(self, meter: WorkMeter) -> bool:
        """Whether a device has binding conditions."""
        meter.spend(1)
        if self._waits_for_binding is None:
            devices = self.slice.spec.devices or ()
            meter.spend(len(devices) // 8)
            self._waits_for_binding = any(
                device.binding_conditions is not None for device in devices
            )
        return self._waits_for_binding

    def devices(self, meter: WorkMeter) -> tuple[PoolDevice, ...]:
        """The devices as allocation sees them."""
        if self._devices is None:
            spec = self.slice.spec
            given = self._taint_rules.sorted if self._taint_rules is not None else ()
            units = len(given)
            rules = PoolTaintRules(given, spec.driver, spec.pool.name)
            devices = spec.devices or ()
            cache = SliceCache(len(devices))
            prepared = []
            for number, device in enumerate(devices):
                units += _PREPARATION_WORK
                if units >= _UNITS_AT_ONCE:
                    meter.spend(units)
                    units = 0
                prepared.append(PoolDevice(self.slice, device, rules, cache, number))
            meter.spend(units)
            self._devices = tuple(prepared)
            self.names = tuple([device.id.device for device in prepared])
            self.has_duplicates = len(set(self.names)) != len(self.names)
            self.counted = tuple([device for device in prepared if device.counter_uses])
            meter.kept += len(prepared)
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
    known: dict[PoolId, PoolAssembly] | None = None,
) -> tuple[Pool, ...]:
    """The pools `node` can use, in the order in which allocation tries them.

    `slices` are those for this node, then those not bound to one node. Incomplete and invalid pools are
    included and marked, so that a failure can name them. `AllocationError` if a node selector is malformed.
    Complete pools whose slices are those in `known` are taken from there; it then has the pools of this node.
    """
    known = {} if known is None else known
    relevant: dict[PoolId, list[SliceDevices]] = {}
    for entry in slices:
        meter.spend(_SLICE_WORK)
        if _is_ignored(entry, gates, meter) or not _is_relevant(entry.slice, node, meter):
            continue
        spec = entry.slice.spec
        relevant.setdefault(PoolId(spec.driver, spec.pool.name), []).append(entry)
    pools = []
    for id_, entries in relevant.items():
        pool = _pool(id_, entries, whole_pool, gates, meter, known)
        if pool is not None:
            pools.append(pool)
    for id_ in [id_ for id_ in known if id_ not in relevant]:
        del known[id_]
    return tuple(_sorted_in_runs(pools, lambda pool: (pool.waits_for_binding, pool.id), meter))


def _is_ignored(entry: SliceDevices, gates: FeatureGates, meter: WorkMeter) -> bool:
    spec = entry.slice.spec
    if PARTITIONABLE_DEVICES not in gates and (
        spec.per_device_node_selection or spec.shared_counters
    ):
        return True
    return _is_ignored_for_groups(entry, gates, meter)


def _is_ignored_for_groups(entry: SliceDevices, gates: FeatureGates, meter: WorkMeter) -> bool:
    return COMPATIBILITY_GROUPS not in gates and entry.has_groups(meter)


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
    gathered: dict[PoolId, PoolAssembly],
) -> Pool | None:
    """None if a newer generation exists elsewhere: the slices of this node are outdated."""
    generation, kept = _newest(entries, meter)
    announced = kept[0].slice.spec.pool.resource_slice_count
    waits = any(entry.waits_for_binding(meter) for entry in kept)
    others: list[SliceDevices] = []
    if len(kept) != announced:
        known: list[SliceDevices] = []
        for entry in whole_pool(id_):
            meter.spend(_SLICE_WORK)
            if entry.slice.spec.pool.generation > generation:
                return None
            if entry.slice.spec.pool.generation == generation and not _is_ignored_for_groups(
                entry, gates, meter
            ):
                known.append(entry)
        if len(known) != announced:
            return Pool(id_, generation, is_incomplete=True, waits_for_binding=waits)
        mine = {id(entry.slice) for entry in kept}
        for entry in known:
            meter.spend(1)
            if id(entry.slice) not in mine and not _is_ignored(entry, gates, meter):
                others.append(entry)
    assembly = gathered.get(id_)
    if assembly is None or assembly.kept != kept or assembly.others != others:
        assembly = gathered[id_] = PoolAssembly(id_, generation, kept, others, waits, gates)
    return assembly.finished(meter)


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


class PoolAssembly:
    """A complete pool, put together from its slices. If the deadline passes, it goes on from there the next time."""

    def __init__(
        self,
        id_: PoolId,
        generation: int,
        kept: list[SliceDevices],
        others: list[SliceDevices],
        waits: bool,
        gates: FeatureGates,
    ) -> None:
        """`kept` are the slices for the node, `others` those of the same pool for other nodes."""
        self.kept = kept
        self.others = others
        self._id = id_
        self._generation = generation
        self._waits = waits
        self._partitionable = PARTITIONABLE_DEVICES in gates
        self._counters: CounterBudget | None = None
        self._providers: list[SliceDevices] | None = None
        self._added = 0
        """How many of the providers, and then of the others, are done."""
        self._devices: list[PoolDevice] = []
        self._names: set[str] = set()
        self._counted: dict[str, PoolDevice] = {}
        self._problem = ""
        self._unknown = ""
        self._pool: Pool | None = None

    def finished(self, meter: WorkMeter) -> Pool:
        """The pool; `DeadlineExceededError` if it takes longer."""
        if self._pool is None:
            if self._counters is None:
                self._counters = self._shared_counters(meter)
            if self._providers is None:
                self._providers = self._sorted_providers(meter)
            self._add_slices(self._counters, self._providers, meter)
            problem = self._problem or (self._unknown if self._partitionable else "")
            self._pool = Pool(
                self._id,
                self._generation,
                devices=() if problem else tuple(self._devices),
                counted=None if problem else self._counted,
                counters=None if problem else self._counters,
                invalid_because=problem,
                waits_for_binding=self._waits,
            )
            self._devices, self._names = [], set()
        return self._pool

    def _shared_counters(self, meter: WorkMeter) -> CounterBudget:
        counters: CounterBudget = {}
        if not self._partitionable:
            return counters
        for entry in (*self.kept, *self.others):
            for counter_set in entry.slice.spec.shared_counters or ():
                meter.spend(1 + len(counter_set.counters) // 4)
                if counter_set.name in counters:
                    self._problem = self._problem or f"duplicate counter set {counter_set.name}"
                counters[counter_set.name] = {
                    name: counter.value.nanos for name, counter in counter_set.counters.items()
                }
        return counters

    def _sorted_providers(self, meter: WorkMeter) -> list[SliceDevices]:
        providers = [
            entry
            for entry in self.kept
            if not (self._partitionable and entry.slice.spec.shared_counters)
        ]
        return list(_sorted_in_runs(providers, lambda entry: entry.slice.metadata.name, meter))

    def _add_slices(
        self, counters: CounterBudget, providers: list[SliceDevices], meter: WorkMeter
    ) -> None:
        slices = [*providers, *self.others]
        while self._added < len(slices):
            # What may end at the deadline comes first: it can be done again.
            entry = slices[self._added]
            prepared = entry.devices(meter)
            meter.spend(1 + len(prepared) // 16)
            unknown = self._unknown or _counted(entry, counters, self._counted, meter)
            if self._added < len(providers):
                if not self._problem and self._has_duplicates(entry):
                    self._problem = f"duplicate device {self._first_duplicate(entry)}"
                self._devices += prepared
                self._names.update(entry.names)
            self._unknown = unknown
            self._added += 1

    def _has_duplicates(self, entry: SliceDevices) -> bool:
        return entry.has_duplicates or not self._names.isdisjoint(entry.names)

    def _first_duplicate(self, entry: SliceDevices) -> str:
        seen = set(self._names)
        for name in entry.names:
            if name in seen:
                return name
            seen.add(name)
        raise AssertionError("there is one")


def _counted(
    entry: SliceDevices,
    counters: CounterBudget,
    counted: dict[str, PoolDevice],
    meter: WorkMeter,
) -> str:
    """Add the devices that use counters; returns what is wrong with one of them, if anything."""
    units = 0
    entry.devices(meter)
    for device in entry.counted:
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
