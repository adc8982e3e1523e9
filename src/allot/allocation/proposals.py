"""Proposals: single changes that would make claims fit.

Every proposal is a problem that differs from the given one in a single thing, and it is made only
after that problem has been solved. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as replace_problem
from typing import Final, NamedTuple

from msgspec.structs import replace

from allot.allocation.allocator import allocate
from allot.allocation.inventory import Inventory, NodeView
from allot.allocation.ledger import shown_holder
from allot.allocation.pools import PoolId
from allot.allocation.problem import (
    Abandoned,
    Allocated,
    AllocationProblem,
    Limit,
    StepBudget,
)
from allot.allocation.reasons import amount_text
from allot.allocation.work_meter import WorkMeter
from allot.api.claims import (
    CapacityRequirements,
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from allot.api.identities import ObjectKey
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.resource import EXACT_COUNT, EXISTS, DeviceToleration
from allot.api.slices import (
    CapacityRequestPolicy,
    Device,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from allot.deadline import Deadline, DeadlineExceededError, no_deadline

MAX_MORE_DEVICES = 8
"""How many additional devices of a kind are worth proposing."""

MAX_TRIED = 64
"""How many devices, holders or amounts of one kind are considered."""


_DEVICE_WORK: Final = 2
"""Units of work to look at a device or slice for what might help."""


class Proposal(NamedTuple):
    """A change after which all claims fit. Smaller is better."""

    size: int
    change: str


class _Candidate(NamedTuple):
    size: int
    change: str
    problem: AllocationProblem


class Proposals(tuple[Proposal, ...]):
    """Changes that would make claims fit, smallest first."""

    is_complete: bool = True
    """False if not everything was tried that might help."""


def proposals(
    problem: AllocationProblem,
    budget: StepBudget,
    is_enough: Callable[[], bool] = lambda: False,
    *,
    deadline: Deadline = no_deadline,
) -> Proposals:
    """Changes that would make the claims fit, smallest first; empty if no single change would.

    Of several changes of one kind to one thing, only the smallest is proposed. `is_enough` is asked before each
    is tried, `deadline` all the while: what has been found until then comes back, marked as incomplete.
    """
    found: dict[str, Proposal] = {}
    is_complete = True
    try:
        for about, candidate in _candidates(problem, WorkMeter(deadline)):
            if is_enough():
                is_complete = False
                break
            if about in found and found[about].size <= candidate.size:
                continue
            outcome = allocate(candidate.problem, budget, lambda: "share", deadline=deadline)
            if isinstance(outcome, Allocated):
                found[about] = Proposal(candidate.size, candidate.change)
            elif isinstance(outcome, Abandoned) and outcome.limit is Limit.TIME:
                is_complete = False
                break
    except DeadlineExceededError:
        is_complete = False
    answer = Proposals(sorted(found.values()))
    answer.is_complete = is_complete
    return answer


def _candidates(problem: AllocationProblem, meter: WorkMeter) -> Iterator[tuple[str, _Candidate]]:
    view = problem.inventory.view(problem.node, meter)
    for at, claim in enumerate(problem.claims):
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        change = _claim_changer(problem, at)
        yield from _without_constraint(claim, f"claim {key}", change)
        for number, request in enumerate(claim.spec.devices.requests):
            yield from _with_one_alternative(claim, f"claim {key}", number, change)
            for label, spec, put in _specs(claim, number, request, change):
                place = f"claim {key}, request {label}"
                yield from _with_less(place, spec, put, view, problem, meter)
                yield from _without_selector(place, spec, put)
                yield from _with_toleration(place, spec, put, view, meter)
    yield from _with_release(problem, view, meter)
    yield from _with_more_devices(problem, view, meter)


ChangeDevices = Callable[[DeviceClaim], AllocationProblem]
PutSpec = Callable[[ExactDeviceRequest | DeviceSubRequest], AllocationProblem]


def _claim_changer(problem: AllocationProblem, at: int) -> ChangeDevices:
    def changed(devices: DeviceClaim) -> AllocationProblem:
        claim = problem.claims[at]
        claims = list(problem.claims)
        claims[at] = replace(claim, spec=replace(claim.spec, devices=devices))
        return replace_problem(problem, claims=claims)

    return changed


def _specs(
    claim: ResourceClaim, number: int, request: DeviceRequest, change: ChangeDevices
) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest, PutSpec]]:
    """Every alternative of a request, with the way to put another in its place."""
    devices = claim.spec.devices

    def put(changed: DeviceRequest) -> AllocationProblem:
        requests = (*devices.requests[:number], changed, *devices.requests[number + 1 :])
        return change(replace(devices, requests=requests))

    if request.exactly is not None:
        yield request.name, request.exactly, lambda spec: put(replace(request, exactly=spec))
    for index, subrequest in enumerate(request.first_available):

        def put_alternative(
            spec: ExactDeviceRequest | DeviceSubRequest, index: int = index
        ) -> AllocationProblem:
            others = request.first_available
            changed = (*others[:index], spec, *others[index + 1 :])
            return put(replace(request, first_available=changed))

        yield f"{request.name}/{subrequest.name}", subrequest, put_alternative


def _with_one_alternative(
    claim: ResourceClaim, place: str, number: int, change: ChangeDevices
) -> Iterator[tuple[str, _Candidate]]:
    """Only one of the alternatives: helps where another one ends in an error."""
    devices = claim.spec.devices
    request = devices.requests[number]
    if len(request.first_available) < 2:
        return
    for index, subrequest in enumerate(request.first_available):
        text = f"{place}: use only alternative {request.name}/{subrequest.name}"
        changed = replace(request, first_available=(subrequest,))
        requests = (*devices.requests[:number], changed, *devices.requests[number + 1 :])
        problem = change(replace(devices, requests=requests))
        yield f"{place}: alternative", _Candidate(1 + index, text, problem)


# --- asking for less ---


def _without_constraint(
    claim: ResourceClaim, place: str, change: ChangeDevices
) -> Iterator[tuple[str, _Candidate]]:
    devices = claim.spec.devices
    for index, constraint in enumerate(devices.constraints):
        kept = (*devices.constraints[:index], *devices.constraints[index + 1 :])
        name = constraint.match_attribute or constraint.distinct_attribute
        kind = "match" if constraint.match_attribute is not None else "be distinct"
        text = f"{place}: do not require {name} to {kind} (constraint #{index})"
        yield text, _Candidate(2, text, change(replace(devices, constraints=kept)))


def _without_selector(
    place: str, spec: ExactDeviceRequest | DeviceSubRequest, put: PutSpec
) -> Iterator[tuple[str, _Candidate]]:
    for index, selector in enumerate(spec.selectors):
        kept = (*spec.selectors[:index], *spec.selectors[index + 1 :])
        expression = selector.cel.expression if selector.cel is not None else ""
        text = f"{place}: do without selector #{index} ({expression})"
        yield text, _Candidate(3, text, put(replace(spec, selectors=kept)))


def _with_less(
    place: str,
    spec: ExactDeviceRequest | DeviceSubRequest,
    put: PutSpec,
    view: NodeView,
    problem: AllocationProblem,
    meter: WorkMeter,
) -> Iterator[tuple[str, _Candidate]]:
    if spec.allocation_mode == EXACT_COUNT:
        for count in reversed(range(1, spec.count)):
            text = f"{place}: ask for {count} device(s) instead of {spec.count}"
            changed = replace(spec, count=count)
            yield f"{place}: count", _Candidate(spec.count - count, text, put(changed))
    if spec.capacity is None:
        return
    for name, requested in spec.capacity.requests.items():
        amounts = _smaller_amounts(name, requested, view, problem, meter)
        for rank, amount in enumerate(amounts):
            text = f"{place}: ask for {amount} of {name} instead of {requested}"
            asked = CapacityRequirements({**spec.capacity.requests, name: amount})
            yield (
                f"{place}: capacity {name}",
                _Candidate(1 + rank, text, put(replace(spec, capacity=asked))),
            )


def _smaller_amounts(
    name: str,
    requested: Quantity,
    view: NodeView,
    problem: AllocationProblem,
    meter: WorkMeter,
) -> list[Quantity]:
    """What devices have left of a capacity, or give at most, where that is less than requested; most first."""
    amounts = {}
    for device in view.devices:
        meter.spend(_DEVICE_WORK)
        capacity = device.device.capacity.get(name)
        if capacity is None:
            continue
        left = capacity.value.nanos - problem.ledger.consumed(device.id, device.capacity).get(
            name, 0
        )
        if 0 < left < requested.nanos:
            amounts[left] = Quantity.parse(amount_text(left, capacity.value))
        for amount in _allowed_amounts(capacity.request_policy):
            if amount.nanos < min(requested.nanos, left + 1):
                amounts[amount.nanos] = amount
    return [amounts[left] for left in sorted(amounts, reverse=True)][:MAX_TRIED]


def _allowed_amounts(policy: CapacityRequestPolicy | None) -> Iterator[Quantity]:
    """The amounts that a policy names."""
    if policy is not None:
        yield from policy.valid_values
        if policy.valid_range is not None and policy.valid_range.max is not None:
            yield policy.valid_range.max


def _with_toleration(
    place: str,
    spec: ExactDeviceRequest | DeviceSubRequest,
    put: PutSpec,
    view: NodeView,
    meter: WorkMeter,
) -> Iterator[tuple[str, _Candidate]]:
    taints = {}
    for device in view.devices:
        meter.spend(1 + len(device.taints) // 2)
        for taint in device.taints:
            taints[taint.key, taint.effect] = taint
    for taint in list(taints.values())[:MAX_TRIED]:
        toleration = DeviceToleration(taint.key, EXISTS, "", taint.effect)
        text = f"{place}: tolerate the taint {taint.key}:{taint.effect}"
        changed = replace(spec, tolerations=(*spec.tolerations, toleration))
        yield text, _Candidate(1, text, put(changed))


# --- having more ---


def _with_release(
    problem: AllocationProblem, view: NodeView, meter: WorkMeter
) -> Iterator[tuple[str, _Candidate]]:
    holders: dict[str, None] = {}
    for device in view.devices:
        held_by = problem.ledger.holders(device.id)
        meter.spend(1 + len(held_by))
        holders.update(dict.fromkeys(held_by))
    for holder in list(holders)[:MAX_TRIED]:
        text = f"release claim {shown_holder(holder)}"
        freed = replace_problem(problem, ledger=problem.ledger.without(holder, meter))
        yield text, _Candidate(1, text, freed)


def _with_more_devices(
    problem: AllocationProblem, view: NodeView, meter: WorkMeter
) -> Iterator[tuple[str, _Candidate]]:
    """Devices like one that is there, but nobody's, unpartitioned and without taints."""
    models: dict[object, tuple[str, Device]] = {}
    for device in view.devices:
        own = device.device
        meter.spend(_DEVICE_WORK * (1 + len(own.attributes) + len(own.capacity)))
        looks = (
            device.id.driver,
            frozenset(own.capacity.items()),
            own.allow_multiple_allocations,
            frozenset((name, str(value)) for name, value in own.attributes.items()),
        )
        models.setdefault(looks, (device.id.driver, own))
    # One inventory for all proposals: each is tried before the next one changes it.
    inventory = Inventory(problem.inventory.gates)
    for slice_ in problem.inventory.slices():
        meter.spend(_DEVICE_WORK)
        if PoolId(slice_.spec.driver, slice_.spec.pool.name) in view.pool_by_id:
            inventory.put(slice_)
    for driver, model in list(models.values())[:MAX_TRIED]:
        about = f"more of {driver}"
        for number in range(1, MAX_MORE_DEVICES + 1):
            inventory.put(_slice_of_copies(driver, model, number, problem.node.name))
            text = (
                f"{number} more device(s) like {model.name} of {driver} on node {problem.node.name}"
            )
            yield about, _Candidate(number, text, replace_problem(problem, inventory=inventory))


def _slice_of_copies(driver: str, model: Device, number: int, node: str) -> ResourceSlice:
    copies = tuple(
        replace(
            model,
            name=f"{model.name}-more-{copy}",
            consumes_counters=(),
            taints=(),
            node_name=None,
            node_selector=None,
            all_nodes=None,
        )
        for copy in range(number)
    )
    # Sorts after every real pool, so that what is there already is used first.
    name = "\U0010ffff more"
    spec = ResourceSliceSpec(
        driver=driver, pool=ResourcePool(name, 1, 1), node_name=node, devices=copies
    )
    return ResourceSlice(ObjectMeta(name=name), spec)
