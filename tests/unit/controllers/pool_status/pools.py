"""What pools are made of in these tests."""

from __future__ import annotations

from typing import Any

from allot.allocation.allocated_devices import Ledger
from allot.allocation.pools import PoolId
from allot.api.claims import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from allot.api.classes import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from allot.api.meta import ObjectMeta
from allot.api.pool_status import PoolStatus
from allot.api.quantity import Quantity
from allot.api.resource import DeviceTaint
from allot.api.slices import (
    Counter,
    CounterSet,
    Device,
    DeviceCounterConsumption,
    ResourcePool,
    ResourceSlice,
)
from allot.controllers.pool_status import newest_slices, pool_availability, pool_status
from allot.features import DEFAULTS, FeatureGates
from allot.testing.builders import DRIVER, a_device, a_slice

POOL = "node-1"


def without(rule: str) -> FeatureGates:
    """Our gates and rules without this one."""
    return DEFAULTS.switched({rule: False})


def devices(*names: str) -> tuple[Device, ...]:
    return tuple(a_device(name) for name in names)


def tainted(name: str, effect: str = "NoSchedule") -> Device:
    return a_device(name, taints=(DeviceTaint(key="k", effect=effect),))


def slice_of(
    *listed: Device,
    name: str = "slice",
    pool: str = POOL,
    generation: int = 1,
    announced: int = 1,
    **spec: Any,
) -> ResourceSlice:
    spec.setdefault("devices", listed)
    return a_slice(name=name, pool=ResourcePool(pool, generation, announced), **spec)


def counters(**amounts: str) -> dict[str, Counter]:
    return {name: Counter(Quantity.parse(text)) for name, text in amounts.items()}


def counter_set(name: str = "gpu", **amounts: str) -> CounterSet:
    return CounterSet(name, counters(**amounts))


def partition(name: str, profile: str | int, memory: str, set_name: str = "gpu") -> Device:
    use = DeviceCounterConsumption(set_name, counters(memory=memory))
    return a_device(name, {"profile": profile}, consumes_counters=(use,))


def holding(*results: dict[str, Any]) -> Ledger:
    """A ledger in which each result is of a claim of its own."""
    ledger = Ledger(DEFAULTS)
    for number, fields in enumerate(results):
        result = DeviceRequestAllocationResult(driver=DRIVER, **({"pool": POOL} | fields))
        ledger.add(f"claim-{number}", AllocationResult(DeviceAllocationResult((result,))))
    return ledger


def taken(*names: str) -> Ledger:
    return holding(*({"device": name} for name in names))


def a_rule(effect: str = "NoSchedule", **selector: str) -> DeviceTaintRule:
    return DeviceTaintRule(
        ObjectMeta(name="rule"),
        DeviceTaintRuleSpec(DeviceTaintSelector(**selector), DeviceTaint(key="k", effect=effect)),
    )


def the_status(
    *slices: ResourceSlice,
    ledger: Ledger | None = None,
    rules: tuple[DeviceTaintRule, ...] = (),
    attribute: str | None = None,
    gates: FeatureGates = DEFAULTS,
) -> PoolStatus:
    """The figures of the one pool that these slices are of."""
    ledger = ledger or Ledger(DEFAULTS)
    ((pool, newest),) = newest_slices(slices).items()
    assert pool == PoolId(DRIVER, POOL)
    return pool_status(pool_availability(pool, newest, ledger, rules), ledger, attribute, gates)
