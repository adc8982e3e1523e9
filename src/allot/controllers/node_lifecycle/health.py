"""Heartbeats: when a node last sent one, and its conditions after the grace period.

Nodes have clocks of their own. Their timestamps are only compared with each other; the age of a heartbeat counts from
the time at which the controller observed it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.api.core import Node
from allot.api.raw import RawObject
from allot.api.times import read_time, written_time

READY: Final = "Ready"
TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"
REPORTED_BY_KUBELET: Final = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that become Unknown. NetworkUnavailable is set by other components."""


class Heartbeats(NamedTuple):
    """The heartbeat in the condition Ready and the renewal in the lease; None if missing."""

    heartbeat: str | None = None
    renewal: str | None = None


class NodeHealth(NamedTuple):
    """The last heartbeats, and when the controller first observed them."""

    heartbeats: Heartbeats
    at: float


def conditions_of(node: Node) -> list[dict[str, Any]]:
    conditions: list[dict[str, Any]] = node.get("status", "conditions", default=[])
    return conditions


def ready_status(node: Node) -> str | None:
    """True, False or Unknown; None if the node has no condition Ready."""
    for condition in conditions_of(node):
        if condition.get("type") == READY:
            return str(condition.get("status") or UNKNOWN)
    return None


def heartbeats_of(node: Node, lease: RawObject | None) -> Heartbeats:
    heartbeat = None
    for condition in conditions_of(node):
        if condition.get("type") == READY:
            heartbeat = str(condition.get("lastHeartbeatTime") or "")
    renewal = lease.get("spec", "renewTime", default="") if lease is not None else None
    return Heartbeats(heartbeat, renewal)


def observe(
    known: NodeHealth | None, node: Node, heartbeats: Heartbeats, now: float, today: datetime
) -> NodeHealth:
    """The health of a node after observing it.

    The grace period of a node that is observed for the first time begins now; without any heartbeat it began
    at the node's creation.
    """
    if known is not None:
        if heartbeats.renewal is None:  # the deletion of a lease is not a heartbeat
            heartbeats = heartbeats._replace(renewal=known.heartbeats.renewal)
        return known if heartbeats == known.heartbeats else NodeHealth(heartbeats, now)
    if heartbeats == Heartbeats():
        created = read_time(node.get("metadata", "creationTimestamp"))
        age = (today - created).total_seconds() if created is not None else 0.0
        return NodeHealth(heartbeats, now - max(age, 0.0))
    return NodeHealth(heartbeats, now)


def with_unknown_conditions(node: Node, today: datetime) -> Node:
    """The node with its conditions Unknown; the node itself if they are already."""
    moment = written_time(today)
    conditions = [
        {
            **condition,
            "status": UNKNOWN,
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": moment,
        }
        if condition.get("type") in REPORTED_BY_KUBELET and condition.get("status") != UNKNOWN
        else condition
        for condition in conditions_of(node)
    ]
    types = {condition.get("type") for condition in conditions}
    conditions += [
        {
            "type": type_,
            "status": UNKNOWN,
            "reason": "NodeStatusNeverUpdated",
            "message": "Kubelet never posted node status.",
            "lastHeartbeatTime": node.get("metadata", "creationTimestamp", default=moment),
            "lastTransitionTime": moment,
        }
        for type_ in REPORTED_BY_KUBELET
        if type_ not in types
    ]
    if conditions == conditions_of(node):
        return node
    return node.with_value(conditions, "status", "conditions")
