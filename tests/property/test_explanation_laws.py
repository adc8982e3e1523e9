"""Laws of explanations: what is said to be in conflict is, needs all its members, and what is proposed helps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as replace_problem
from itertools import combinations, product
from typing import Any, Final, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from msgspec.structs import replace

from allot.allocation import (
    Allocated,
    AllocationProblem,
    Explanation,
    Inventory,
    Proof,
    StepBudget,
    Wording,
    allocate,
    explain,
    proposals,
)
from allot.allocation.explain import changes
from allot.api.claims import (
    CapacityRequirements,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.resource import CELDeviceSelector, DeviceSelector, DeviceToleration
from allot.api.slices import ResourcePool, ResourceSlice, ResourceSliceSpec
from allot.features import GATES, FeatureGates
from allot.testing.builders import (
    DRIVER,
    a_claim,
    a_device,
    a_problem,
    a_request,
    an_alternative,
    an_exact_request,
)
from tests.property.test_allocation_laws import answer_by_brute_force, small_problems

EVERYTHING: Final = FeatureGates(GATES)
NUMA: Final = f"{DRIVER}/numa"
NUMA_VALUES: Final[st.SearchStrategy[int | str]] = st.sampled_from([0, 1, "0"])
BUDGET: Final = StepBudget(100_000)

Spec = TypeVar("Spec", ExactDeviceRequest, DeviceSubRequest)
Part = tuple[str, bool, int]
"""A request (False) or constraint (True) of a claim, by its number."""


def parts_of(problem: AllocationProblem) -> list[Part]:
    return [
        (claim.metadata.name, is_constraint, number)
        for claim in problem.claims
        for is_constraint, listed in (
            (False, claim.spec.devices.requests),
            (True, claim.spec.devices.constraints),
        )
        for number in range(len(listed))
    ]


def only(problem: AllocationProblem, parts: Iterable[Part]) -> AllocationProblem:
    """The problem with some of its requests and constraints."""
    kept = set(parts)

    def fewer(claim: ResourceClaim) -> ResourceClaim:
        name, devices = claim.metadata.name, claim.spec.devices
        requests = [r for n, r in enumerate(devices.requests) if (name, False, n) in kept]
        limits = [c for n, c in enumerate(devices.constraints) if (name, True, n) in kept]
        changed = replace(devices, requests=tuple(requests), constraints=tuple(limits))
        return replace(claim, spec=replace(claim.spec, devices=changed))

    return replace_problem(problem, claims=[fewer(claim) for claim in problem.claims])


def conflict_of(problem: AllocationProblem, explanation: Explanation) -> list[Part]:
    assert explanation.conflict is not None
    numbers = {
        (f"default/{claim.metadata.name}", request.name): number
        for claim in problem.claims
        for number, request in enumerate(claim.spec.devices.requests)
    }
    found = [
        (each.claim.partition("/")[2], False, numbers[each.claim, each.request])
        for each in explanation.conflict.requests
    ] + [
        (each.claim.partition("/")[2], True, each.constraint)
        for each in explanation.conflict.constraints
    ]
    order = parts_of(problem)
    return sorted(found, key=order.index)


def fits(problem: AllocationProblem) -> bool:
    return isinstance(answer_by_brute_force(problem), list)


# --- all features, against brute force ---


@settings(max_examples=150)
@given(small_problems())
def test_a_conflict_is_the_first_of_the_shortest_that_brute_force_finds(
    problem: AllocationProblem,
) -> None:
    explanation = explain(problem, BUDGET)

    assert explanation.is_complete
    if explanation.conflict is None:
        assert fits(problem) or explanation.error
        return
    assert explanation.conflict.proof is Proof.IRREDUCIBLE
    found = conflict_of(problem, explanation)
    assert not fits(only(problem, found))
    for part in found:
        assert fits(only(problem, [each for each in found if each != part]))
    for size in range(1, len(found) + 1):
        for parts in combinations(parts_of(problem), size):
            if list(parts) == found:
                return
            assert all(is_constraint for _, is_constraint, _ in parts) or fits(only(problem, parts))


@settings(max_examples=100)
@given(small_problems())
def test_only_what_is_in_conflict_is_blamed(problem: AllocationProblem) -> None:
    explanation = explain(problem, BUDGET)
    if explanation.conflict is None:
        return
    blamed = {(each.claim, each.request) for each in explanation.conflict.requests}
    reported = {(report.claim, report.name): report.in_conflict for report in explanation.requests}

    assert {request for request, is_blamed in reported.items() if is_blamed} == blamed
    assert len(reported) == sum(len(claim.spec.devices.requests) for claim in problem.claims)
    short = [report for report in explanation.requests if report.in_conflict and report.short]
    assert short or explanation.conflict.constraints or explanation.error
    text = Wording().conflict(explanation)
    for claim, request in reported:
        if request not in {name for _, name in blamed}:
            assert request not in text
        if claim not in {name for name, _ in blamed}:
            assert claim not in text


@settings(max_examples=60)
@given(small_problems())
def test_every_proposal_makes_it_fit(problem: AllocationProblem) -> None:
    explanation = explain(problem, BUDGET)
    if explanation.conflict is None:
        return

    for proposal in proposals(problem, BUDGET, explanation=explanation):
        assert fits(changed(problem, proposal.change)), proposal.change


def changed(problem: AllocationProblem, change: changes.AnyChange) -> AllocationProblem:
    """The problem with a change, as a person would make it."""
    match change:
        case changes.WithoutConstraint(claim, number):
            parts = [
                part
                for part in parts_of(problem)
                if part != (claim.partition("/")[2], True, number)
            ]
            return only(problem, parts)
        case changes.ReleaseClaim(claim):
            (holder,) = [name for name in (claim,) if name in problem.ledger]
            return replace_problem(problem, ledger=problem.ledger.without(holder))
        case changes.OtherConstraintAttribute():
            return replace_problem(
                problem, claims=[renamed(each, change) for each in problem.claims]
            )
        case changes.WithoutRequest(claim, request):
            name = claim.partition("/")[2]
            (number,) = [
                index
                for each in problem.claims
                if each.metadata.name == name
                for index, own in enumerate(each.spec.devices.requests)
                if own.name == request
            ]
            return only(
                problem, [part for part in parts_of(problem) if part != (name, False, number)]
            )
        case changes.MoreDevices():
            return replace_problem(problem, inventory=with_copies(problem.inventory, change))
    claims = [changed_claim(claim, change) for claim in problem.claims]
    return replace_problem(problem, claims=claims)


def changed_claim(claim: ResourceClaim, change: Any) -> ResourceClaim:
    if change.claim != f"default/{claim.metadata.name}":
        return claim
    requests = tuple(changed_request(each, change) for each in claim.spec.devices.requests)
    devices = replace(claim.spec.devices, requests=requests)
    return replace(claim, spec=replace(claim.spec, devices=devices))


def changed_request(request: DeviceRequest, change: Any) -> DeviceRequest:
    name, _, alternative = change.request.partition("/")
    if request.name != name:
        return request
    if isinstance(change, changes.OnlyAlternative):
        kept = tuple(each for each in request.first_available if each.name == change.alternative)
        return replace(request, first_available=kept)
    if request.exactly is not None:
        return replace(request, exactly=changed_spec(request.exactly, change))
    alternatives = tuple(
        changed_spec(each, change) if each.name == alternative else each
        for each in request.first_available
    )
    return replace(request, first_available=alternatives)


def changed_spec(spec: Spec, change: Any) -> Spec:
    match change:
        case changes.FewerDevices():
            return replace(spec, count=change.count)
        case changes.CountInsteadOfAll():
            return replace(spec, allocation_mode="ExactCount", count=change.count)
        case changes.LessCapacity():
            requested = spec.capacity.requests if spec.capacity is not None else {}
            amounts = {**requested, change.capacity: Quantity.parse(change.amount)}
            return replace(spec, capacity=CapacityRequirements(amounts))
        case changes.OtherCapacityName():
            assert spec.capacity is not None
            amounts = dict(spec.capacity.requests)
            amounts[change.name] = amounts.pop(change.instead_of)
            return replace(spec, capacity=CapacityRequirements(amounts))
        case changes.WithoutSelector():
            kept = (*spec.selectors[: change.selector], *spec.selectors[change.selector + 1 :])
            return replace(spec, selectors=kept)
        case changes.OtherAttribute():
            selectors = list(spec.selectors)
            selectors[change.selector] = DeviceSelector(CELDeviceSelector(change.expression))
            return replace(spec, selectors=tuple(selectors))
        case changes.AddToleration():
            more = DeviceToleration(change.key, "Exists", "", change.effect)
            return replace(spec, tolerations=(*spec.tolerations, more))
        case changes.AddTolerations():
            return replace(spec, tolerations=(*spec.tolerations, *tolerations_of(change)))
        case changes.DerivedLikewise():
            likewise = DeviceDerivedAttribute(change.attribute, change.expression)
            return replace(spec, derived_attributes=(*spec.derived_attributes, likewise))
        case changes.ConvertedAttribute():
            derived = tuple(
                replace(each, expression=change.expression)
                if each.name == change.attribute
                else each
                for each in spec.derived_attributes
            )
            return replace(spec, derived_attributes=derived)
    raise AssertionError(change)


def renamed(claim: ResourceClaim, change: changes.OtherConstraintAttribute) -> ResourceClaim:
    if change.claim != f"default/{claim.metadata.name}":
        return claim
    devices = claim.spec.devices
    constraints = list(devices.constraints)
    old = constraints[change.constraint]
    constraints[change.constraint] = (
        replace(old, match_attribute=change.attribute)
        if old.match_attribute is not None
        else replace(old, distinct_attribute=change.attribute)
    )
    changed_devices = replace(devices, constraints=tuple(constraints))
    return replace(claim, spec=replace(claim.spec, devices=changed_devices))


def tolerations_of(change: changes.AddTolerations) -> list[DeviceToleration]:
    pairs = [taint.rpartition(":") for taint in change.taints]
    return [DeviceToleration(key, "Exists", "", effect) for key, _, effect in pairs]


def with_copies(inventory: Inventory, change: changes.MoreDevices) -> Inventory:
    (model,) = [
        each
        for slice_ in inventory.slices()
        for each in slice_.spec.devices or ()
        if (slice_.spec.driver, slice_.spec.pool.name, each.name)
        == (change.driver, change.pool, change.device)
    ]
    copies = tuple(
        replace(model, name=f"copy-{copy}", consumes_counters=(), taints=())
        for copy in range(change.number)
    )
    spec = ResourceSliceSpec(
        driver=change.driver,
        pool=ResourcePool("zz-copies", 1, 1),
        node_name=change.node,
        devices=copies,
    )
    more = Inventory(inventory.gates, inventory.slices())
    more.put(ResourceSlice(ObjectMeta(name="copies"), spec))
    return more


# --- counts, constraints, capacities and alternatives, by rules that stand here once more ---


@st.composite
def plain_problems(draw: DrawFn) -> AllocationProblem:
    """Problems whose rules are few enough to be stated again below."""
    devices = tuple(
        a_device(
            f"gpu-{number}",
            {"numa": draw(NUMA_VALUES)} if draw(st.integers(0, 5)) else {},
            {"memory": draw(st.sampled_from(["1", "2", "3"]))},
        )
        for number in range(draw(st.integers(1, 4)))
    )
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    requests = []
    for name in names:
        alternatives = draw(st.integers(0, 2))
        specs = [
            {
                "count": draw(st.integers(1, 2)),
                "capacity": CapacityRequirements(
                    {"memory": Quantity.parse(draw(st.sampled_from(["1", "2", "3"])))}
                ),
            }
            for _ in range(alternatives or 1)
        ]
        if alternatives:
            listed = [an_alternative(f"x{n}", **spec) for n, spec in enumerate(specs)]
            requests.append(a_request(name, first_available=tuple(listed)))
        else:
            requests.append(a_request(name, an_exact_request(**specs[0])))
    constraints = tuple(
        DeviceConstraint(
            tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=2))),
            **{draw(st.sampled_from(["match_attribute", "distinct_attribute"])): NUMA},
        )
        for _ in range(draw(st.integers(0, 2)))
    )
    claim = a_claim(*requests, constraints=constraints)
    return a_problem(claim, devices=devices, gates=EVERYTHING)


def fits_by_other_rules(problem: AllocationProblem) -> bool:
    """Every way to give devices to requests, judged without a line of the allocator."""
    devices = [
        device for slice_ in problem.inventory.slices() for device in slice_.spec.devices or ()
    ]
    (claim,) = problem.claims
    spec = claim.spec.devices
    choices = [
        [
            [device.name for device in chosen]
            for each in (request.first_available or (request.exactly,))
            if each is not None
            for chosen in combinations(devices, each.count)
            if all(
                each.capacity is not None
                and each.capacity.requests["memory"] <= device.capacity["memory"].value
                for device in chosen
            )
        ]
        for request in spec.requests
    ]
    values = {device.name: device.attributes.get("numa") for device in devices}
    for given_ in product(*choices):
        used = [name for names in given_ for name in names]
        if len(set(used)) == len(used) and all(
            is_met(
                each,
                [
                    values[name]
                    for request, names in zip(spec.requests, given_, strict=True)
                    if not each.requests or request.name in each.requests
                    for name in names
                ],
            )
            for each in spec.constraints
        ):
            return True
    return False


def is_met(constraint: DeviceConstraint, values: list[Any]) -> bool:
    if None in values:
        return False
    shown = {(value.int_, value.string) for value in values}
    return len(shown) <= 1 if constraint.match_attribute is not None else len(shown) == len(values)


@settings(max_examples=200)
@given(plain_problems())
def test_a_conflict_holds_by_rules_that_are_stated_independently(
    problem: AllocationProblem,
) -> None:
    explanation = explain(problem, BUDGET)

    assert (explanation.conflict is None) == fits_by_other_rules(problem)
    if explanation.conflict is None:
        return
    found = conflict_of(problem, explanation)
    assert not fits_by_other_rules(only(problem, found))
    for part in found:
        assert fits_by_other_rules(only(problem, [each for each in found if each != part]))
    for proposal in proposals(problem, BUDGET, explanation=explanation):
        assert fits_by_other_rules(changed(problem, proposal.change)), proposal.change


# --- too large for brute force: the allocator itself ---


def pairs(requests: int) -> AllocationProblem:
    """Requests for pairs of GPUs in one NUMA zone, of which there is one too few."""
    names = [f"pair-{number}" for number in range(requests)]
    two = an_exact_request(count=2)
    devices = tuple(
        a_device(f"gpu-{number}", {"numa": number // 3}) for number in range(3 * (requests - 1))
    )
    claim = a_claim(
        *(a_request(name, two) for name in names),
        constraints=tuple(DeviceConstraint((name,), match_attribute=NUMA) for name in names),
    )
    return a_problem(claim, devices=devices, gates=EVERYTHING)


def last_one_impossible(requests: int) -> AllocationProblem:
    """Many requests that are easily satisfied, and two that never go together."""
    devices = tuple(a_device(f"gpu-{number:03}", {"numa": number}) for number in range(200))
    names = [f"r{number}" for number in range(requests)]
    claim = a_claim(
        *(a_request(name, an_exact_request()) for name in names),
        constraints=(DeviceConstraint((names[2], names[-1]), match_attribute=NUMA),),
    )
    return a_problem(claim, devices=devices, gates=EVERYTHING)


@pytest.mark.parametrize(
    ("problem", "size"),
    [
        pytest.param(pairs(6), 12, id="pairs"),
        pytest.param(last_one_impossible(16), 3, id="two-of-sixteen"),
    ],
)
def test_conflicts_of_large_problems_are_irreducible(problem: AllocationProblem, size: int) -> None:
    explanation = explain(problem, BUDGET)

    assert explanation.conflict is not None
    assert explanation.conflict.proof is Proof.IRREDUCIBLE
    found = conflict_of(problem, explanation)
    assert len(found) <= size
    assert not isinstance(allocated(only(problem, found)), Allocated)
    for part in found:
        fewer = only(problem, [each for each in found if each != part])
        assert isinstance(allocated(fewer), Allocated)


def allocated(problem: AllocationProblem) -> object:
    return allocate(problem, BUDGET, lambda: "share")
