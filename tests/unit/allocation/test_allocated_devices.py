"""The ledger: who holds what, and what that leaves."""

from __future__ import annotations

import copy
import random

from allot.allocation import Inventory, Ledger, TargetNode
from allot.api.claims import AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult
from allot.api.identities import DeviceId
from allot.api.quantity import Quantity
from allot.api.slices import Counter, CounterSet, DeviceCounterConsumption, ResourcePool
from allot.features import CONSUMABLE_CAPACITY, GATES, FeatureGates
from allot.testing.builders import DRIVER, a_device, a_slice

EVERYTHING = FeatureGates(GATES)
GPU = DeviceId(DRIVER, "node-1", "gpu-0")


def holding(device: str = "gpu-0", **fields: object) -> AllocationResult:
    result = DeviceRequestAllocationResult("r", DRIVER, "node-1", device, **fields)  # type: ignore[arg-type]
    return AllocationResult(DeviceAllocationResult((result,)))


def a_share(amount: str) -> AllocationResult:
    return holding(share_id=f"share-{amount}", consumed_capacity={"memory": Quantity.parse(amount)})


def test_a_whole_device_is_held_until_it_is_released() -> None:
    ledger = Ledger(EVERYTHING)

    ledger.add("default/a", holding())

    assert ledger.is_dedicated(GPU)
    assert ledger.holders(GPU) == ("default/a",)
    ledger.remove("default/a")
    assert not ledger.is_dedicated(GPU)
    assert ledger.snapshot() == Ledger(EVERYTHING).snapshot()


def test_shares_add_up() -> None:
    ledger = Ledger(EVERYTHING)

    ledger.add("default/a", a_share("1Gi"))
    ledger.add("default/b", a_share("2Gi"))

    assert ledger.consumed(GPU, ()) == {"memory": 3 * 2**30 * 10**9}
    assert not ledger.is_dedicated(GPU)
    ledger.remove("default/a")
    assert ledger.consumed(GPU, ()) == {"memory": 2 * 2**30 * 10**9}


def test_without_the_feature_a_share_is_the_whole_device() -> None:
    ledger = Ledger(FeatureGates(name for name in GATES if name != CONSUMABLE_CAPACITY))

    ledger.add("default/a", a_share("1Gi"))

    assert ledger.is_dedicated(GPU)


def test_admin_access_takes_nothing() -> None:
    ledger = Ledger(EVERYTHING)

    ledger.add("default/a", holding(admin_access=True))

    assert ledger.holders(GPU) == ()


def test_entering_a_claim_again_replaces_what_it_held() -> None:
    ledger = Ledger(EVERYTHING)

    ledger.add("default/a", holding())
    ledger.add("default/a", holding("gpu-1"))

    assert not ledger.is_dedicated(GPU)


def test_a_copy_without_a_claim_leaves_the_original_alone() -> None:
    ledger = Ledger(EVERYTHING)
    ledger.add("default/a", holding())

    other = ledger.without("default/a")

    assert ledger.is_dedicated(GPU)
    assert not other.is_dedicated(GPU)


def test_counters_are_what_taken_devices_leave() -> None:
    two = DeviceCounterConsumption("set", {"slots": Counter(Quantity.of(2))})
    pool = ResourcePool("node-1", 1, 2)
    inventory = Inventory(
        EVERYTHING,
        [
            a_slice(a_device("gpu-0", consumes_counters=(two,)), name="devices", pool=pool),
            a_slice(
                name="counters",
                pool=pool,
                devices=None,
                shared_counters=(CounterSet("set", {"slots": Counter(Quantity.of(7))}),),
            ),
        ],
    )
    (gathered,) = inventory.view(TargetNode("node-1")).pools
    ledger = Ledger(EVERYTHING)

    assert ledger.available(gathered).counters == {"set": {"slots": 7 * 10**9}}
    ledger.add("default/a", holding())
    assert ledger.available(gathered).counters == {"set": {"slots": 5 * 10**9}}
    ledger.remove("default/a")
    assert ledger.available(gathered).counters == {"set": {"slots": 7 * 10**9}}


def test_how_a_device_is_held_follows_every_change() -> None:
    """Also when it is asked for after each of them."""
    generator = random.Random(3)  # noqa: S311 - the same changes each time
    allocations = [holding(), a_share("1Gi"), a_share("2Gi"), holding(share_id="unstated")]
    ledger = Ledger(EVERYTHING)
    seen = set()
    for _ in range(300):
        holder = f"default/{generator.randrange(4)}"
        if generator.random() < 0.5:
            ledger.add(holder, generator.choice(allocations))
        else:
            ledger.remove(holder)
        held = ledger.held_as(GPU)
        forgetful = copy.copy(ledger)
        forgetful._held_as = {}

        assert held == forgetful.held_as(GPU)
        seen.add(held)

    assert len(seen) > 5
