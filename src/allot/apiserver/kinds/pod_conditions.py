"""Conditions that the server itself writes into a pod's status, and times as JSON writes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from allot.api.core import Pod
from allot.api.times import written_time


def with_condition(pod: Pod, condition: dict[str, Any], now: datetime) -> Pod:
    """The pod with this condition instead of an older one of its type.

    The time of the last transition stays as it was if the status does.
    """
    conditions: list[dict[str, Any]] = list(pod.get("status", "conditions", default=[]))
    stamped = {"lastProbeTime": None} | condition | {"lastTransitionTime": written_time(now)}
    for index, before in enumerate(conditions):
        if before.get("type") != condition["type"]:
            continue
        if before.get("status") == condition["status"] and "lastTransitionTime" in before:
            stamped["lastTransitionTime"] = before["lastTransitionTime"]
        conditions[index] = stamped
        break
    else:
        conditions.append(stamped)
    return pod.with_value(conditions, "status", "conditions")
