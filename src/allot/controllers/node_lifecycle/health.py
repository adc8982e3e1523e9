"""Signs of life: when a node was heard of last, and what is said of one that was not heard of for too long.

Nodes have clocks of their own. So the times they send are only compared, and what counts is when we saw them
change.
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
"""What nobody knows when the kubelet is silent. The network's condition is set by others."""


class Heartbeats(NamedTuple):
    """What a node has sent: the time in its condition Ready, and that in its lease; None if there is none."""

    heartbeat: str | None = None
    renewal: str | None = None


class NodeHealth(NamedTuple):
    """The last signs, and when they were new to us."""

    signs: Heartbeats
    at: float


def conditions_of(node: Node) -> list[dict[str, Any]]:
    conditions: list[dict[str, Any]] = node.get("status", "conditions", default=[])
    return conditions


def ready_status(node: Node) -> str | None:
    """True, False or Unknown; None if nobody ever said anything."""
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
    known: NodeHealth | None, node: Node, signs: Heartbeats, now: float, today: datetime
) -> NodeHealth:
    """What is known of a node after looking at it.

    One that we observe for the first time has all the time it needs, unless it never said anything: then its
    time began when it was created.
    """
    if known is not None:
        if signs.renewal is None:  # losing its lease is no sign of life
            signs = signs._replace(renewal=known.signs.renewal)
        return known if signs == known.signs else NodeHealth(signs, now)
    if signs == Heartbeats():
        created = read_time(node.get("metadata", "creationTimestamp"))
        age = (today - created).total_seconds() if created is not None else 0.0
        return NodeHealth(signs, now - max(age, 0.0))
    return NodeHealth(signs, now)


def with_unknown_conditions(node: Node, today: datetime) -> Node:
    """The node as it is seen when it is no longer heard of; the node itself if that is said already."""
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
