"""Guards: `has()` in front of a selector that fails on devices without an attribute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace as replace_problem

from msgspec.structs import replace

from allot.allocation.explain.changes import GuardedSelector
from allot.allocation.explain.expression_changes import with_class_selector
from allot.allocation.explain.findings import Explanation
from allot.allocation.explain.reasons import ExpressionFailed
from allot.allocation.problem import AllocationProblem
from allot.api.claims import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from allot.api.resource import CELDeviceSelector, DeviceSelector


def guarded_problems(
    problem: AllocationProblem, explanation: Explanation
) -> Iterator[tuple[GuardedSelector, AllocationProblem]]:
    """The problem with a guard added to one selector each, where the guard is missing and no typo is the cause."""
    seen = set()
    for report in explanation.requests:
        for refusal in report.refusals:
            failure = refusal.reason
            if not isinstance(failure, ExpressionFailed) or failure.similar:
                continue
            guard = _guard(failure)
            if not guard or failure.selector is None:
                continue
            change = GuardedSelector(
                report.claim,
                report.request,
                failure.selector,
                guard,
                failure.class_name,
                any(operator in failure.expression for operator in ("||", "?")),
            )
            subject = (failure.class_name or report[:2], failure.selector, guard)
            if subject not in seen:
                seen.add(subject)
                yield change, _with_guard(problem, change, failure.expression)


def _with_guard(
    problem: AllocationProblem, change: GuardedSelector, expression: str
) -> AllocationProblem:
    if change.class_name:
        guarded = f"{change.guard} && ({expression})"
        return with_class_selector(problem, change.class_name, change.selector, guarded)
    return replace_problem(problem, claims=[_guarded(claim, change) for claim in problem.claims])


def _guard(failure: ExpressionFailed) -> str:
    """A test for what is missing; empty if the expression does not read it by name."""
    tests = []
    for name in failure.missing:
        domain, _, identifier = name.partition("/")
        member = rf"(\.{re.escape(identifier)}\b|\[([\"']){re.escape(identifier)}\3\])"
        read = rf"device\.(?:attributes|capacity)\[([\"']){re.escape(domain)}\1\]{member}"
        found = re.search(read, failure.expression)
        if found is not None:
            map_ = found[0].removesuffix(found[2])
            tests.append(f"has({map_}.{identifier})")
    return " && ".join(tests)


def _guarded(claim: ResourceClaim, change: GuardedSelector) -> ResourceClaim:
    if str(claim.key) != change.claim:
        return claim
    devices = claim.spec.devices
    requests = tuple(_guarded_request(request, change) for request in devices.requests)
    return replace(claim, spec=replace(claim.spec, devices=replace(devices, requests=requests)))


def _guarded_request(request: DeviceRequest, change: GuardedSelector) -> DeviceRequest:
    if request.exactly is not None and request.name == change.request:
        changed = replace(request.exactly, selectors=_selectors(request.exactly, change))
        return replace(request, exactly=changed)
    alternatives = tuple(
        replace(each, selectors=_selectors(each, change))
        if f"{request.name}/{each.name}" == change.request
        else each
        for each in request.first_available
    )
    return replace(request, first_available=alternatives)


def _selectors(
    request: ExactDeviceRequest | DeviceSubRequest, change: GuardedSelector
) -> tuple[DeviceSelector, ...]:
    selector = request.selectors[change.selector]
    expression = selector.cel.expression if selector.cel is not None else ""
    guarded = DeviceSelector(CELDeviceSelector(f"{change.guard} && ({expression})"))
    index = change.selector
    return (*request.selectors[:index], guarded, *request.selectors[index + 1 :])
