"""Devices as allocation sees them: prepared once per slice, shared by all nodes that can use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from allot.allocation.taints import blocking_taints
from allot.api.classes import DeviceTaintRule
from allot.api.identities import DeviceId
from allot.api.slices import Device, DeviceCapacity, ResourceSlice
from allot.cel import PreparedDevice, prepare_device


class CounterUse:
    """What a device uses up of one counter set, in billionths, and the groups it goes with."""

    __slots__ = ("amounts", "counter_set", "groups")

    def __init__(
        self, counter_set: str, amounts: Mapping[str, int], groups: frozenset[str]
    ) -> None:
        self.counter_set = counter_set
        self.amounts = amounts
        self.groups = groups


CounterKey = tuple[str, str, str, str | None]
"""Driver, pool, counter set and counter; without a counter it stands for the set as a whole."""


class PoolDevice:
    """One device of a slice."""

    def __init__(
        self, slice_: ResourceSlice, device: Device, taint_rules: Iterable[DeviceTaintRule]
    ) -> None:
        spec = slice_.spec
        self.id = DeviceId(spec.driver, spec.pool.name, device.name)
        self.slice = slice_
        self.device = device
        self.shareable = device.allow_multiple_allocations is True
        self.taints = blocking_taints(self.id, device.taints, taint_rules)
        self.skip_node_operations = spec.skip_node_operations
        self.selects_node_itself = spec.per_device_node_selection is True
        self.capacity: tuple[tuple[str, DeviceCapacity], ...] = tuple(
            sorted(device.capacity.items())
        )
        self.counter_uses = tuple(
            CounterUse(
                use.counter_set,
                {name: counter.value.nanos for name, counter in use.counters.items()},
                frozenset(use.compatibility_groups),
            )
            for use in device.consumes_counters
        )

    @cached_property
    def prepared(self) -> PreparedDevice:
        """The device in the form in which CEL reads it; made when the first expression needs it."""
        device = self.device
        return prepare_device(
            self.id.driver,
            device.name,
            device.attributes,
            device.capacity,
            device.allow_multiple_allocations,
        )

    @cached_property
    def counters_wanted(self) -> Mapping[str, Mapping[str, int]]:
        """What the device uses up, by counter set and counter."""
        wanted: dict[str, Mapping[str, int]] = {}
        for use in self.counter_uses:
            before = wanted.get(use.counter_set)
            if before is None:
                wanted[use.counter_set] = use.amounts
            else:
                names = {**before, **use.amounts}
                wanted[use.counter_set] = {
                    name: before.get(name, 0) + use.amounts.get(name, 0) for name in names
                }
        return wanted

    @cached_property
    def counter_keys(self) -> tuple[tuple[CounterKey, int], ...]:
        """What the device uses up, counter by counter, and as 1 each of the sets it uses."""
        driver, pool, _ = self.id
        keys: list[tuple[CounterKey, int]] = []
        for counter_set, amounts in self.counters_wanted.items():
            keys.append(((driver, pool, counter_set, None), 1))
            keys += (
                ((driver, pool, counter_set, name), amount) for name, amount in amounts.items()
            )
        return tuple(keys)

    def __repr__(self) -> str:
        return f"PoolDevice({self.id})"
