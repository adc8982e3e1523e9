"""Devices change while claims hold them: no history of publications breaks a law of allocation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import (
    Allocated,
    AllocationProblem,
    Inventory,
    Ledger,
    StepBudget,
    TargetNode,
    allocate,
)
from allot.api.base import replace
from allot.api.claims import (
    AllocationResult,
    CapacityRequirements,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from allot.api.classes import DeviceClass, DeviceClassSpec
from allot.api.identities import DeviceId
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.resource import NO_SCHEDULE, DeviceTaint
from allot.api.slices import (
    CapacityRequestPolicy,
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    ResourcePool,
    ResourceSlice,
)
from allot.apiserver.admission import device_exclusivity
from allot.apiserver.admission.device_exclusivity import AlreadyHeld
from allot.features import CONSUMABLE_CAPACITY, DEFAULTS, FeatureGates
from allot.rules import RuleSet
from allot.storage.interface import Delete, Entry, Put
from allot.testing.builders import DRIVER, a_claim, a_request, a_slice, an_exact_request
from allot.validation.consumed_capacity import validate_consumed_capacity
from tests.property.allocation_auditor import Auditor, Broken

NAMES: Final = ("d0", "d1", "d2")
NODES: Final = ("node-1", "node-2")
POOL: Final = "pool"
CLASSES: Final = {DRIVER: DeviceClass(ObjectMeta(name=DRIVER), DeviceClassSpec())}
BUDGET: Final = StepBudget(5_000)

amounts = st.sampled_from(["1", "2", "4"]).map(Quantity.parse)


def seldom(value: Any, otherwise: Any) -> st.SearchStrategy[Any]:
    """One time in five, so that most devices can be had."""
    return st.sampled_from([otherwise] * 4 + [value])


@st.composite
def devices(draw: st.DrawFn) -> tuple[Device, ...]:
    present = [name for name in NAMES if draw(seldom(False, True))]
    return tuple(draw(changing_device(name)) for name in present)


@st.composite
def changing_device(draw: st.DrawFn, name: str) -> Device:
    capacity = {}
    for capacity_name in draw(st.sampled_from([(), ("memory",), ("memory", "links")])):
        default = draw(st.none() | amounts)
        policy = None if default is None else CapacityRequestPolicy(default=default)
        capacity[capacity_name] = DeviceCapacity(draw(amounts), policy)
    uses = draw(st.none() | amounts)
    conditions = draw(seldom(("attached",), None))
    return Device(
        name=name,
        allow_multiple_allocations=draw(st.booleans()),
        capacity=capacity,
        taints=draw(seldom((DeviceTaint("bad", "", NO_SCHEDULE),), ())),
        binding_conditions=conditions,
        binding_failure_conditions=("broken",) if conditions else (),
        consumes_counters=()
        if uses is None
        else (DeviceCounterConsumption("set", {"slots": Counter(uses)}),),
    )


class Publish(NamedTuple):
    """The driver publishes other devices: of a new generation or not, for one node or for all."""

    devices: tuple[Device, ...]
    slots: Quantity
    node: str
    for_all: bool
    is_new_generation: bool


class Ask(NamedTuple):
    """A claim is allocated on a node."""

    node: str
    claim: ResourceClaim


class Free(NamedTuple):
    """The claim that came so many places ago is deallocated."""

    place: int


class Switch(NamedTuple):
    """The gate of consumable capacity is switched, and the scheduler starts anew."""

    consumable: bool


Step = Publish | Ask | Free | Switch


@st.composite
def requests(draw: st.DrawFn) -> Ask:
    asked = draw(st.sampled_from([None, None, {"memory": "1"}, {"memory": "2"}, {"links": "1"}]))
    wants_all = draw(seldom(True, False))
    exactly = an_exact_request(
        allocation_mode="All" if wants_all else "ExactCount",
        count=0 if wants_all else draw(seldom(2, 1)),
        capacity=None
        if asked is None
        else CapacityRequirements({name: Quantity.parse(text) for name, text in asked.items()}),
    )
    many = draw(seldom(2, 1))
    claim = a_claim(*(a_request(f"r{number}", exactly) for number in range(many)))
    return Ask(draw(seldom(*reversed(NODES))), claim)


publications = st.builds(
    Publish,
    devices(),
    st.sampled_from(["4", "8"]).map(Quantity.parse),
    seldom(*reversed(NODES)),
    seldom(True, False),
    st.booleans(),
)
steps = st.lists(
    publications
    | requests()
    | requests()
    | st.builds(Free, st.integers(0, 3))
    | st.builds(Switch, st.booleans()),
    max_size=25,
)


class World:
    """A scheduler's view of a cluster, audited."""

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates
        self._auditor = Auditor()
        self._slices: list[ResourceSlice] = []
        self._generation = 1
        self._allocations: dict[str, AllocationResult] = {}
        self._numbers = count()
        self._restart()

    def _restart(self) -> None:
        self._inventory = Inventory(self._gates, self._slices)
        self._ledger = Ledger(self._gates)
        for name, allocation in self._allocations.items():
            self._ledger.add(name, allocation)

    def take(self, step: Step) -> None:
        match step:
            case Publish():
                self._publish(step)
            case Ask(node, claim):
                self._ask(node, claim)
            case Free(place) if place < len(self._allocations):
                name = list(self._allocations)[-1 - place]
                del self._allocations[name]
                self._ledger.remove(name)
                self._auditor.released(name)
            case Switch(consumable):
                self._gates = self._gates.switched({CONSUMABLE_CAPACITY: consumable})
                self._restart()

    def _publish(self, step: Publish) -> None:
        self._generation += step.is_new_generation
        self._slices = list(slices_of(step, self._generation))
        for slice_ in self._slices:
            self._inventory.put(slice_)
        self._auditor.published(self._slices)

    def _ask(self, node: str, claim: ResourceClaim) -> None:
        problem = AllocationProblem(
            TargetNode(node), [claim], CLASSES, self._inventory, self._ledger
        )
        outcome = allocate(problem, BUDGET, lambda: f"share-{next(self._numbers)}")
        if isinstance(outcome, Allocated):
            name = f"default/{next(self._numbers)}"
            self._allocations[name] = outcome.results[0]
            self._auditor.allocated(name, outcome.results[0])
            self._ledger.add(name, outcome.results[0])


