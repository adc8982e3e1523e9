"""Laws of allocation: the search against brute force, every answer against a verifier of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from allot.allocation import (
    Allocated,
    AllocationOutcome,
    AllocationProblem,
    Failed,
    Infeasible,
    Inventory,
    Ledger,
    StepBudget,
    TargetNode,
    allocate,
    replay,
)
from allot.allocation.errors import AllocationError
from allot.allocation.requests import Alternative, PreparedRequest, prepare_claims
from allot.allocation.search.attempt import AllocationAttempt
from allot.allocation.search.candidates import CandidateRules
from allot.api.claims import (
    AllocationResult,
    CapacityRequirements,
    DeviceClaim,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from allot.api.classes import DeviceClass, DeviceClassSpec
from allot.api.identities import DeviceId
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.resource import (
    ALL,
    EXACT_COUNT,
    NO_SCHEDULE,
    CELDeviceSelector,
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
)
from allot.api.slices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from allot.features import GATES, LIST_TYPE_ATTRIBUTES, FeatureGates

DRIVER: Final = "d.example.com"
NODE: Final = TargetNode("node-1")
BUDGET: Final = StepBudget(20_000)
EVERYTHING: Final = FeatureGates(GATES)
WITHOUT_LISTS: Final = FeatureGates(name for name in GATES if name != LIST_TYPE_ATTRIBUTES)

# --- small problems with every feature ---

AMOUNTS: Final = st.sampled_from(["0", "1", "2", "3"]).map(Quantity.parse)
ATTRIBUTES: Final = st.sampled_from(
    [
        DeviceAttribute(int_=1),
        DeviceAttribute(int_=2),
        DeviceAttribute(string="x"),
        DeviceAttribute(strings=("x", "y")),
        DeviceAttribute(ints=(1, 3)),
    ]
)
SELECTORS: Final = st.sampled_from(
    [
        "true",
        "device.allowMultipleAllocations",
        f'device.attributes["{DRIVER}"].?color.hasValue()',
        f'device.attributes["{DRIVER}"].size >= 1',  # an error where there is no size
    ]
).map(lambda expression: DeviceSelector(CELDeviceSelector(expression)))
DERIVED: Final = st.sampled_from(
    [
        f'device.attributes["{DRIVER}"].size % 2',  # an error where there is no size
        'device.name < "device-2"',
        '["x", device.name]',
    ]
).map(lambda expression: DeviceDerivedAttribute(f"{DRIVER}/derived", expression))
POLICIES: Final = st.sampled_from(
    [
        None,
        CapacityRequestPolicy(default=Quantity.parse("1")),
        CapacityRequestPolicy(
            default=Quantity.parse("2"),
            valid_values=(Quantity.parse("2"), Quantity.parse("3")),
        ),
        CapacityRequestPolicy(
            default=Quantity.parse("1"),
            valid_range=CapacityRequestPolicyRange(
                Quantity.parse("1"), Quantity.parse("4"), Quantity.parse("2")
            ),
        ),
    ]
)


@st.composite
def devices(draw: DrawFn, name: str, *, with_counters: bool) -> Device:
    attributes: dict[str, DeviceAttribute] = {}
    if draw(st.booleans()):
        attributes["color"] = draw(ATTRIBUTES)
    if draw(st.integers(0, 7)):
        attributes["size"] = DeviceAttribute(int_=draw(st.integers(0, 2)))
    capacity = {}
    if draw(st.booleans()):
        value = Quantity.parse(draw(st.sampled_from(["2", "4"])))
        capacity["memory"] = DeviceCapacity(value, draw(POLICIES))
    uses: tuple[DeviceCounterConsumption, ...] = ()
    if with_counters and draw(st.booleans()):
        groups = draw(st.sampled_from([(), (), ("a",), ("a", "b")]))
        amounts = {"slots": Counter(draw(AMOUNTS))}
        uses = (DeviceCounterConsumption(draw(st.sampled_from(["s", "t"])), amounts, groups),)
    tainted = draw(st.integers(0, 5)) == 0
    return Device(
        name=name,
        attributes=attributes,
        capacity=capacity,
        consumes_counters=uses,
        taints=(DeviceTaint("bad", "", NO_SCHEDULE),) if tainted else (),
        allow_multiple_allocations=draw(st.sampled_from([None, None, True])),
        binding_conditions=("ready",) if draw(st.integers(0, 9)) == 0 else (),
    )


@st.composite
def pools(draw: DrawFn, name: str) -> list[ResourceSlice]:
    with_counters = draw(st.booleans())
    pool = ResourcePool(name, 1, 2 if with_counters else 1)
    listed = tuple(
        draw(devices(f"device-{number}", with_counters=with_counters))
        for number in range(draw(st.integers(1, 4)))
    )

    def slice_of_pool(suffix: str, **spec: Any) -> ResourceSlice:
        return ResourceSlice(
            ObjectMeta(name=f"{name}-{suffix}"),
            ResourceSliceSpec(driver=DRIVER, pool=pool, node_name=NODE.name, **spec),
        )

    slices = [slice_of_pool("devices", devices=listed)]
    if with_counters:
        sets = tuple(
            CounterSet(set_name, {"slots": Counter(Quantity.of(draw(st.integers(1, 4))))})
            for set_name in ("s", "t")
        )
        slices.append(slice_of_pool("counters", shared_counters=sets))
    return slices


@st.composite
def request_fields(draw: DrawFn, *, can_fail: bool) -> dict[str, Any]:
    wants_all = can_fail and draw(st.integers(0, 7)) == 0
    selected = can_fail and draw(st.integers(0, 2)) == 0
    return {
        "device_class_name": "any",
        "selectors": (draw(SELECTORS),) if selected else (),
        "allocation_mode": ALL if wants_all else EXACT_COUNT,
        "count": 0 if wants_all else draw(st.integers(1, 3)),
        "tolerations": (DeviceToleration(operator="Exists"),) if draw(st.booleans()) else (),
        "capacity": CapacityRequirements({"memory": draw(AMOUNTS)})
        if draw(st.integers(0, 2)) == 0
        else None,
        "derived_attributes": (draw(DERIVED),) if can_fail and draw(st.booleans()) else (),
    }


@st.composite
def requests(draw: DrawFn, name: str, *, can_fail: bool) -> DeviceRequest:
    if draw(st.integers(0, 2)) == 0:
        alternatives = tuple(
            DeviceSubRequest(
                name=f"alternative-{number}", **draw(request_fields(can_fail=can_fail))
            )
            for number in range(draw(st.integers(1, 2)))
        )
        return DeviceRequest(name, None, alternatives)
    admin = True if draw(st.integers(0, 7)) == 0 else None
    return DeviceRequest(
        name, ExactDeviceRequest(**draw(request_fields(can_fail=can_fail)), admin_access=admin)
    )


@st.composite
def claims(draw: DrawFn, name: str, *, can_fail: bool) -> ResourceClaim:
    names = [f"request-{number}" for number in range(draw(st.integers(1, 3)))]
    asked = tuple(draw(requests(each, can_fail=can_fail)) for each in names)
    constraints = []
    for _ in range(draw(st.integers(0, 2))):
        attribute = f"{DRIVER}/{draw(st.sampled_from(['color', 'size', 'derived']))}"
        about = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=2)))
        if draw(st.booleans()):
            constraints.append(DeviceConstraint(about, match_attribute=attribute))
        else:
            constraints.append(DeviceConstraint(about, distinct_attribute=attribute))
    spec = ResourceClaimSpec(DeviceClaim(asked, tuple(constraints)))
    return ResourceClaim(ObjectMeta(name=name, namespace="default"), spec)


@st.composite
def taken(draw: DrawFn, available: list[ResourceSlice]) -> list[AllocationResult]:
    allocations = []
    for slice_ in available:
        for device in slice_.spec.devices or ():
            if draw(st.integers(0, 4)) == 0:
                shared = device.allow_multiple_allocations and draw(st.booleans())
                result = DeviceRequestAllocationResult(
                    "r",
                    DRIVER,
                    slice_.spec.pool.name,
                    device.name,
                    share_id="share" if shared else None,
                    consumed_capacity=dict.fromkeys(device.capacity, Quantity.parse("1"))
                    if shared
                    else {},
                )
                devices_ = msgspec.structs.replace(AllocationResult().devices, results=(result,))
                allocations.append(AllocationResult(devices_))
    return allocations


@st.composite
def small_problems(draw: DrawFn) -> AllocationProblem:
    """Half of them have nothing that can end in an error, so that forward checking may prune everywhere."""
    can_fail = draw(st.booleans())
    gates = EVERYTHING if draw(st.integers(0, 3)) else WITHOUT_LISTS
    slices = [
        slice_
        for name in ("pool-a", "pool-b")[: draw(st.integers(1, 2))]
        for slice_ in draw(pools(name))
    ]
    ledger = Ledger(gates)
    for number, allocation in enumerate(draw(taken(slices))):
        ledger.add(f"default/other-{number}", allocation)
    return AllocationProblem(
        NODE,
        [
            draw(claims(f"claim-{number}", can_fail=can_fail))
            for number in range(draw(st.integers(1, 2 if can_fail else 3)))
        ],
        {"any": DeviceClass(ObjectMeta(name="any"), DeviceClassSpec())},
        Inventory(gates, slices),
        ledger,
    )


# --- brute force: every combination in order, nothing skipped ---

Picked = list[tuple[str, DeviceId]]


class BruteForce:
    def __init__(self, problem: AllocationProblem) -> None:
        gates = problem.inventory.gates
        view = problem.inventory.view(problem.node)
        self.rules = CandidateRules(problem.node, view, problem.ledger, gates)
        self.claims = prepare_claims(problem, self.rules)
        self.attempt = AllocationAttempt(self.rules, len(self.claims))
        self.requests: list[PreparedRequest] = [
            request for claim in self.claims for request in claim.requests
        ]

    def satisfied(self, at: int) -> bool:
        if at == len(self.requests):
            return True
        return any(self.filled(at, each, 0, 0) for each in self.requests[at].alternatives)

    def filled(self, at: int, alternative: Alternative, nth: int, start: int) -> bool:
        if alternative.wants_all:
            if not alternative.all_devices:
                return False
            if nth == alternative.count:
                return self.satisfied(at + 1)
            pick = self.attempt.check_required(alternative, alternative.all_devices[nth])
            return pick is not None and self.tried(pick, at, alternative, nth, 0)
        if nth == alternative.count:
            return self.satisfied(at + 1)
        for index in range(start, len(self.attempt.devices)):
            pick = self.attempt.check(alternative, index)
            if pick is not None and self.tried(pick, at, alternative, nth, index + 1):
                return True
        return False

    def tried(self, pick: Any, at: int, alternative: Alternative, nth: int, start: int) -> bool:
        self.attempt.place(pick)
        if self.filled(at, alternative, nth + 1, start):
            return True
        self.attempt.undo()
        return False


def answer_by_brute_force(problem: AllocationProblem) -> Picked | str | None:
    """Devices by request, or the error, or None if nothing fits."""
    try:
        force = BruteForce(problem)
        if not force.satisfied(0):
            return None
    except AllocationError as error:
        return str(error)
    attempt = force.attempt
    return [(pick.alternative.label, attempt.devices[pick.index].id) for pick in attempt.picks]


def counting_ids() -> Callable[[], str]:
    numbers = count()
    return lambda: f"share-{next(numbers)}"


def answer_of(outcome: AllocationOutcome) -> Picked | str | None:
    match outcome:
        case Allocated(results):
            return [
                (result.request, DeviceId(result.driver, result.pool, result.device))
                for each in results
                for result in each.devices.results
            ]
        case Failed(error):
            return error
        case Infeasible():
            return None
    raise AssertionError(f"no answer: {outcome}")


@settings(max_examples=400, deadline=None)
@given(small_problems())
def test_forward_checking_changes_no_outcome(problem: AllocationProblem) -> None:
    """The same first solution, the same error, or none in both."""
    outcome = allocate(problem, BUDGET, counting_ids(), failures_before_forward_checking=-1)

    assert answer_of(outcome) == answer_by_brute_force(problem)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(small_problems())
def test_forward_checking_changes_no_outcome_in_long_searches(problem: AllocationProblem) -> None:
    outcome = allocate(problem, BUDGET, counting_ids(), failures_before_forward_checking=-1)

    assert answer_of(outcome) == answer_by_brute_force(problem)


@settings(max_examples=100, deadline=None)
@given(small_problems(), st.integers(1, 20))
def test_forward_checking_may_begin_at_any_step(problem: AllocationProblem, steps: int) -> None:
    outcome = allocate(problem, BUDGET, counting_ids(), failures_before_forward_checking=steps)

    assert answer_of(outcome) == answer_by_brute_force(problem)


# --- an independent check of every answer ---


def verify(problem: AllocationProblem, slices: list[ResourceSlice], outcome: Allocated) -> None:
    """Straight from the API objects: nothing is handed out twice or beyond what there is."""
    device_by_id = {
        DeviceId(DRIVER, slice_.spec.pool.name, device.name): device
        for slice_ in slices
        for device in slice_.spec.devices or ()
    }
    exclusive: list[DeviceId] = []
    paid: set[DeviceId] = set()
    consumed: dict[tuple[DeviceId, str], int] = {}
    charged: dict[tuple[str, str, str], int] = {}
    for result in (each for got in outcome.results for each in got.devices.results):
        id_ = DeviceId(result.driver, result.pool, result.device)
        device = device_by_id[id_]
        assert (result.share_id is not None) == (device.allow_multiple_allocations is True)
        if result.share_id is None and not result.admin_access:
            exclusive.append(id_)
            assert not problem.ledger.is_dedicated(id_)
        for name, amount in result.consumed_capacity.items():
            consumed[id_, name] = consumed.get((id_, name), 0) + amount.nanos
        if result.share_id is not None and (id_ in paid or problem.ledger.has_share(id_)):
            continue
        paid.add(id_)
        for use in device.consumes_counters:
            for name, counter in use.counters.items():
                key = (id_.pool, use.counter_set, name)
                charged[key] = charged.get(key, 0) + counter.value.nanos
    assert len(exclusive) == len(set(exclusive))
    for (id_, name), total in consumed.items():
        already = problem.ledger.consumed(id_, ()).get(name, 0)
        assert total + already <= device_by_id[id_].capacity[name].value.nanos
    for pool in problem.inventory.view(problem.node).pools:
        left = problem.ledger.available(pool).counters
        for (pool_name, set_name, name), total in charged.items():
            assert pool_name != pool.id.pool or not total or total <= left[set_name][name]


def verify_counts(problem: AllocationProblem, outcome: Allocated) -> None:
    """Every request got its devices, all different, through exactly one of its alternatives."""
    for claim, got in zip(problem.claims, outcome.results, strict=True):
        for request in claim.spec.devices.requests:
            mine = [
                result
                for result in got.devices.results
                if result.request.partition("/")[0] == request.name
            ]
            (label,) = {result.request for result in mine}
            chosen = label.partition("/")[2]
            alternatives = {each.name: each for each in request.first_available}
            spec = alternatives[chosen] if chosen else request.exactly
            assert spec is not None
            assert spec.allocation_mode == ALL or len(mine) == spec.count
            assert len(mine) == len({(result.pool, result.device) for result in mine})


def verify_constraints(
    problem: AllocationProblem, slices: list[ResourceSlice], outcome: Allocated
) -> None:
    """Attributes that devices carry themselves match, or differ, as the claim wants it."""
    lists = LIST_TYPE_ATTRIBUTES in problem.inventory.gates
    attributes = {
        (slice_.spec.pool.name, device.name): device.attributes
        for slice_ in slices
        for device in slice_.spec.devices or ()
    }
    for claim, got in zip(problem.claims, outcome.results, strict=True):
        for constraint in claim.spec.devices.constraints:
            name = constraint.match_attribute or constraint.distinct_attribute or ""
            if name.endswith("derived"):
                continue
            sets = [
                _elements(attributes[result.pool, result.device][name.partition("/")[2]], lists)
                for result in got.devices.results
                if not constraint.requests
                or result.request.partition("/")[0] in constraint.requests
            ]
            if constraint.match_attribute is not None:
                assert not sets or frozenset.intersection(*sets)
            else:
                assert sum(map(len, sets)) == len(frozenset().union(*sets))


def _elements(attribute: DeviceAttribute, lists: bool) -> frozenset[tuple[str, object]]:
    """What of it is compared. While lists are off, one that is there all the same is one value."""
    (value,) = msgspec.to_builtins(attribute).values()
    is_list = isinstance(value, list | tuple)
    elements = value if is_list and lists else (tuple(value) if is_list else value,)
    return frozenset((type(element).__name__, element) for element in elements)


@settings(max_examples=200, deadline=None)
@given(small_problems())
def test_answers_hold_up(problem: AllocationProblem) -> None:
    outcome = allocate(problem, BUDGET, counting_ids(), failures_before_forward_checking=-1)

    if isinstance(outcome, Allocated):
        slices = list(problem.inventory.slices())
        verify(problem, slices, outcome)
        verify_counts(problem, outcome)
        verify_constraints(problem, slices, outcome)


# --- the same devices again ---


def without_shares(results: Iterable[AllocationResult]) -> list[AllocationResult]:
    """Everything but the identities of shares, which are new every time."""
    return [
        msgspec.structs.replace(
            result,
            devices=msgspec.structs.replace(
                result.devices,
                results=tuple(
                    msgspec.structs.replace(device, share_id=device.share_id and "share")
                    for device in result.devices.results
                ),
            ),
        )
        for result in results
    ]


@settings(max_examples=500, deadline=None)
@given(small_problems())
def test_an_allocation_can_be_replayed_as_long_as_nothing_changes(
    problem: AllocationProblem,
) -> None:
    outcome = allocate(problem, BUDGET, counting_ids())
    if not isinstance(outcome, Allocated):
        return

    again = replay(problem, outcome.results, counting_ids())

    assert again is not None
    assert without_shares(again) == without_shares(outcome.results)


@settings(max_examples=500, deadline=None)
@given(small_problems(), st.data())
def test_what_is_replayed_later_holds_up(problem: AllocationProblem, data: st.DataObject) -> None:
    """Another claim takes devices meanwhile: either the same devices can still be had together, or there is no answer."""
    outcome = allocate(problem, BUDGET, counting_ids())
    if not isinstance(outcome, Allocated):
        return
    taken = data.draw(st.sampled_from(outcome.results))
    problem.ledger.add("meanwhile", taken)

    again = replay(problem, outcome.results, counting_ids())

    exclusive = [
        device for device in taken.devices.results if not (device.share_id or device.admin_access)
    ]
    if exclusive:
        assert again is None
    elif again is not None:
        slices = list(problem.inventory.slices())
        verify(problem, slices, Allocated(again))
        verify_counts(problem, Allocated(again))
        verify_constraints(problem, slices, Allocated(again))
