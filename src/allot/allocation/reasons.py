"""Reasons: why a device is refused, in words and with values.

The rules are asked in the same order as in `attempt`, so the reason given is the one that decides. Only of devices
that others have it is said first if they would not do anyway: then it does not help that they are given back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.allocation.attempt import Attempt
from allot.allocation.candidates import LazySelector
from allot.allocation.capacity import Consumption
from allot.allocation.constraints import Constraint, Match
from allot.allocation.devices import CounterKey, PoolDevice
from allot.allocation.errors import AllocationError
from allot.allocation.ledger import shown_holder
from allot.allocation.near_misses import capacity_near_miss
from allot.allocation.requests import Alternative
from allot.api.quantity import Quantity
from allot.api.slices import CapacityRequestPolicy

MAX_SHOWN_EXPRESSION: Final = 400
"""How much of an expression is part of a reason."""

IS_FALSE: Final = " is false: "
"""Between the place of a selector and its expression, where a device is not of the kind that is wanted."""


def refusal(attempt: Attempt, alternative: Alternative, index: int) -> str | None:
    """The first reason why the alternative cannot have the device now; None if it can."""
    try:
        return next(_refusals(attempt, alternative, index), None)
    except AllocationError as error:
        return str(error)


def _refusals(attempt: Attempt, alternative: Alternative, index: int) -> Iterator[str]:
    device = attempt.devices[index]
    rules = attempt.rules
    if attempt.is_in_use(alternative, index) and _would_do(attempt, alternative, index):
        yield _in_use(attempt, device, index)
    if not rules.is_selectable(alternative, index):
        yield _not_selected(attempt, alternative, index)
    if rules.consumable:
        consumed = rules.consumption(alternative, index)
        if consumed is None:
            bad = rules.bad_capacity(alternative, index)
            yield f"is not eligible: {bad}" if bad else _not_allowed(alternative, device)
        elif not attempt.has_capacity(index, consumed):
            yield _no_capacity(attempt, alternative, device, index, consumed)
    if not rules.supports_operations(device):
        yield f"needs {', '.join(device.skip_node_operations)} skipped, which the node does not support"
    if device.counter_uses:
        if not rules.partitionable:
            yield "consumes counters, but partitionable devices are disabled"
        elif not (device.shareable and rules.consumable and attempt.has_share(index)):
            if not attempt.counters.admit_groups_of(device):
                yield "its compatibility groups do not go with devices in the same counter set"
            if not attempt.counters.suffice_for(device):
                yield _short_counter(attempt, device)
    taint = rules.untolerated_taint(alternative, index)
    if taint is not None:
        value = f"={taint.value}" if taint.value else ""
        yield f"taint {taint.key}{value}:{taint.effect} is not tolerated"
    for constraint in alternative.constraints:
        reason = _unmet(attempt, constraint, alternative, index)
        if reason is not None:
            yield reason


def _would_do(attempt: Attempt, alternative: Alternative, index: int) -> bool:
    """Whether selectors let the device through; also if nobody knows, because nobody had to ask."""
    try:
        return attempt.rules.is_selectable(alternative, index)
    except AllocationError:
        return True


def _in_use(attempt: Attempt, device: PoolDevice, index: int) -> str:
    holders = attempt.rules.ledger.holders(device.id)
    if holders and attempt.rules.ledger.is_dedicated(device.id):
        return f"held by claim {', '.join(map(shown_holder, holders))}"
    pick = next((pick for pick in attempt.picks if pick.index == index), None)
    if pick is None:
        by = ", ".join(map(shown_holder, holders))
        return f"shares of it, which may not be shared any more, are held by claim {by}"
    return f"taken by request {pick.alternative.label} of claim {pick.alternative.claim.key}"


# --- selectors ---


def _not_selected(attempt: Attempt, alternative: Alternative, index: int) -> str:
    device = attempt.devices[index]
    selector = attempt.rules.refused_by(alternative, index)
    if selector is not None:
        values = _values_seen(selector, device)
        return f"{selector.place}{IS_FALSE}{_shown(selector.expression or '')}{values}"
    if device.selects_node_itself:
        return "is for other nodes"
    return "has binding conditions, which are disabled"


def _shown(expression: str) -> str:
    """The expression, or its beginning: every device may get a reason of its own."""
    if len(expression) <= MAX_SHOWN_EXPRESSION:
        return expression
    return f"{expression[:MAX_SHOWN_EXPRESSION]}…"


def _values_seen(selector: LazySelector, device: PoolDevice) -> str:
    """What the selector read of the device: ` (model = "A100")`."""
    seen = []
    for place in selector.reads:
        value: Any = device.prepared.device
        for part in filter(None, place):
            value = value.get(part) if isinstance(value, Mapping) else None
        name = place[-1] or place[1]
        seen.append(f"{name} = {'unset' if value is None or value == {} else value}")
    return f" ({', '.join(seen)})" if seen else ""


# --- capacity and counters ---


def _not_allowed(alternative: Alternative, device: PoolDevice) -> str:
    own = dict(device.capacity)
    for name, requested in alternative.capacity.items():
        if name not in own:
            near = capacity_near_miss(name, device.id.driver, own)
            hint = f"; names are compared literally: did you mean {near}?" if near else ""
            return f"has no capacity {name}, of which {requested} is requested{hint}"
    asked = ", ".join(f"{name}={amount}" for name, amount in alternative.capacity.items())
    allowed = "; ".join(
        f"{name}: {policy_text(capacity.request_policy)}"
        for name, capacity in own.items()
        if capacity.request_policy is not None and name in alternative.capacity
    )
    limits = f" ({allowed})" if allowed else ""
    return f"its request policy does not allow {asked or 'the default'}{limits}"


def policy_text(policy: CapacityRequestPolicy) -> str:
    """The amounts that a policy allows."""
    if policy.valid_values:
        return f"one of {', '.join(map(str, policy.valid_values))}"
    limits = policy.valid_range
    if limits is None:
        return "any amount"
    parts = [f"from {limits.min}"] if limits.min is not None else []
    parts += [f"to {limits.max}"] if limits.max is not None else []
    parts += [f"in steps of {limits.step}"] if limits.step is not None else []
    return " ".join(parts) or "any amount"


def _no_capacity(
    attempt: Attempt,
    alternative: Alternative,
    device: PoolDevice,
    index: int,
    consumed: Consumption,
) -> str:
    allocated = attempt.rules.ledger.consumed(device.id, device.capacity)
    attempted = attempt.consumed.get(index, {})
    for name, capacity in device.capacity:
        left = capacity.value.nanos - allocated.get(name, 0) - attempted.get(name, 0)
        if left < consumed[name].nanos:
            requested = alternative.capacity.get(name)
            asked = f"{requested} requested, " if requested is not None else ""
            return (
                f"capacity {name}: {asked}{consumed[name]} needed,"
                f" {amount_text(left, capacity.value)} of {capacity.value} left"
            )
    raise AssertionError("asked although there is enough")


def amount_text(nanos: int, like: Quantity) -> str:
    """An amount in billionths, written in the format of another."""
    whole, rest = divmod(nanos, 10**9)
    return str(
        Quantity(nanos, like.format, "", -9, False) if rest else Quantity.of(whole, like.format)
    )


def _short_counter(attempt: Attempt, device: PoolDevice) -> str:
    short = attempt.counters.short(device) or _overcommitted(attempt, device)
    _, _, counter_set, name = short
    left = attempt.counters.left[short]
    wanted = dict(device.counter_keys).get(short, 0)
    like = Quantity.of(0, "BinarySI" if wanted >= 1024 * 10**9 else "DecimalSI")
    total = attempt.rules.view.pool_by_id[device.pool].counters[counter_set][name]
    return (
        f"counter {counter_set}/{name}: {amount_text(wanted, like)} needed,"
        f" {amount_text(left, like)} of {amount_text(total, like)} left"
    )


def _overcommitted(attempt: Attempt, device: PoolDevice) -> CounterKey:
    """The counter of which less than nothing is left: it blocks the pool."""
    for counter_set, counters in attempt.counters.available(device.pool).counters.items():
        attempt.rules.meter.spend(1 + len(counters) // 4)
        for name, left in counters.items():
            if left < 0:
                return (*device.pool, counter_set, name)
    raise AssertionError("asked although there is enough")


# --- constraints ---


def _unmet(
    attempt: Attempt, constraint: Constraint, alternative: Alternative, index: int
) -> str | None:
    value = attempt.rules.attribute(constraint, alternative, index)
    kind = "match" if isinstance(constraint, Match) else "be distinct"
    if value is None or (constraint.lists and not value.values):
        return f"has no attribute {constraint.attribute}, which must {kind}"
    if constraint.admits(value):
        return None
    attempt.rules.meter.spend(len(attempt.picks))
    others = [
        f"{attempt.devices[pick.index].id.device} has {seen}"
        for pick in attempt.picks
        if constraint in pick.alternative.constraints
        and (seen := attempt.rules.attribute(constraint, pick.alternative, pick.index)) is not None
    ]
    return f"attribute {constraint.attribute} = {value} must {kind}: {'; '.join(others)}"
