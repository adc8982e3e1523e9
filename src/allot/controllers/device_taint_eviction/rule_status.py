"""The condition EvictionInProgress of a rule, and when it may be written again.

The time of the last write is in the condition itself, so that several controllers and restarts respect it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from allot.api.classes import DeviceTaintRule
from allot.api.meta import Condition
from allot.api.raw import RawObject
from allot.api.resource import NO_EFFECT, NO_EXECUTE
from allot.api.times import written_time

EVICTION_IN_PROGRESS: Final = "EvictionInProgress"
PENDING: Final = "PodsPendingEviction"
COMPLETED: Final = "Completed"
NOT_STARTED: Final = "NotStarted"
DRY_RUN: Final = "NoEffect"
OTHER_EFFECT: Final = "OtherEffect"

UPDATE_SECONDS: Final = 10.0
"""Minimum interval between writes of the condition for one spec."""


class Reach(NamedTuple):
    """How many pods a rule evicts or would evict, and how many devices it selects."""

    pods: int = 0
    namespaces: int = 0
    published_devices: int = 0
    allocated_devices: int = 0


class EvictionCondition(NamedTuple):
    """Status, reason and message of the condition."""

    status: str
    reason: str
    message: str = ""


def known_condition(rule: DeviceTaintRule) -> Condition | None:
    """The condition if it is about the current spec."""
    for condition in rule.status.conditions:
        if condition.type == EVICTION_IN_PROGRESS:
            is_current = condition.observed_generation == rule.metadata.generation
            return condition if is_current else None
    return None


def is_final(rule: DeviceTaintRule) -> bool:
    """Whether the condition is final: a dry run is made once for each spec."""
    known = known_condition(rule)
    return known is not None and rule.spec.taint.effect == NO_EFFECT and known.reason == DRY_RUN


def seconds_until_update(rule: DeviceTaintRule, today: datetime) -> float:
    """How long to wait before the condition may be written; at most `UPDATE_SECONDS`."""
    known = known_condition(rule)
    if known is None or known.last_transition_time is None:
        return 0.0
    since = (today - known.last_transition_time).total_seconds()
    return min(max(UPDATE_SECONDS - since, 0.0), UPDATE_SECONDS)


def eviction_condition(
    rule: DeviceTaintRule, reach: Reach, evicted: int
) -> EvictionCondition | None:
    """The condition to write; None if it is up to date. `evicted` counts since this controller started."""
    known = known_condition(rule)
    update = _progress(rule.spec.taint.effect, reach, evicted, known)
    if evicted:
        tail = f"{_pods(evicted)} evicted since starting the controller."
        update = update._replace(message=f"{update.message} {tail}".lstrip())
    is_known = known is not None and update == (known.status, known.reason, known.message)
    return None if is_known else update


def _progress(
    effect: str, reach: Reach, evicted: int, known: Condition | None
) -> EvictionCondition:
    if effect == NO_EFFECT:
        return EvictionCondition("False", DRY_RUN, _dry_run(reach))
    if effect != NO_EXECUTE:
        return EvictionCondition(
            "False", OTHER_EFFECT, f"Eviction only happens for the {NO_EXECUTE} effect."
        )
    if reach.pods:
        need = "needs" if reach.pods == 1 else "need"
        message = f"{_pods(reach.pods)} {need} to be evicted in {_places(reach.namespaces)}."
        return EvictionCondition("True", PENDING, message)
    # Another controller, or this one before a restart, may have evicted pods.
    has_evicted = evicted or (known is not None and known.reason in (PENDING, COMPLETED))
    return EvictionCondition("False", COMPLETED if has_evicted else NOT_STARTED)


def _dry_run(reach: Reach) -> str:
    return (
        f"{_devices(reach.published_devices, 'published')} selected. "
        f"{_devices(reach.allocated_devices, 'allocated')} selected. "
        f"{_pods(reach.pods)} would be evicted in {_places(reach.namespaces)} "
        f"if the effect was {NO_EXECUTE}. This information will not be updated again. "
        "Recreate the DeviceTaintRule to trigger an update."
    )


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def _places(namespaces: int) -> str:
    return "1 namespace" if namespaces == 1 else f"{namespaces} different namespaces"


def _devices(count: int, kind: str) -> str:
    return f"1 {kind} device" if count == 1 else f"{count} {kind} devices"


def with_condition(rule: RawObject, update: EvictionCondition, today: datetime) -> RawObject:
    """The rule with its condition replaced or added. All other fields are unchanged."""
    condition = {
        "type": EVICTION_IN_PROGRESS,
        "observedGeneration": rule.get("metadata", "generation", default=0),
        "lastTransitionTime": written_time(today),
        **update._asdict(),
    }
    conditions = list(rule.get("status", "conditions", default=()))
    for index, known in enumerate(conditions):
        if known.get("type") == EVICTION_IN_PROGRESS:
            conditions[index] = condition
            break
    else:
        conditions.append(condition)
    return rule.with_value(conditions, "status", "conditions")