def slices_of(step: Publish, generation: int) -> tuple[ResourceSlice, ResourceSlice]:
    where: dict[str, Any] = (
        {"all_nodes": True, "node_name": None} if step.for_all else {"node_name": step.node}
    )
    pool = ResourcePool(POOL, generation, 2)
    return (
        a_slice(*step.devices, name="devices", pool=pool, **where | {"devices": step.devices}),
        a_slice(
            name="counters",
            pool=pool,
            devices=None,
            shared_counters=(CounterSet("set", {"slots": Counter(step.slots)}),),
            **where,
        ),
    )


@settings(max_examples=300, deadline=None)
@given(publications, steps)
def test_no_history_breaks_a_law(first: Publish, history: list[Step]) -> None:
    world = World(DEFAULTS)
    world.take(first)
    for step in history:
        world.take(step)


def test_the_auditor_notices_what_v1_38_does() -> None:
    """A device that was shared, and is dedicated now: v1.38 gives it out again."""
    world = World(DEFAULTS.with_rules(RuleSet.V1_38))
    shared, dedicated = (
        Publish(
            (Device("d0", allow_multiple_allocations=allows),),
            Quantity.of(1),
            NODES[0],
            False,
            True,
        )
        for allows in (True, False)
    )
    claim = a_claim(a_request("r", an_exact_request()))
    world.take(shared)
    world.take(Ask(NODES[0], claim))
    world.take(dedicated)

    with pytest.raises(Broken, match="given out again"):
        world.take(Ask(NODES[0], claim))


