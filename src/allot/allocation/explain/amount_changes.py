"""Candidate changes of amounts: fewer devices, less of a capacity, and capacities under another name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from allot.allocation.explain.amounts import amount, rounded_down
from allot.allocation.explain.change_scope import (
    DEVICE_WORK,
    MAX_TRIED,
    Candidate,
    Candidates,
    ChangeScope,
    PutSpec,
    RequestKey,
    Spec,
)
from allot.allocation.explain.changes import (
    CountInsteadOfAll,
    FewerDevices,
    LessCapacity,
    OtherCapacityName,
)
from allot.allocation.explain.reasons import InsufficientCapacity, NoSuchCapacity
from allot.allocation.inventory import NodeView
from allot.allocation.problem import AllocationProblem
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import CapacityRequirements
from allot.api.identities import DeviceId
from allot.api.quantity import Quantity
from allot.api.resource import ALL, EXACT_COUNT, MAX_RESULTS
from allot.api.slices import CapacityRequestPolicyRange, DeviceCapacity

_NO_STEP: Final = 1


def with_fewer_devices(
    place: RequestKey, spec: Spec, put: PutSpec, scope: ChangeScope
) -> Candidates:
    """Fewer devices, most first."""
    if spec.allocation_mode == EXACT_COUNT:
        for count in reversed(range(1, spec.count)):
            fewer = FewerDevices(*place, count, spec.count)
            changed = replace(spec, count=count)
            yield (FewerDevices, place), Candidate(spec.count - count, fewer, put(changed))
    elif spec.allocation_mode == ALL:
        wanted = scope.wanted(place) or MAX_RESULTS + 1
        for count in reversed(range(1, min(wanted, MAX_RESULTS + 1))):
            some = CountInsteadOfAll(*place, count)
            changed = replace(spec, allocation_mode=EXACT_COUNT, count=count)
            yield (FewerDevices, place), Candidate(wanted - count, some, put(changed))


def with_less_capacity(
    place: RequestKey,
    spec: Spec,
    put: PutSpec,
    view: NodeView,
    problem: AllocationProblem,
    scope: ChangeScope,
    meter: WorkMeter,
) -> Candidates:
    """Less of a capacity: what devices have left, or allow at most; most first."""
    requested = dict(spec.capacity.requests) if spec.capacity is not None else {}
    short = [
        (refusal.reason, refusal.devices)
        for refusal in scope.refusals(place)
        if isinstance(refusal.reason, InsufficientCapacity)
    ]
    # What is not requested consumes the default, or all.
    consumed = {reason.capacity: reason.needed for reason, _ in reversed(short)}
    for name, asked in {**consumed, **requested}.items():
        left = {
            device: reason.left.nanos
            for reason, devices in short
            if reason.capacity == name
            for device in devices
        }
        for rank, smaller in enumerate(_smaller_amounts(name, asked, view, problem, left, meter)):
            less = LessCapacity(*place, name, str(smaller), str(asked))
            capacity = CapacityRequirements({**requested, name: smaller})
            yield (
                (LessCapacity, place, name),
                Candidate(1 + rank, less, put(replace(spec, capacity=capacity))),
            )


def with_other_capacity_name(
    place: RequestKey, spec: Spec, put: PutSpec, scope: ChangeScope
) -> Candidates:
    """The name that a device has for a capacity."""
    if spec.capacity is None:
        return
    for refusal in scope.refusals(place):
        reason = refusal.reason
        if isinstance(reason, NoSuchCapacity) and reason.similar:
            requests = dict(spec.capacity.requests)
            requests[reason.similar] = requests.pop(reason.capacity)
            other = OtherCapacityName(*place, reason.similar, reason.capacity)
            changed = replace(spec, capacity=CapacityRequirements(requests))
            yield other, Candidate(1, other, put(changed))


def _smaller_amounts(
    name: str,
    requested: Quantity,
    view: NodeView,
    problem: AllocationProblem,
    left_by_device: dict[DeviceId, int],
    meter: WorkMeter,
) -> list[Quantity]:
    """What devices can give of a capacity, if less than requested; most first.

    `left_by_device`: what other requests of the claims leave, where that was found.
    """
    amounts = {}
    for device in view.devices:
        meter.spend(DEVICE_WORK)
        capacity = device.device.capacity.get(name)
        if capacity is None:
            continue
        consumed = problem.ledger.consumed(device.id, device.capacity).get(name, 0)
        free = capacity.value.nanos - consumed
        for left in {free, left_by_device.get(device.id, free)}:
            for smaller in _allowed_amounts(capacity, left):
                if 0 < smaller.nanos < requested.nanos:
                    amounts[smaller.nanos] = smaller
    return [amounts[nanos] for nanos in sorted(amounts, reverse=True)][:MAX_TRIED]


def _allowed_amounts(capacity: DeviceCapacity, left: int) -> Iterator[Quantity]:
    """Amounts that the request policy allows, at most `left`, which is in billionths."""
    policy = capacity.request_policy
    if policy is not None and policy.valid_values:
        yield from (value for value in policy.valid_values if value.nanos <= left)
    elif policy is not None and policy.valid_range is not None:
        nanos = _largest_in(policy.valid_range, left)
        if nanos is not None:
            yield amount(nanos, capacity.value)
    elif left > 0:
        exact = amount(left, capacity.value)
        yield rounded_down(exact) or exact


def _largest_in(limits: CapacityRequestPolicyRange, left: int) -> int | None:
    """The largest amount of a range that is not more than `left`; None if all amounts are more."""
    least = limits.min.nanos if limits.min is not None else 0
    most = left if limits.max is None else min(left, limits.max.nanos)
    step = limits.step.nanos if limits.step is not None else _NO_STEP
    if most < least or step <= 0:
        return None
    return least + (most - least) // step * step
