"""Conditions that the server itself writes into a pod's status, and times as JSON writes them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from allot.api.core import Pod
from allot.api.times import written_time


def with_condition(pod: Pod, condition: dict[str, Any], now: datetime) -> Pod:
    """The pod with this condition instead of an older one of its type."""
    before = pod.get("status", "conditions", default=[])
    return pod.with_value(changed_conditions(before, condition, now), "status", "conditions")


def changed_conditions(
    conditions: Iterable[dict[str, Any]], condition: dict[str, Any], now: datetime
) -> list[dict[str, Any]]:
    """The conditions of a pod with this one instead of an older one of its type.

    The time of the last transition stays as it was if the status does.
    """
    changed = list(conditions)
    stamped = {"lastProbeTime": None, **condition, "lastTransitionTime": written_time(now)}
    for index, before in enumerate(changed):
        if before.get("type") != condition["type"]:
            continue
        if before.get("status") == condition["status"] and "lastTransitionTime" in before:
            stamped["lastTransitionTime"] = before["lastTransitionTime"]
        changed[index] = stamped
        break
    else:
        changed.append(stamped)
    return changed
