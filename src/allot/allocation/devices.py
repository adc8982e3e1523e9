"""Devices as allocation sees them: prepared once per slice, shared by all nodes that can use them."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.allocation.slice_cache import SliceCache
from allot.allocation.taints import NO_TAINT_RULES, PoolTaintRules
from allot.api.identities import DeviceId
from allot.api.lazy import lazy
from allot.api.slices import Device, DeviceCapacity, DeviceCounterConsumption, ResourceSlice
from allot.cel import CelDevice, cel_device

NOTHING_IN_COMMON: Final = frozenset({"\0"})
"""The groups of a counter set whose devices have disjoint groups: no device goes with all of them."""


def common_groups(placed: frozenset[str] | None, own: frozenset[str]) -> frozenset[str]:
    """The groups of a counter set after a device with the groups `own` was placed there.

    Empty if no device has groups; `NOTHING_IN_COMMON`, which is disjoint from all groups, if their groups are disjoint.
    """
    if placed is None:
        return own
    return (placed & own) or (NOTHING_IN_COMMON if placed or own else own)


class CounterUse:
    """What a device consumes of one counter set, in billionths, and its compatibility groups."""

    __slots__ = ("amounts", "counter_set", "groups")

    def __init__(self, use: DeviceCounterConsumption) -> None:
        self.counter_set = use.counter_set
        self.amounts = {name: counter.value.nanos for name, counter in use.counters.items()}
        self.groups = frozenset(use.compatibility_groups)


class PoolId(NamedTuple):
    """A pool, unique in the cluster. Sorts by driver, then name."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"

    def device_id(self, name: str) -> DeviceId:
        """The identity of a device of this pool."""
        return DeviceId(self.driver, self.pool, name)


CounterKey = tuple[str, str, str, str]
"""Driver, pool, counter set and counter."""
SetKey = tuple[str, str, str]
"""Driver, pool and counter set."""


class PoolDevice:
    """One device of a slice."""

    def __init__(
        self,
        slice_: ResourceSlice,
        device: Device,
        taint_rules: PoolTaintRules = NO_TAINT_RULES,
        cache: SliceCache | None = None,
        number: int = 0,
    ) -> None:
        spec = slice_.spec
        self.cache = cache or SliceCache(1)
        """Cached results for the devices of the slice, of which this is the one with `number`."""
        self.number = number
        self.id = spec.device_id(device)
        self.slice = slice_
        self.device = device
        self.shareable = device.allow_multiple_allocations is True
        self.waits_for_binding = bool(device.binding_conditions)
        self.taints = taint_rules.blocking_taints(device)
        self.taint_rules = taint_rules.rules
        self.skip_node_operations = spec.skip_node_operations
        self.selects_node_itself = spec.per_device_node_selection is True
        self.capacity: tuple[tuple[str, DeviceCapacity], ...] = tuple(
            sorted(device.capacity.items())
        )
        uses = device.consumes_counters
        self.counter_uses = tuple([CounterUse(use) for use in uses]) if uses else ()

    @lazy
    def prepared(self) -> CelDevice:
        """The device as CEL reads it; created when the first expression needs it."""
        device = self.device
        return cel_device(
            self.id.driver,
            device.name,
            device.attributes,
            device.capacity,
            device.allow_multiple_allocations,
        )

    @property
    def has_plain_attributes(self) -> bool:
        """Whether all attributes are numbers, booleans and texts: only versions can be invalid."""
        for attribute in self.device.attributes.values():
            if attribute.versions is not None or (
                attribute.string is None and attribute.int_ is None and attribute.bool_ is None
            ):
                return False
        return True

    @lazy
    def pool(self) -> PoolId:
        """The pool that the device belongs to."""
        return PoolId(self.id.driver, self.id.pool)

    @lazy
    def counter_keys(self) -> tuple[tuple[CounterKey, int], ...]:
        """What the device consumes of each counter."""
        driver, pool = self.pool
        amounts: dict[CounterKey, int] = {}
        for use in self.counter_uses:
            for name, amount in use.amounts.items():
                key = (driver, pool, use.counter_set, name)
                amounts[key] = amounts.get(key, 0) + amount
        return tuple(amounts.items())

    @lazy
    def group_keys(self) -> tuple[tuple[SetKey, frozenset[str]], ...]:
        """The counter sets that the device uses, and its compatibility groups there."""
        return tuple(((*self.pool, use.counter_set), use.groups) for use in self.counter_uses)

    def __repr__(self) -> str:
        return f"PoolDevice({self.id})"
