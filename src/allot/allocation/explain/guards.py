"""Guards: `has()` in front of a selector that fails on devices without an attribute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from allot.allocation.explain.changes import GuardedSelector
from allot.allocation.explain.findings import Explanation
from allot.allocation.explain.reasons import ExpressionFailed
from allot.api.claims import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from allot.api.resource import CELDeviceSelector, DeviceSelector


def guarded_claims(
    claims: Sequence[ResourceClaim], explanation: Explanation
) -> Iterator[tuple[GuardedSelector, tuple[ResourceClaim, ...]]]:
    """Claims with a guard added to one selector each, where the guard is missing and no typo is the cause."""
    seen = set()
    for report in explanation.requests:
        for refusal in report.refusals:
            failure = refusal.reason
            if not isinstance(failure, ExpressionFailed) or failure.similar or failure.class_name:
                continue
            guard = _guard(failure)
            if not guard or failure.selector is None:
                continue
            change = GuardedSelector(report.claim, report.request, failure.selector, guard)
            if change not in seen:
                seen.add(change)
                yield change, tuple(_guarded(claim, change) for claim in claims)


def _guard(failure: ExpressionFailed) -> str:
    """A test for what is missing; empty if the expression does not read it by name."""
    tests = []
    for name in failure.missing:
        domain, _, identifier = name.partition("/")
        reads = (
            f"device.{kind}[{quote}{domain}{quote}].{identifier}"
            for kind in ("attributes", "capacity")
            for quote in ('"', "'")
        )
        tests += [f"has({read})" for read in reads if read in failure.expression]
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
