"""The taints of a node, derived from its conditions."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, Final

from allot.api.core import Node
from allot.api.times import written_time
from allot.controllers.node_lifecycle.health import (
    FALSE,
    TRUE,
    UNKNOWN,
    conditions_of,
    ready_status,
)

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

TAINT_BY_CONDITION: Final = {
    ("Ready", FALSE): NOT_READY,
    ("Ready", UNKNOWN): UNREACHABLE,
    ("MemoryPressure", TRUE): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", TRUE): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", TRUE): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", TRUE): "node.kubernetes.io/network-unavailable",
}
MANAGED_NO_SCHEDULE_TAINTS: Final = frozenset((*TAINT_BY_CONDITION.values(), UNSCHEDULABLE))
"""NoSchedule taints that this controller owns: removed if no condition requires them."""
MANAGED_NO_EXECUTE_TAINTS: Final = (NOT_READY, UNREACHABLE)
"""NoExecute taints that this controller owns."""

Taint = dict[str, Any]


class NoExecuteTaint(Enum):
    """What to do with the NoExecute taint of a node."""

    REMOVE = "remove"
    ADD = "add the one for the condition Ready"
    KEEP = "keep"


def scheduling_keys(node: Node) -> list[str]:
    """The keys of the NoSchedule taints that the conditions require."""
    keys = [
        TAINT_BY_CONDITION[found]
        for condition in conditions_of(node)
        if (found := (condition.get("type"), condition.get("status"))) in TAINT_BY_CONDITION
    ]
    return [*keys, UNSCHEDULABLE] if node.is_unschedulable else keys


def evicting_key(node: Node) -> str | None:
    """The key of the NoExecute taint that the node should have."""
    match ready_status(node):
        case "False":
            return NOT_READY
        case "Unknown":
            return UNREACHABLE
    return None


def has_evicting_taint(node: Node, *keys: str) -> bool:
    return any(
        taint.get("effect") == NO_EXECUTE and taint.get("key") in keys for taint in node.taints
    )


def with_taints(node: Node, evicting: NoExecuteTaint, today: datetime) -> Node:
    """The node with its taints updated; the node itself if nothing changes. Other taints stay."""
    wanted = {(key, NO_SCHEDULE) for key in scheduling_keys(node)}
    ours = {(key, NO_SCHEDULE) for key in MANAGED_NO_SCHEDULE_TAINTS}
    if evicting is not NoExecuteTaint.KEEP:
        ours |= {(key, NO_EXECUTE) for key in MANAGED_NO_EXECUTE_TAINTS}
        key = evicting_key(node)
        if evicting is NoExecuteTaint.ADD and key is not None:
            wanted.add((key, NO_EXECUTE))
    kept = [taint for taint in node.taints if (name := _name(taint)) not in ours or name in wanted]
    there = {_name(taint) for taint in kept}
    moment = written_time(today)
    added = [
        {"key": key, "effect": effect, "timeAdded": moment}
        for key, effect in sorted(wanted - there)
    ]
    if not added and len(kept) == len(node.taints):
        return node
    return node.with_value([*kept, *added] or None, "spec", "taints")


def _name(taint: Taint) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")
