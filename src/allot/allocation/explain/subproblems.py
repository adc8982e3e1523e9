"""Subproblems: some of the requests and constraints of a problem, to be solved without the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as replace_problem
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from allot.allocation.problem import AllocationProblem
from allot.api.claims import (
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from allot.api.resource import ALL, EXACT_COUNT

Spec = TypeVar("Spec", ExactDeviceRequest, DeviceSubRequest)


class Member(NamedTuple):
    """A request or a constraint of one of the claims. Sorts in the order of the claims, requests first."""

    claim: int
    """The position of the claim in the problem."""
    is_constraint: bool
    position: int


Members = frozenset[Member]


def members_of(problem: AllocationProblem) -> tuple[Member, ...]:
    """All requests and constraints, in order."""
    return tuple(
        Member(at, is_constraint, index)
        for at, claim in enumerate(problem.claims)
        for is_constraint, parts in (
            (False, claim.spec.devices.requests),
            (True, claim.spec.devices.constraints),
        )
        for index in range(len(parts))
    )


def restricted(problem: AllocationProblem, members: Iterable[Member]) -> AllocationProblem:
    """The problem with these requests and constraints only; claims without any are left out."""
    kept = frozenset(members)
    claims = []
    for at, claim in enumerate(problem.claims):
        devices = claim.spec.devices
        requests = tuple(
            request
            for index, request in enumerate(devices.requests)
            if Member(at, False, index) in kept
        )
        constraints = tuple(
            constraint
            for index, constraint in enumerate(devices.constraints)
            if Member(at, True, index) in kept
        )
        if requests:
            fewer = replace(devices, requests=requests, constraints=constraints)
            claims.append(replace(claim, spec=replace(claim.spec, devices=fewer)))
    return replace_problem(problem, claims=tuple(claims))


def claim_of(problem: AllocationProblem, member: Member) -> str:
    """The key of the claim that a request or constraint belongs to."""
    metadata = problem.claims[member.claim].metadata
    return str(metadata.key)


def request_name(problem: AllocationProblem, member: Member) -> str:
    """The name of a request."""
    return problem.claims[member.claim].spec.devices.requests[member.position].name


def constraint_of(problem: AllocationProblem, member: Member) -> DeviceConstraint:
    """The constraint of the claim's spec."""
    return problem.claims[member.claim].spec.devices.constraints[member.position]


def concerns(problem: AllocationProblem, constraint: Member, request: Member) -> bool:
    """Whether the constraint covers the request or one of its alternatives."""
    if constraint.claim != request.claim:
        return False
    names = constraint_of(problem, constraint).requests
    name = request_name(problem, request)
    return not names or any(each.partition("/")[0] == name for each in names)


def with_one_device(problem: AllocationProblem, request: Member) -> AllocationProblem:
    """The problem with mode All of a request replaced by one device, so that its devices can be checked one by one."""

    def one(spec: Spec) -> Spec:
        return replace(spec, allocation_mode=EXACT_COUNT, count=1) if is_all(spec) else spec

    old = problem.claims[request.claim].spec.devices.requests[request.position]
    changed = replace(
        old,
        exactly=one(old.exactly) if old.exactly is not None else None,
        first_available=tuple(map(one, old.first_available)),
    )
    return _with_request(problem, request, changed)


def is_all(spec: ExactDeviceRequest | DeviceSubRequest) -> bool:
    """Whether all devices are requested."""
    return spec.allocation_mode == ALL


def with_alternative(
    problem: AllocationProblem, request: Member, alternative: str
) -> AllocationProblem:
    """The problem with one alternative of a request only; a request without alternatives stays as it is."""
    if not alternative:
        return problem
    old = problem.claims[request.claim].spec.devices.requests[request.position]
    kept = tuple(each for each in old.first_available if each.name == alternative)
    return _with_request(problem, request, replace(old, first_available=kept))


def _with_request(
    problem: AllocationProblem, member: Member, request: DeviceRequest
) -> AllocationProblem:
    claim = problem.claims[member.claim]
    requests = list(claim.spec.devices.requests)
    requests[member.position] = request
    devices = replace(claim.spec.devices, requests=tuple(requests))
    claims = list(problem.claims)
    claims[member.claim] = replace(claim, spec=replace(claim.spec, devices=devices))
    return replace_problem(problem, claims=tuple(claims))
