"""Phrases: the parts of `wording`'s sentences that do not depend on the reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from allot.allocation.explain.amounts import counted, readable, readable_need
from allot.allocation.explain.findings import (
    ConflictingConstraint,
    Refusal,
    RequestReport,
    SideValue,
    UnusablePool,
)
from allot.allocation.explain.reasons import (
    AmountNotAllowed,
    AnyReason,
    ConstraintUnmet,
    ExpressionFailed,
    Held,
    InsufficientCapacity,
    InsufficientCounter,
    NoSuchCapacity,
    NotDecidable,
    NotEligible,
    ReadValue,
    TypedValue,
)
from allot.api.identities import DeviceId
from allot.features import DERIVED_ATTRIBUTES

MAX_NAMES: Final = 3
"""How many names are listed; the rest is counted."""
_MAX_JOINED: Final = 8
_MAX_SIDE_VALUES: Final = 4


def amounts_text(reason: AnyReason) -> str:
    """Why a capacity or counter is insufficient, or an amount not allowed."""
    match reason:
        case NoSuchCapacity(capacity, asked, near):
            is_literal = (
                near.rpartition("/")[2].casefold() == capacity.rpartition("/")[2].casefold()
            )
            literally = "names are compared literally: " if is_literal else ""
            hint = f"; {literally}did you mean {near}?" if near else ""
            return f"has no capacity {capacity}, of which {asked} is requested{hint}"
        case NotEligible(problem):
            return f"is not eligible: {problem}"
        case AmountNotAllowed(requested, allowed):
            amounts = ", ".join(f"{name}={asked}" for name, asked in requested)
            limits = "; ".join(f"{name}: {policy}" for name, policy in allowed)
            return (
                f"its request policy does not allow {amounts or 'the default'}"
                f"{f' ({limits})' if limits else ''}"
            )
        case InsufficientCapacity(capacity, requested_amount, needed, left, total):
            if requested_amount is None:
                wanted = f"{readable_need(needed)} needed"
            elif requested_amount == needed:
                wanted = f"{requested_amount} requested"
            else:
                wanted = f"{requested_amount} requested, {readable_need(needed)} needed"
            return f"capacity {capacity}: {wanted}, {readable(left)} of {total} left"
        case InsufficientCounter(counter_set, counter, needed, left, total):
            return (
                f"counter {counter_set}/{counter}: {readable_need(needed)} needed,"
                f" {readable(left)} of {readable(total)} left"
            )
    raise AssertionError(reason)


def unmet_text(reason: ConstraintUnmet) -> str:
    """The conflicting values, with their types where these differ."""
    types = {reason.value.type, *(other.value.type for other in reason.others)}
    with_type = len(types) > 1
    others = "; ".join(
        f"{_short_name(other.device)} has {_value_text(other.value, with_type)}"
        for other in reason.others
    )
    own = _value_text(reason.value, with_type)
    return (
        f"attribute {reason.attribute} = {own} must {constraint_verb(reason.must_match)}: {others}"
    )


def constraint_verb(must_match: bool) -> str:
    """What a constraint requires of its devices."""
    return "match" if must_match else "be distinct"


def has_error(report: RequestReport) -> bool:
    """Whether an error ended the check, so that values are meaningless."""
    return bool(report.problem) or any(
        isinstance(each.reason, ExpressionFailed | NotDecidable) for each in report.refusals
    )


def found_text(report: RequestReport) -> str:
    """How many devices a request finds."""
    if not report.wanted:
        return "wants all devices"
    return f"finds {report.found} of {counted(report.wanted, 'device')}"


def values_read_text(values: Iterable[ReadValue]) -> str:
    """What a selector read of the device: ` (model = "h100")`."""
    seen = ", ".join(f"{each.name} = {_value_text(each.value)}" for each in values)
    return f" ({seen})" if seen else ""


def _value_text(value: TypedValue, with_type: bool = False) -> str:
    """A value: strings in quotes, so that they differ from numbers; with its type where types differ."""
    if not value.type:
        return "unset"
    text = f'"{value.value}"' if value.type == "string" else value.value
    if value.type.endswith("[]"):
        text = f"[{value.value}]"
    return f"{text} ({value.type})" if with_type else text


def _constraint_name(constraint: ConflictingConstraint) -> str:
    """A constraint by its field and attribute."""
    kind = "matchAttribute" if constraint.must_match else "distinctAttribute"
    return f"{kind} {constraint.attribute}"


def constraints_text(constraints: Sequence[ConflictingConstraint]) -> str:
    """Constraints by field and attribute; those that share both, also by their index."""
    indexes: dict[str, list[int]] = {}
    for constraint in constraints:
        indexes.setdefault(_constraint_name(constraint), []).append(constraint.constraint)
    return joined(
        [
            f"{name} (constraints {joined([f'#{index}' for index in same])})"
            if len(same) > 1
            else name
            for name, same in indexes.items()
        ]
    )


def sides_text(constraints: Sequence[ConflictingConstraint]) -> str:
    """The values that the devices of each request have, by attribute if there are several."""
    by_attribute: dict[str, dict[str, None]] = {}
    for constraint in constraints:
        by_attribute.setdefault(constraint.attribute, {}).update(
            dict.fromkeys(_sides_of(constraint))
        )
    if len(by_attribute) == 1:
        return "; ".join(text for texts in by_attribute.values() for text in texts)
    return "; ".join(
        f"for {attribute}, {'; '.join(texts)}" for attribute, texts in by_attribute.items() if texts
    )


def _sides_of(constraint: ConflictingConstraint) -> Iterator[str]:
    types = {value.value.type for side in constraint.sides for value in side.values}
    requests: dict[tuple[tuple[SideValue, ...], tuple[str, ...]], list[str]] = {}
    for side in constraint.sides:
        requests.setdefault((side.values, side.without), []).append(side.request)
    for (values, without), names in requests.items():
        parts = [_side_value(each, len(types) > 1) for each in values[:_MAX_SIDE_VALUES]]
        more = len(values) - _MAX_SIDE_VALUES
        if more > 0:
            parts.append(counted(more, "more value"))
        if without:
            lack = "does" if len(without) == 1 else "do"
            parts.append(f"{device_names(without, joined)} {lack} not have it")
        who = f"{joined(names)}: " if len(requests) > 1 else ""
        yield f"{who}{', '.join(parts)}" if parts else f"{who}there are no devices"
    if any(side.is_ignored for side in constraint.sides):
        yield f"derived attributes are ignored, because feature gate {DERIVED_ATTRIBUTES} is off"


def _side_value(side: SideValue, with_type: bool) -> str:
    has = "has" if len(side.devices) == 1 else "have"
    return f"{device_names(side.devices, joined)} {has} {_value_text(side.value, with_type)}"


def pool_text(pool: UnusablePool) -> str:
    """Why a pool is skipped."""
    if pool.invalid_because:
        return f"pool {pool.driver}/{pool.pool} is invalid: {pool.invalid_because}"
    return f"pool {pool.driver}/{pool.pool} is incomplete: not all of its slices are here"


def merged_refusals(refusals: Iterable[Refusal]) -> list[Refusal]:
    """The refusals, with devices that several claims hold under one reason."""
    holders: dict[str, None] = {}
    devices: list[DeviceId] = []
    merged: list[Refusal] = []
    for each in refusals:
        if isinstance(each.reason, Held) and not each.reason.shares:
            holders.update(dict.fromkeys(each.reason.claims))
            devices += each.devices
        else:
            merged.append(each)
    return [Refusal(Held(tuple(holders)), tuple(devices)), *merged] if devices else merged


def _short_name(device: DeviceId | str) -> str:
    """The device without its driver and pool."""
    return device.device if isinstance(device, DeviceId) else device.rpartition("/")[2]


def listed(names: Sequence[str]) -> str:
    """`a, b, c and 5 more`."""
    shown = ", ".join(names[:MAX_NAMES])
    more = len(names) - MAX_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def joined(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; of many, the first few and how many more."""
    if len(names) > _MAX_JOINED:
        return listed(names)
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def device_names(
    devices: Sequence[DeviceId | str], together: Callable[[Sequence[str]], str] = listed
) -> str:
    """The devices by name; with the pool where names occur twice."""
    names = [_short_name(device) for device in devices]
    twice = {name for name, number in Counter(names).items() if number > 1}
    return together(
        [
            str(device).partition("/")[2] if name in twice else name
            for name, device in zip(names, devices, strict=True)
        ]
    )


def sentence(text: str) -> str:
    """The sentence with a full stop, unless it is a question."""
    return text if text.endswith("?") else f"{text}."
