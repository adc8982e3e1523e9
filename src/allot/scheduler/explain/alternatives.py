"""Preferred alternatives that a claim does not get (KEP-4816), and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace as replace_problem

from allot.allocation import AllocationProblem, Wording, explain
from allot.api.base import replace
from allot.api.claims import (
    DeviceRequest,
    DeviceSubRequest,
    ResourceClaim,
    ResourceClaimStatus,
)
from allot.api.raw import RawObject
from allot.deadline import Deadline, no_deadline
from allot.scheduler.core.failure_explainer import ALTERNATIVE_UNAVAILABLE
from allot.scheduler.explain.explanations import PreferredAlternative


def unavailable_alternatives(
    problem: AllocationProblem, wording: Wording, deadline: Deadline = no_deadline
) -> Iterator[str]:
    """Why claims get no preferred alternative when they are allocated: one clause for each alternative."""
    for at, claim in enumerate(problem.claims):
        for number, request in enumerate(claim.spec.devices.requests):
            for alternative in request.first_available[:-1]:
                claims = list(problem.claims)
                claims[at] = _with_only(claim, number, alternative)
                explanation = explain(
                    replace_problem(problem, claims=tuple(claims)), deadline=deadline
                )
                if explanation.conflict is None or not explanation.is_complete:
                    break  # the alternative that it gets
                yield f"not {request.name}/{alternative.name}: {wording.conflict(explanation)}"


def _with_only(claim: ResourceClaim, number: int, alternative: DeviceSubRequest) -> ResourceClaim:
    """The claim with a single alternative in one of its requests."""
    requests = list(claim.spec.devices.requests)
    requests[number] = replace(requests[number], first_available=(alternative,))
    devices = replace(claim.spec.devices, requests=tuple(requests))
    return replace(claim, spec=replace(claim.spec, devices=devices))


def preferred_alternatives(
    claim: ResourceClaim, problem: AllocationProblem, deadline: Deadline = no_deadline
) -> Iterator[PreferredAlternative]:
    """Each alternative before the one that the claim has, in order.

    `problem` is that of its node. The claim's own devices count as free.
    """
    allocation = claim.status.allocation
    if allocation is None:
        return
    chosen = {result.request for result in allocation.devices.results}
    metadata = claim.metadata
    holder = f"{metadata.key}#{metadata.uid}"
    ledger = problem.ledger.without(holder)
    for number, request in enumerate(claim.spec.devices.requests):
        for alternative in _before(request, chosen):
            only = _with_only(claim, number, alternative)
            asks = replace(only, status=ResourceClaimStatus())
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


def recorded_reasons(events: Iterable[RawObject], namespace: str, pod: str) -> Iterator[str]:
    """What the scheduler recorded about preferred alternatives when it scheduled a pod."""
    for event in events:
        regarding = event.get("regarding", default={})
        about = (event.get("reason"), regarding.get("namespace"), regarding.get("name"))
        if about == (ALTERNATIVE_UNAVAILABLE, namespace, pod):
            note: str = event.get("note", default="")
            yield note


def _before(request: DeviceRequest, chosen: set[str]) -> Iterator[DeviceSubRequest]:
    for alternative in request.first_available:
        if f"{request.name}/{alternative.name}" in chosen:
            return
        yield alternative