# --- the API server ---


class Write(NamedTuple):
    """A client writes a claim's status: any devices, in any form."""

    results: tuple[DeviceRequestAllocationResult, ...]


@st.composite
def writes(draw: st.DrawFn) -> Write:
    consumed = st.dictionaries(
        st.sampled_from(["memory", "links"]),
        st.sampled_from(["-1", "0", "1", "2", "4"]).map(Quantity.parse),
    )
    results = draw(
        st.lists(
            st.builds(
                lambda device, share, amounts_: DeviceRequestAllocationResult(
                    "r", DRIVER, POOL, device, share_id=share, consumed_capacity=amounts_
                ),
                st.sampled_from(NAMES),
                st.none() | st.sampled_from(["s0", "s1", "s2", "s3"]),
                consumed,
            ),
            min_size=1,
            max_size=2,
            unique_by=lambda result: result.device,
        )
    )
    return Write(tuple(results))


class Records:
    """The API server's records of holders, as in its store, audited."""

    def __init__(self) -> None:
        self._auditor = Auditor()
        self._published: dict[DeviceId, Device] = {}
        self._entries: dict[str, Entry] = {}
        self._claims: list[ResourceClaim] = []
        self._revisions = count(1)
        self._generation = 1

    def take(self, step: Publish | Write | Free, *, unchecked: bool = False) -> None:
        match step:
            case Publish():
                self._generation += 1
                self._published = {
                    DeviceId(DRIVER, POOL, device.name): device for device in step.devices
                }
                self._auditor.published(slices_of(step, self._generation)[:1])
            case Write(results):
                name = f"c{next(self._revisions)}"
                old = ResourceClaim(ObjectMeta(name=name, namespace="default", uid=name))
                allocation = AllocationResult(DeviceAllocationResult(results))
                new = replace(old, status=ResourceClaimStatus(allocation))
                if self._write(old, new, unchecked=unchecked):
                    self._claims.append(new)
                    judge: Callable[..., None] = self._auditor.allocated
                    if unchecked:
                        judge = self._auditor.inherited
                    judge(name, allocation)
            case Free(place) if place < len(self._claims):
                old = self._claims.pop(-1 - place)
                assert self._write(old, None, unchecked=False)
                self._auditor.released(old.metadata.name)

    def _write(self, old: ResourceClaim, new: ResourceClaim | None, *, unchecked: bool) -> bool:
        """Whether the server accepts it. `unchecked` is a server without these rules."""
        before, after = map(device_exclusivity.holdings_of, (old, new))
        entries = {
            device: self._entries.get(device_exclusivity.record_key(device))
            for device in device_exclusivity.touched_devices(before, after)
        }
        if (
            not unchecked
            and new
            and any(validate_consumed_capacity(new, old, self._published, DEFAULTS))
        ):
            return False
        published = {} if unchecked else self._published
        changed = device_exclusivity.changed_records(
            before, after, entries, published, checks_shares=not unchecked
        )
        if isinstance(changed, AlreadyHeld):
            return False
        for operation in changed:
            match operation:
                case Put(key, value):
                    revision = next(self._revisions)
                    self._entries[key] = Entry(key, value, revision, revision)
                case Delete(key):
                    del self._entries[key]
        return True


@settings(max_examples=300, deadline=None)
@given(
    st.lists(writes(), max_size=3),
    st.lists(
        publications | writes() | writes() | st.builds(Free, st.integers(0, 3)),
        max_size=25,
    ),
)
def test_the_api_server_accepts_no_history_that_breaks_a_law(
    stored: list[Write], history: list[Publish | Write | Free]
) -> None:
    """Also where claims are stored that an older server accepted. Counters are the scheduler's."""
    records = Records()
    for write in stored:
        records.take(write, unchecked=True)
    for step in history:
        records.take(step)
