"""Problems made to keep a search busy: small to write down, exponential or large to solve."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from allot.allocation import AllocationProblem
from allot.api.claims import CapacityRequirements, DeviceConstraint, DeviceRequest, ResourceClaim
from allot.api.quantity import Quantity
from allot.api.resource import ALL
from allot.api.slices import (
    Counter,
    CounterSet,
    Device,
    DeviceCounterConsumption,
    ResourcePool,
    ResourceSlice,
)
from allot.features import GATES, FeatureGates
from allot.testing.builders import (
    DRIVER,
    a_claim,
    a_device,
    a_problem,
    a_request,
    a_selector,
    a_slice,
    an_alternative,
    an_exact_request,
)

SETS_PER_SLICE: Final = 8


def with_every_gate(*slices: ResourceSlice, claim: ResourceClaim) -> AllocationProblem:
    return a_problem(claim, slices=slices, gates=FeatureGates(GATES))


def exactly(name: str = "gpu", **fields: Any) -> DeviceRequest:
    return a_request(name, exactly=an_exact_request(**fields))


def equals(attribute: str, value: int) -> Any:
    return a_selector(f'device.attributes["{DRIVER}"].{attribute} == {value}')


def counters_that_exclude_each_other(devices: int, counters: int, count: int) -> AllocationProblem:
    """Every counter suffices for one of the two devices that use it: an independent set is wanted."""
    chance = random.Random(1)  # noqa: S311
    used_by: list[list[int]] = [[] for _ in range(devices)]
    for counter in range(counters):
        for device in chance.sample(range(devices), 2):
            used_by[device].append(counter)
    one = {"slots": Counter(Quantity.of(1))}
    sets = [CounterSet(f"set-{number}", one) for number in range(counters)]
    several = [sets[at : at + SETS_PER_SLICE] for at in range(0, counters, SETS_PER_SLICE)]
    pool = ResourcePool("node-1", 1, 1 + len(several))
    partitions = tuple(
        Device(
            name=f"gpu-{number:03}",
            consumes_counters=tuple(DeviceCounterConsumption(f"set-{each}", one) for each in used),
        )
        for number, used in enumerate(used_by)
    )
    return with_every_gate(
        a_slice(*partitions, name="devices", pool=pool),
        *(
            a_slice(name=f"sets-{at}", pool=pool, devices=None, shared_counters=tuple(some))
            for at, some in enumerate(several)
        ),
        claim=a_claim(exactly(count=count)),
    )


def too_many_for_one_claim() -> AllocationProblem:
    """Fifteen and twenty devices are more than a claim can get, whichever they are."""
    devices = (
        a_device(
            f"gpu-{number:02}",
            capacity={"memory": f"{100 + number}"},
            allow_multiple_allocations=True,
        )
        for number in range(40)
    )
    nothing = an_alternative("nothing", selectors=(a_selector("false"),))
    claim = a_claim(
        a_request("a", first_available=(an_alternative("many", count=15), nothing)),
        a_request("b", first_available=(an_alternative("more", count=20),)),
    )
    return with_every_gate(a_slice(*devices), claim=claim)


def packing(devices: int, requests: int) -> AllocationProblem:
    """Shares of two capacities that do not go together well."""
    chance = random.Random(3)  # noqa: S311
    shared = (
        a_device(
            f"gpu-{number}",
            capacity={"memory": str(20 + number % 3), "cores": str(20 + number % 5)},
            allow_multiple_allocations=True,
        )
        for number in range(devices)
    )
    asked = (
        CapacityRequirements(
            {name: Quantity.of(chance.randint(5, 11)) for name in ("memory", "cores")}
        )
        for _ in range(requests)
    )
    wanted = [exactly(f"share-{at}", capacity=each) for at, each in enumerate(asked)]
    return with_every_gate(a_slice(*shared), claim=a_claim(*wanted))


def distinct_and_match(devices: int, requests: int) -> AllocationProblem:
    """More requests than there are distinct values, while others must match."""
    chance = random.Random(4)  # noqa: S311
    offered = []
    for number in range(devices):
        attributes: dict[str, bool | int | str] = {}
        attributes |= {f"a{at}": chance.randint(0, requests - 2) for at in range(4)}
        attributes |= {f"b{at}": chance.randint(0, 2) for at in range(3)}
        offered.append(a_device(f"gpu-{number:03}", attributes))
    names = [f"gpu-{number}" for number in range(requests)]
    constraints = [DeviceConstraint(distinct_attribute=f"{DRIVER}/a{at}") for at in range(4)]
    constraints += (
        DeviceConstraint(tuple(names[at::3]), match_attribute=f"{DRIVER}/b{at}") for at in range(3)
    )
    claim = a_claim(*map(exactly, names), constraints=tuple(constraints))
    return with_every_gate(a_slice(*offered), claim=claim)


def alternatives_and_constraints(
    devices: int, requests: int, alternatives: int
) -> AllocationProblem:
    chance = random.Random(5)  # noqa: S311
    offered = (
        a_device(f"gpu-{number:03}", {f"a{at}": chance.randint(0, 5) for at in range(6)})
        for number in range(devices)
    )
    names = [f"gpu-{number}" for number in range(requests)]
    wanted = [
        a_request(
            name,
            first_available=tuple(
                an_alternative(
                    f"way-{way}",
                    count=chance.randint(1, 3),
                    selectors=(equals(f"a{chance.randint(0, 5)}", chance.randint(0, 5)),),
                )
                for way in range(alternatives)
            ),
        )
        for name in names
    ]
    constraints = tuple(
        DeviceConstraint(
            tuple(chance.sample(names, 3)), match_attribute=f"{DRIVER}/a{chance.randint(0, 5)}"
        )
        for _ in range(requests)
    )
    return with_every_gate(a_slice(*offered), claim=a_claim(*wanted, constraints=constraints))


def all_devices(devices: int, requests: int) -> AllocationProblem:
    """Mode All of overlapping sets, as alternatives of each other."""
    offered = (a_device(f"gpu-{number:02}", {"a": number % 5}) for number in range(devices))
    wanted = [
        a_request(
            f"gpu-{number}",
            first_available=tuple(
                an_alternative(
                    f"way-{way}",
                    allocation_mode=ALL,
                    count=0,
                    selectors=(equals("a", (number + way) % 4),),
                )
                for way in range(4)
            ),
        )
        for number in range(requests)
    ]
    return with_every_gate(a_slice(*offered), claim=a_claim(*wanted))


def overlapping_domains(devices: int) -> AllocationProblem:
    """One request more than there are devices that any of them could use."""
    chance = random.Random(9)  # noqa: S311
    offered = (a_device(f"gpu-{number:02}", {"a": number}) for number in range(devices))
    wanted = []
    for number in range(devices):
        some = ", ".join(map(str, chance.sample(range(devices - 1), 4)))
        selector = a_selector(f'device.attributes["{DRIVER}"].a in [{some}]')
        wanted.append(exactly(f"gpu-{number}", selectors=(selector,)))
    return with_every_gate(a_slice(*offered), claim=a_claim(*wanted))


def expressions(devices: int, selectors: int) -> AllocationProblem:
    """Many selectors, of which the last one refuses every device for a reason of its own."""
    offered = (a_device(f"gpu-{number:04}", {"a": number}) for number in range(devices))
    passing = tuple(
        a_selector(f'device.attributes["{DRIVER}"].a >= {-number}') for number in range(selectors)
    )
    request = exactly(selectors=(*passing, equals("a", -1)))
    return with_every_gate(a_slice(*offered), claim=a_claim(request))


BOMBS: Final[dict[str, Callable[[], AllocationProblem]]] = {
    "counters": lambda: counters_that_exclude_each_other(30, 44, 17),
    "counters that fit": lambda: counters_that_exclude_each_other(44, 64, 22),
    "limit": too_many_for_one_claim,
    "packing": lambda: packing(5, 11),
    "distinct and match": lambda: distinct_and_match(40, 12),
    "alternatives": lambda: alternatives_and_constraints(40, 8, 6),
    "all": lambda: all_devices(15, 4),
    "overlapping": lambda: overlapping_domains(12),
    "expressions": lambda: expressions(300, 31),
}
