"""Candidate changes: single changes to claims or devices that may make claims fit.

`proposals` verifies each by an allocation. Only members of the conflict are changed: other changes leave the
conflict in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as replace_problem

from msgspec.structs import replace

from allot.allocation.explain.amount_changes import (
    with_fewer_devices,
    with_less_capacity,
    with_other_capacity_name,
)
from allot.allocation.explain.change_scope import (
    DEVICE_WORK,
    Candidate,
    Candidates,
    ChangeScope,
    PutSpec,
    RequestKey,
    Spec,
)
from allot.allocation.explain.changes import (
    OnlyAlternative,
    OtherClass,
    OtherConstraintAttribute,
    WithoutConstraint,
    WithoutRequest,
)
from allot.allocation.explain.device_changes import (
    with_feature,
    with_more_devices,
    with_release,
    with_tolerations,
)
from allot.allocation.explain.expression_changes import (
    with_conversion,
    with_other_attribute,
    with_same_derivation,
    without_selector,
)
from allot.allocation.explain.subproblems import claim_of, members_of, request_name, restricted
from allot.allocation.inventory import NodeView
from allot.allocation.problem import AllocationProblem
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import DeviceClaim, DeviceRequest, ResourceClaim
from allot.api.similar_names import similar_names
from allot.cel.device import split_name


def candidate_changes(
    problem: AllocationProblem, scope: ChangeScope, meter: WorkMeter
) -> Candidates:
    """All candidates, claims and requests in order, then releases, features and more devices."""
    view = problem.inventory.view(problem.node, meter)
    for at, claim in enumerate(problem.claims):
        key = str(claim.key)
        change = _claim_changer(problem, at)
        for number, request in enumerate(claim.spec.devices.requests):
            if not scope.has_request(key, request.name):
                continue
            yield from _with_one_alternative(claim, key, number, change)
            for label, spec, put in _specs(claim, number, request, change):
                place = RequestKey(key, label)
                yield from _with_other_class(place, spec, put, problem)
                yield from with_fewer_devices(place, spec, put, scope)
                yield from with_less_capacity(place, spec, put, view, problem, scope, meter)
                yield from with_other_capacity_name(place, spec, put, scope)
                yield from with_other_attribute(place, spec, put, problem, scope)
                yield from with_same_derivation(place, spec, put, claim, scope)
                yield from with_conversion(place, spec, put, scope)
                yield from without_selector(place, spec, put)
                yield from with_tolerations(place, spec, put, view, meter)
        yield from _with_other_constraint_attribute(claim, key, change, scope, view, meter)
        yield from _without_constraint(claim, key, change, scope)
    yield from with_release(problem, view, meter)
    yield from with_feature(problem, view, meter)
    yield from with_more_devices(problem, view, meter)


def without_requests(problem: AllocationProblem, scope: ChangeScope) -> Candidates:
    """The claims without one of the requests in conflict, the last first; for where nothing smaller helps."""
    members = members_of(problem)
    requests = [member for member in members if not member.is_constraint]
    for member in reversed(requests):
        claim, request = claim_of(problem, member), request_name(problem, member)
        is_whole_claim = all(other == member or other.claim != member.claim for other in requests)
        if not scope.has_request(claim, request) or (is_whole_claim and len(problem.claims) == 1):
            continue
        without = WithoutRequest(claim, request, is_whole_claim)
        kept = [other for other in members if other != member]
        yield without, Candidate(1, without, restricted(problem, kept))


_ChangeDevices = Callable[[DeviceClaim], AllocationProblem]


def _claim_changer(problem: AllocationProblem, at: int) -> _ChangeDevices:
    def changed(devices: DeviceClaim) -> AllocationProblem:
        claim = problem.claims[at]
        claims = list(problem.claims)
        claims[at] = replace(claim, spec=replace(claim.spec, devices=devices))
        return replace_problem(problem, claims=claims)

    return changed


def _specs(
    claim: ResourceClaim, number: int, request: DeviceRequest, change: _ChangeDevices
) -> Iterator[tuple[str, Spec, PutSpec]]:
    """Every alternative of a request, with a function that replaces it."""
    devices = claim.spec.devices

    def put(changed: DeviceRequest) -> AllocationProblem:
        requests = (*devices.requests[:number], changed, *devices.requests[number + 1 :])
        return change(replace(devices, requests=requests))

    if request.exactly is not None:
        yield request.name, request.exactly, lambda spec: put(replace(request, exactly=spec))
    for index, subrequest in enumerate(request.first_available):

        def put_alternative(spec: Spec, index: int = index) -> AllocationProblem:
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


def _with_other_class(
    place: RequestKey, spec: Spec, put: PutSpec, problem: AllocationProblem
) -> Candidates:
    wrong = spec.device_class_name
    if wrong in problem.classes:
        return
    for name in similar_names(wrong, problem.classes):
        other = OtherClass(*place, name, wrong)
        yield other, Candidate(1, other, put(replace(spec, device_class_name=name)))


def _with_other_constraint_attribute(
    claim: ResourceClaim,
    key: str,
    change: _ChangeDevices,
    scope: ChangeScope,
    view: NodeView,
    meter: WorkMeter,
) -> Candidates:
    """An attribute that devices have, where none has that of a constraint."""
    devices = claim.spec.devices
    for each in scope.conflict.constraints if scope.conflict is not None else ():
        if each.claim != key or any(side.values for side in each.sides):
            continue
        known: dict[str, None] = {}
        for device in view.devices:
            meter.spend(DEVICE_WORK)
            own = (split_name(name, device.id.driver) for name in device.device.attributes)
            known.update({f"{domain}/{name}": None for domain, name in own})
        index = each.constraint
        for name in similar_names(each.attribute, known):
            old = devices.constraints[index]
            new = (
                replace(old, match_attribute=name)
                if each.must_match
                else replace(old, distinct_attribute=name)
            )
            constraints = (*devices.constraints[:index], new, *devices.constraints[index + 1 :])
            other = OtherConstraintAttribute(key, index, name, each.attribute)
            yield other, Candidate(1, other, change(replace(devices, constraints=constraints)))


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
