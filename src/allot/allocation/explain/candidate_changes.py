"""Candidate changes: single changes to claims or devices that may make claims fit.

`proposals` verifies each by an allocation. Only members of the conflict are changed: other changes leave the
conflict in place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace as replace_problem
from typing import Final, NamedTuple

from msgspec.structs import replace

from allot.allocation.allocated_devices import shown_holder
from allot.allocation.devices import PoolDevice
from allot.allocation.explain.amounts import amount, rounded_down
from allot.allocation.explain.changes import (
    AddToleration,
    AnyChange,
    FewerDevices,
    LessCapacity,
    MoreDevices,
    OnlyAlternative,
    OtherAttribute,
    ReleaseClaim,
    WithoutConstraint,
    WithoutSelector,
)
from allot.allocation.explain.findings import Conflict, Explanation
from allot.allocation.explain.reasons import ExpressionFailed
from allot.allocation.inventory import Inventory, NodeView
from allot.allocation.pools import PoolId
from allot.allocation.problem import AllocationProblem
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import (
    CapacityRequirements,
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from allot.api.meta import ObjectMeta
from allot.api.quantity import Quantity
from allot.api.resource import (
    EXACT_COUNT,
    EXISTS,
    CELDeviceSelector,
    DeviceSelector,
    DeviceToleration,
)
from allot.api.slices import (
    CapacityRequestPolicy,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

_MAX_MORE_DEVICES = 8
"""The most additional devices of a kind to propose."""

_MAX_TRIED = 64
"""How many devices, holders or amounts of one kind are tried."""


_DEVICE_WORK: Final = 2
"""Units of work to check a device or slice for candidates."""


class Candidate(NamedTuple):
    """A change and the problem with that change. Smaller is better."""

    size: int
    change: AnyChange
    problem: AllocationProblem


class ChangeScope:
    """What may be changed: the members of the conflict, or everything without a conflict."""

    def __init__(self, explanation: Explanation | None) -> None:
        conflict = explanation.conflict if explanation is not None else None
        self._conflict: Conflict | None = (
            conflict if conflict is not None and conflict.requests else None
        )
        self.failures: Collection[tuple[str, str, ExpressionFailed]] = [
            (report.claim, report.request, refusal.reason)
            for report in (explanation.requests if explanation is not None else ())
            for refusal in report.refusals
            if isinstance(refusal.reason, ExpressionFailed)
        ]

    def has_request(self, claim: str, request: str) -> bool:
        return self._conflict is None or any(
            (each.claim, each.request) == (claim, request) for each in self._conflict.requests
        )

    def has_constraint(self, claim: str, index: int) -> bool:
        return self._conflict is None or any(
            (each.claim, each.constraint) == (claim, index) for each in self._conflict.constraints
        )


Candidates = Iterator[tuple[object, Candidate]]
"""Candidates with their subject; of one subject, only one change is proposed."""


def candidate_changes(
    problem: AllocationProblem, scope: ChangeScope, meter: WorkMeter
) -> Candidates:
    """All candidates, claims and requests in order, then releases and more devices."""
    view = problem.inventory.view(problem.node, meter)
    for at, claim in enumerate(problem.claims):
        key = str(claim.key)
        change = _claim_changer(problem, at)
        yield from _without_constraint(claim, key, change, scope)
        for number, request in enumerate(claim.spec.devices.requests):
            if not scope.has_request(key, request.name):
                continue
            yield from _with_one_alternative(claim, key, number, change)
            for label, spec, put in _specs(claim, number, request, change):
                place = _Place(key, label)
                yield from _with_less(place, spec, put, view, problem, meter)
                yield from _with_other_attribute(place, spec, put, scope)
                yield from _without_selector(place, spec, put)
                yield from _with_toleration(place, spec, put, view, meter)
    yield from _with_release(problem, view, meter)
    yield from _with_more_devices(problem, view, meter)


class _Place(NamedTuple):
    """A request or alternative, by claim and name."""

    claim: str
    request: str


_ChangeDevices = Callable[[DeviceClaim], AllocationProblem]
_PutSpec = Callable[[ExactDeviceRequest | DeviceSubRequest], AllocationProblem]


def _claim_changer(problem: AllocationProblem, at: int) -> _ChangeDevices:
    def changed(devices: DeviceClaim) -> AllocationProblem:
        claim = problem.claims[at]
        claims = list(problem.claims)
        claims[at] = replace(claim, spec=replace(claim.spec, devices=devices))
        return replace_problem(problem, claims=claims)

    return changed


def _specs(
    claim: ResourceClaim, number: int, request: DeviceRequest, change: _ChangeDevices
) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest, _PutSpec]]:
    """Every alternative of a request, with a function that replaces it."""
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
    claim: ResourceClaim, key: str, number: int, change: _ChangeDevices
) -> Candidates:
    """Only one of the alternatives: helps where another one ends in an error."""
    devices = claim.spec.devices
    request = devices.requests[number]
    if len(request.first_available) < 2:
        return
    for index, subrequest in enumerate(request.first_available):
        only = OnlyAlternative(key, request.name, subrequest.name)
        changed = replace(request, first_available=(subrequest,))
        requests = (*devices.requests[:number], changed, *devices.requests[number + 1 :])
        problem = change(replace(devices, requests=requests))
        yield (OnlyAlternative, key), Candidate(1 + index, only, problem)


# --- smaller requests ---


def _without_constraint(
    claim: ResourceClaim, key: str, change: _ChangeDevices, scope: ChangeScope
) -> Candidates:
    devices = claim.spec.devices
    for index, constraint in enumerate(devices.constraints):
        if not scope.has_constraint(key, index):
            continue
        kept = (*devices.constraints[:index], *devices.constraints[index + 1 :])
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        without = WithoutConstraint(key, index, name, constraint.match_attribute is not None)
        yield without, Candidate(2, without, change(replace(devices, constraints=kept)))


def _without_selector(
    place: _Place, spec: ExactDeviceRequest | DeviceSubRequest, put: _PutSpec
) -> Candidates:
    for index, selector in enumerate(spec.selectors):
        kept = (*spec.selectors[:index], *spec.selectors[index + 1 :])
        expression = selector.cel.expression if selector.cel is not None else ""
        without = WithoutSelector(*place, index, expression)
        yield without, Candidate(3, without, put(replace(spec, selectors=kept)))


def _with_other_attribute(
    place: _Place,
    spec: ExactDeviceRequest | DeviceSubRequest,
    put: _PutSpec,
    scope: ChangeScope,
) -> Candidates:
    """A similar attribute name, where an expression fails on a missing one."""
    for claim, request, failure in scope.failures:
        if (claim, request) != place or failure.selector is None or failure.class_name:
            continue
        for wrong in failure.missing:
            for name in failure.similar:
                expression = _with_name(failure.expression, wrong, name)
                if expression == failure.expression:
                    continue
                selector = DeviceSelector(CELDeviceSelector(expression))
                index = failure.selector
                changed = (*spec.selectors[:index], selector, *spec.selectors[index + 1 :])
                other = OtherAttribute(*place, index, name, wrong, expression)
                yield other, Candidate(1, other, put(replace(spec, selectors=changed)))


def _with_name(expression: str, wrong: str, name: str) -> str:
    """The expression with another qualified name; trying it shows whether it helps."""
    wrong_domain, wrong_identifier = wrong.split("/", 1)
    domain, identifier = name.split("/", 1)
    for quote in ('"', "'"):
        expression = expression.replace(
            f"{quote}{wrong_domain}{quote}].{wrong_identifier}",
            f"{quote}{domain}{quote}].{identifier}",
        )
    return expression


def _with_less(
    place: _Place,
    spec: ExactDeviceRequest | DeviceSubRequest,
    put: _PutSpec,
    view: NodeView,
    problem: AllocationProblem,
    meter: WorkMeter,
) -> Candidates:
    if spec.allocation_mode == EXACT_COUNT:
        for count in reversed(range(1, spec.count)):
            fewer = FewerDevices(*place, count, spec.count)
            changed = replace(spec, count=count)
            yield (FewerDevices, place), Candidate(spec.count - count, fewer, put(changed))
    if spec.capacity is None:
        return
    for name, requested in spec.capacity.requests.items():
        amounts = _smaller_amounts(name, requested, view, problem, meter)
        for rank, smaller in enumerate(amounts):
            less = LessCapacity(*place, name, str(smaller), str(requested))
            asked = CapacityRequirements({**spec.capacity.requests, name: smaller})
            yield (
                (LessCapacity, place, name),
                Candidate(1 + rank, less, put(replace(spec, capacity=asked))),
            )


def _smaller_amounts(
    name: str,
    requested: Quantity,
    view: NodeView,
    problem: AllocationProblem,
    meter: WorkMeter,
) -> list[Quantity]:
    """What devices have left of a capacity, or allow at most, if less than requested; most first."""
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
            exact = amount(left, capacity.value)
            smaller = rounded_down(exact) or exact
            amounts[smaller.nanos] = smaller
        for allowed in _allowed_amounts(capacity.request_policy):
            if allowed.nanos < min(requested.nanos, left + 1):
                amounts[allowed.nanos] = allowed
    return [amounts[left] for left in sorted(amounts, reverse=True)][:_MAX_TRIED]


def _allowed_amounts(policy: CapacityRequestPolicy | None) -> Iterator[Quantity]:
    """The amounts that a policy names."""
    if policy is not None:
        yield from policy.valid_values
        if policy.valid_range is not None and policy.valid_range.max is not None:
            yield policy.valid_range.max


def _with_toleration(
    place: _Place,
    spec: ExactDeviceRequest | DeviceSubRequest,
    put: _PutSpec,
    view: NodeView,
    meter: WorkMeter,
) -> Candidates:
    taints = {}
    for device in view.devices:
        meter.spend(1 + len(device.taints) // 2)
        for taint in device.taints:
            taints[taint.key, taint.effect] = taint
    for taint in list(taints.values())[:_MAX_TRIED]:
        toleration = DeviceToleration(taint.key, EXISTS, "", taint.effect)
        tolerated = AddToleration(*place, taint.key, taint.effect)
        changed = replace(spec, tolerations=(*spec.tolerations, toleration))
        yield tolerated, Candidate(1, tolerated, put(changed))


# --- more devices ---


def _with_release(problem: AllocationProblem, view: NodeView, meter: WorkMeter) -> Candidates:
    holders: dict[str, None] = {}
    for device in view.devices:
        held_by = problem.ledger.holders(device.id)
        meter.spend(1 + len(held_by))
        holders.update(dict.fromkeys(held_by))
    for holder in list(holders)[:_MAX_TRIED]:
        release = ReleaseClaim(shown_holder(holder))
        freed = replace_problem(problem, ledger=problem.ledger.without(holder, meter))
        yield release, Candidate(1, release, freed)


def _with_more_devices(problem: AllocationProblem, view: NodeView, meter: WorkMeter) -> Candidates:
    """More devices like an existing one, free and unpartitioned, with its taints; like those without taints first."""
    models: dict[object, PoolDevice] = {}
    for device in view.devices:
        own = device.device
        meter.spend(_DEVICE_WORK * (1 + len(own.attributes) + len(own.capacity)))
        looks = (
            device.id.driver,
            frozenset(own.capacity.items()),
            own.allow_multiple_allocations,
            frozenset((name, str(value)) for name, value in own.attributes.items()),
            frozenset((taint.key, taint.value, taint.effect) for taint in device.taints),
        )
        models.setdefault(looks, device)
    # One inventory for all proposals: each is tried before the next one changes it.
    inventory = Inventory(problem.inventory.gates)
    inventory.set_taint_rules(problem.inventory.taint_rules)
    for slice_ in problem.inventory.slices():
        meter.spend(_DEVICE_WORK)
        if PoolId(slice_.spec.driver, slice_.spec.pool.name) in view.pool_by_id:
            inventory.put(slice_)
    # What taints a device would probably taint another one like it.
    for model in sorted(models.values(), key=_is_tainted)[:_MAX_TRIED]:
        driver, pool, name = model.id
        for number in range(1, _MAX_MORE_DEVICES + 1):
            inventory.put(_slice_of_copies(model, number, problem.node.name))
            more = MoreDevices(number, name, pool, driver, problem.node.name)
            changed = replace_problem(problem, inventory=inventory)
            yield (MoreDevices, driver), Candidate(number, more, changed)


def _is_tainted(device: PoolDevice) -> bool:
    return bool(device.taints)


def _slice_of_copies(model: PoolDevice, number: int, node: str) -> ResourceSlice:
    copies = tuple(
        replace(
            model.device,
            name=f"{model.id.device}-more-{copy}",
            consumes_counters=(),
            taints=model.taints,
            node_name=None,
            node_selector=None,
            all_nodes=None,
        )
        for copy in range(number)
    )
    # Sorts after every real pool, so that existing devices are used first.
    name = "\U0010ffff more"
    spec = ResourceSliceSpec(
        driver=model.id.driver, pool=ResourcePool(name, 1, 1), node_name=node, devices=copies
    )
    return ResourceSlice(ObjectMeta(name=name), spec)
