"""Alternatives that an allocated claim would have preferred to those that it has (KEP-4816), and what is against them now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as replace_problem

from allot.allocation import AllocationProblem, Wording, explain
from allot.api.base import replace
from allot.api.claims import (
    DeviceRequest,
    DeviceSubRequest,
    ResourceClaim,
    ResourceClaimStatus,
)
from allot.deadline import Deadline, no_deadline
from allot.scheduler.explain.explanations import PreferredAlternative


def preferred_alternatives(
    claim: ResourceClaim, problem: AllocationProblem, deadline: Deadline = no_deadline
) -> Iterator[PreferredAlternative]:
    """Each alternative that comes before the one that the claim has, in order.

    `problem` is that of its node. What the claim holds itself counts as free.
    """
    allocation = claim.status.allocation
    if allocation is None:
        return
    chosen = {result.request for result in allocation.devices.results}
    metadata = claim.metadata
    holder = f"{metadata.namespace}/{metadata.name}#{metadata.uid}"
    ledger = problem.ledger.without(holder)
    for number, request in enumerate(claim.spec.devices.requests):
        for alternative in _before(request, chosen):
            only = replace(request, first_available=(alternative,))
            requests = list(claim.spec.devices.requests)
            requests[number] = only
            devices = replace(claim.spec.devices, requests=tuple(requests))
            asks = replace(
                claim, spec=replace(claim.spec, devices=devices), status=ResourceClaimStatus()
            )
            changed = replace_problem(problem, claims=(asks,), ledger=ledger)
            explanation = explain(changed, deadline=deadline)
            if not explanation.is_complete:
                return
            yield PreferredAlternative(
                request=f"{request.name}/{alternative.name}",
                node=problem.node.name,
                reason=Wording().conflict(explanation),
                conflict=explanation.conflict,
            )


def _before(request: DeviceRequest, chosen: set[str]) -> Iterator[DeviceSubRequest]:
    for alternative in request.first_available:
        if f"{request.name}/{alternative.name}" in chosen:
            return
        yield alternative
