"""Refusals: the reason, with its values, for the rule by which `AllocationAttempt.examine` refuses a device.

The order of the rules is that of `examine`, with one exception: for a device that another claim holds, a selector that
refuses it comes first, because releasing the device would not help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from allot.allocation.allocated_devices import shown_holder
from allot.allocation.attributes import AttributeSet
from allot.allocation.constraints import Constraint
from allot.allocation.devices import CounterKey, PoolDevice
from allot.allocation.errors import AllocationError, ExpressionError
from allot.allocation.explain.amounts import amount, policy_text
from allot.allocation.explain.reasons import (
    AmountNotAllowed,
    AnyReason,
    BindingConditionsDisabled,
    ConstraintUnmet,
    CountersDisabled,
    DeviceValue,
    ExpressionFailed,
    Held,
    IncompatibleGroups,
    InsufficientCapacity,
    InsufficientCounter,
    NoAttribute,
    NodeOperations,
    NoSuchCapacity,
    NotDecidable,
    NotEligible,
    NotSelected,
    OtherNodes,
    ReadValue,
    RecentlyFailed,
    Tainted,
    TakenByRequest,
    TakenBySameRequest,
    TypedValue,
)
from allot.allocation.published_names import published_capacity_name
from allot.allocation.requests import Alternative
from allot.allocation.search.attempt import AllocationAttempt, FailedRule, Pick
from allot.allocation.search.candidates import LazySelector
from allot.allocation.taints import adding_rule
from allot.api.quantity import Quantity
from allot.api.resource import DeviceTaint
from allot.api.similar_names import similar_names, similarity
from allot.cel.device import split_name

_MIN_SIMILARITY: Final = 0.7
"""How similar names must be for a suggestion."""
_MIN_DOMAIN_SIMILARITY: Final = 0.85
"""The same for domains; those of several drivers often have the same ending."""
_MAX_SIMILAR: Final = 2


def refusal(attempt: AllocationAttempt, alternative: Alternative, index: int) -> AnyReason | None:
    """Why the alternative cannot take the device, or another share of it; None if it can, or has it."""
    if any(pick.alternative is alternative and pick.index == index for pick in attempt.picks):
        shared = attempt.rules.consumable and attempt.devices[index].shareable
        return TakenBySameRequest() if shared else None
    try:
        found = attempt.examine(alternative, index)
        if isinstance(found, Pick):
            return None
        return _reason(found, attempt, alternative, index)
    except AllocationError as error:
        return failure(error, attempt, alternative, index)


def _reason(
    rule: FailedRule, attempt: AllocationAttempt, alternative: Alternative, index: int
) -> AnyReason:
    device = attempt.devices[index]
    match rule:
        case FailedRule.IN_USE:
            return _in_use(attempt, alternative, index)
        case FailedRule.NOT_SELECTED:
            return _not_selected(attempt, alternative, index)
        case FailedRule.AMOUNT_NOT_ALLOWED:
            bad = attempt.rules.bad_capacity(alternative, index)
            return NotEligible(bad) if bad else _not_allowed(alternative, device)
        case FailedRule.CAPACITY:
            return _no_capacity(attempt, alternative, index)
        case FailedRule.NODE_OPERATIONS:
            return NodeOperations(device.skip_node_operations)
        case FailedRule.COUNTERS_DISABLED:
            return CountersDisabled()
        case FailedRule.COMPATIBILITY_GROUPS:
            return IncompatibleGroups()
        case FailedRule.COUNTERS:
            return _short_counter(attempt, device)
        case FailedRule.TAINT:
            taint = attempt.rules.untolerated_taint(alternative, index)
            assert taint is not None, "refused by it"
            return _tainted(attempt, device, taint)
        case FailedRule.CONSTRAINT:
            return _unmet(attempt, alternative, index)


def _tainted(attempt: AllocationAttempt, device: PoolDevice, taint: DeviceTaint) -> Tainted:
    attempt.rules.meter.spend(len(device.device.taints) + len(device.taint_rules))
    shown = (taint.key, taint.value, taint.effect)
    is_published = taint in device.device.taints
    rule = "" if is_published else adding_rule(device.id, *shown, device.taint_rules)
    return Tainted(*shown, rule)


def _in_use(attempt: AllocationAttempt, alternative: Alternative, index: int) -> AnyReason:
    if not _would_do(attempt, alternative, index):
        return _not_selected(attempt, alternative, index)
    device = attempt.devices[index]
    if device.id in attempt.rules.avoided:
        return RecentlyFailed()
    ledger = attempt.rules.ledger
    holders = tuple(map(shown_holder, ledger.holders(device.id)))
    if holders and ledger.is_dedicated(device.id):
        return Held(holders)
    pick = next((pick for pick in attempt.picks if pick.index == index), None)
    if pick is None:
        return Held(holders, shares=True)
    return TakenByRequest(str(pick.alternative.claim.key), pick.alternative.label)


def _would_do(attempt: AllocationAttempt, alternative: Alternative, index: int) -> bool:
    """Whether selectors admit the device; also true if they were not evaluated."""
    try:
        return attempt.rules.is_selectable(alternative, index)
    except AllocationError:
        return True


# --- selectors ---


def _not_selected(attempt: AllocationAttempt, alternative: Alternative, index: int) -> AnyReason:
    device = attempt.devices[index]
    selector = attempt.rules.refused_by(alternative, index)
    if selector is not None:
        return NotSelected(
            selector.expression or "",
            selector.index,
            selector.class_name,
            "" if selector.class_name else str(alternative.claim.key),
            tuple(_values_read(selector, device)),
        )
    return OtherNodes() if device.selects_node_itself else BindingConditionsDisabled()


def _values_read(selector: LazySelector, device: PoolDevice) -> Iterator[ReadValue]:
    for place in selector.reads:
        yield ReadValue(place[-1] or place[1], typed(_value_at(place, device)))


def _value_at(place: Iterable[str], device: PoolDevice) -> Any:
    """None if it is not set."""
    value: Any = device.prepared.device
    for part in filter(None, place):
        value = value.get(part) if isinstance(value, Mapping) else None
    return None if value == {} else value


def typed(value: Any) -> TypedValue:
    """A value that an expression reads, with its type."""
    match value:
        case None:
            return TypedValue()
        case bool():
            return TypedValue(str(value).lower(), "bool")
        case int():
            return TypedValue(str(value), "int")
        case str():
            return TypedValue(value, "string")
        case Quantity():
            return TypedValue(str(value), "quantity")
        case list() | tuple():
            items = [typed(item) for item in value]
            kind = items[0].type if items else ""
            return TypedValue(", ".join(item.value for item in items), f"{kind}[]")
        case Mapping():
            return TypedValue(", ".join(sorted(map(str, value))), "map")
    return TypedValue(str(value), "version")


def failure(
    error: AllocationError, attempt: AllocationAttempt, alternative: Alternative, index: int
) -> AnyReason:
    """The cause of an error on a device: the expression, and what it reads that is missing."""
    if not isinstance(error, ExpressionError):
        return NotDecidable(error.problem)
    device = attempt.devices[index]
    selector = attempt.rules.failing_selector(alternative, error.expression)
    derived = next(
        (each.name for each in alternative.derived.values() if each.expression == error.expression),
        "",
    )
    missing = sorted(
        place
        for place in attempt.rules.reads(alternative, error.expression)
        if len(place) == 3 and place[2] and _value_at(place, device) is None
    )
    return ExpressionFailed(
        error.expression,
        error.cause,
        selector.index if selector is not None else None,
        selector.class_name if selector is not None else "",
        derived if selector is None else "",
        tuple(f"{domain}/{name}" for _, domain, name in missing),
        tuple(_similar(missing, device)),
    )


def _similar(missing: Iterable[tuple[str, ...]], device: PoolDevice) -> Iterator[str]:
    """Names of the device that are similar to a missing one."""
    for kind, domain, name in missing:
        own = device.device.attributes if kind == "attributes" else device.device.capacity
        names = [split_name(each, device.id.driver) for each in own]
        identifiers = (each for _, each in names)
        for identifier in similar_names(
            name, identifiers, limit=_MAX_SIMILAR, min_similarity=_MIN_SIMILARITY
        ):
            yield from (
                f"{other}/{each}"
                for other, each in names
                if each == identifier
                and (other, each) != (domain, name)
                and similarity(domain, other) >= _MIN_DOMAIN_SIMILARITY
            )


# --- capacity and counters ---


def _not_allowed(alternative: Alternative, device: PoolDevice) -> AnyReason:
    own = dict(device.capacity)
    for name, requested in alternative.capacity.items():
        if name not in own:
            near = published_capacity_name(name, device.id.driver, own)
            return NoSuchCapacity(name, str(requested), near or _first_similar(name, own))
    return AmountNotAllowed(
        tuple((name, str(asked)) for name, asked in alternative.capacity.items()),
        tuple(
            (name, policy_text(capacity.request_policy))
            for name, capacity in own.items()
            if capacity.request_policy is not None and name in alternative.capacity
        ),
    )


def _first_similar(name: str, known: Iterable[str]) -> str:
    found = similar_names(name, known, limit=1, min_similarity=_MIN_SIMILARITY)
    return found[0] if found else ""


def _no_capacity(attempt: AllocationAttempt, alternative: Alternative, index: int) -> AnyReason:
    device = attempt.devices[index]
    consumed = attempt.rules.consumption(alternative, index) or {}
    allocated = attempt.rules.ledger.consumed(device.id, device.capacity)
    attempted = attempt.consumed.get(index, {})
    for name, capacity in device.capacity:
        left = capacity.value.nanos - allocated.get(name, 0) - attempted.get(name, 0)
        if left < consumed[name].nanos:
            return InsufficientCapacity(
                name,
                alternative.capacity.get(name),
                consumed[name],
                amount(left, capacity.value),
                capacity.value,
            )
    raise AssertionError("refused although there is enough")


def _short_counter(attempt: AllocationAttempt, device: PoolDevice) -> AnyReason:
    short = attempt.counters.short(device) or _overcommitted(attempt, device)
    _, _, counter_set, name = short
    wanted = dict(device.counter_keys).get(short, 0)
    like = Quantity.of(0, "BinarySI" if wanted >= 1024 * 10**9 else "DecimalSI")
    total = attempt.rules.view.pool_by_id[device.pool].counters[counter_set][name]
    return InsufficientCounter(
        counter_set,
        name,
        amount(wanted, like),
        amount(attempt.counters.left[short], like),
        amount(total, like),
    )


def _overcommitted(attempt: AllocationAttempt, device: PoolDevice) -> CounterKey:
    """The negative counter that blocks the pool."""
    for counter_set, counters in attempt.counters.available(device.pool).counters.items():
        attempt.rules.meter.spend(1 + len(counters) // 4)
        for name, left in counters.items():
            if left < 0:
                return (*device.pool, counter_set, name)
    raise AssertionError("refused although there is enough")


# --- constraints ---


def _unmet(attempt: AllocationAttempt, alternative: Alternative, index: int) -> AnyReason:
    """The first constraint that the device violates, with the values of all devices under it."""
    for constraint in alternative.constraints:
        value = attempt.rules.attribute(constraint, alternative, index)
        if value is None or (constraint.lists and not value.values):
            return NoAttribute(constraint.attribute, constraint.is_match)
        if not constraint.admits(value):
            attempt.rules.meter.spend(len(attempt.picks))
            others = tuple(_values_under(constraint, attempt))
            own = typed_set(value)
            return ConstraintUnmet(constraint.attribute, constraint.is_match, own, others)
    raise AssertionError("refused although all constraints are met")


def _values_under(constraint: Constraint, attempt: AllocationAttempt) -> Iterator[DeviceValue]:
    for pick in attempt.picks:
        if constraint in pick.alternative.constraints:
            value = attempt.rules.attribute(constraint, pick.alternative, pick.index)
            if value is not None:
                yield DeviceValue(str(attempt.devices[pick.index].id), typed_set(value))


def typed_set(value: AttributeSet) -> TypedValue:
    """An attribute as constraints compare it, with its type."""
    shown = ", ".join(sorted(map(_plain, value.values)))
    return TypedValue(shown, f"{value.kind}[]" if value.is_list else value.kind)


def _plain(value: int | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
