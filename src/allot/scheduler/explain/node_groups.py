"""Groups of nodes with equal explanations, and which of them are nearest to fitting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from allot.allocation.explain import Conflict, Proof, Wording
from allot.allocation.explain.reasons import Held
from allot.scheduler.explain.explanations import (
    NodeExplanation,
    RefusedDevices,
    RequestExplanation,
)
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME


class NodeGroup(NamedTuple):
    """Nodes with equal explanations, in order."""

    nodes: tuple[NodeExplanation, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(node.node for node in self.nodes)


def alike(nodes: Iterable[NodeExplanation]) -> list[NodeGroup]:
    """Groups of nodes that differ only in names and numbers of devices; the nearest first."""
    groups: dict[object, list[NodeExplanation]] = {}
    for node in nodes:
        groups.setdefault(_looks(node), []).append(node)
    ordered = sorted(groups.values(), key=lambda members: distance(members[0]))
    return [NodeGroup(tuple(members)) for members in ordered]


def distance(node: NodeExplanation) -> tuple[object, ...]:
    """How far a node is from fitting: the fewest requests in conflict, then the fewest missing devices.

    Before that, nodes that have no device of the class that a request asks for are further away than those that do.
    Of nodes that are equally short, those come first that have devices of the right kind.
    """
    rank = 0 if node.conflict is not None else 1 if node.plugin == NAME else 2
    conflict = node.conflict or Conflict()
    by_request: dict[tuple[str, str], list[RequestExplanation]] = {}
    for request in node.requests:
        by_request.setdefault((request.claim, request.name), []).append(request)
    requests = by_request.values()
    short = sum(min(max(each.wanted - each.found, 0) for each in tried) for tried in requests)
    suitable = any(
        not refusal.because.is_unsuitable
        for request in node.requests
        for refusal in request.refusals
    )
    return (
        bool(node.besides),
        rank,
        conflict.proof is Proof.UNPROVEN,
        sum(not any(map(_has_class, tried)) for tried in requests),
        len(conflict.requests),
        short,
        not suitable,
        node.node,
    )


def _has_class(request: RequestExplanation) -> bool:
    """Whether the node has devices of the class that is asked for, whichever claim has them."""
    return request.found > 0 or any(
        not refusal.because.is_wrong_class for refusal in request.refusals
    )


def _looks(node: NodeExplanation) -> object:
    """Equal for nodes whose explanations differ only in names of nodes and of the holders of devices."""
    name = node.node
    conflict = node.conflict
    return (
        node.plugin,
        tuple(
            tuple(_without(text, name) for text in part)
            for part in (node.reasons, node.details, node.besides)
        ),
        conflict
        and (
            conflict.proof,
            conflict.requests,
            tuple((each.claim, each.constraint) for each in conflict.constraints),
            conflict.devices_short,
        ),
        tuple(
            (
                request.claim,
                request.request,
                request.wanted,
                request.found,
                request.problem,
                tuple(sorted({_key(refusal, name) for refusal in request.refusals})),
            )
            for request in node.requests
        ),
    )


def _key(refusal: RefusedDevices, node: str) -> str:
    return "" if isinstance(refusal.because, Held) else _without(refusal.reason, node)


def _without(text: str, node: str) -> str:
    """The text without the node's name, so that it can be compared with that of another node."""
    return _whole_name(node).sub("", text) if node in text else text


def shared_text(text: str, node: str) -> str:
    """The explanation of a group: that of its first node."""
    return f"{text} (on {node})" if _without(text, node) != text else text


def _whole_name(node: str) -> re.Pattern[str]:
    """The name, but not as a part of a longer one."""
    return re.compile(rf"(?<![\w.-]){re.escape(node)}(?![\w-]|\.\w)")


def refusals_in(group: NodeGroup, request: int) -> list[tuple[str, list[tuple[str, ...]]]]:
    """For each reason in the group's `request`th request, the devices of each node that were refused for it.

    Devices that other claims hold are one reason, whichever claims these are, if there is more than one node.
    """
    if len(group.nodes) == 1:
        refusals = group.nodes[0].requests[request].refusals
        return [(refusal.reason, [refusal.devices]) for refusal in refusals]
    texts: dict[str, str] = {}
    found: dict[str, dict[str, list[str]]] = {}
    holders: dict[str, None] = {}
    for node in group.nodes:
        for refusal in node.requests[request].refusals:
            key = _key(refusal, node.node)
            if isinstance(refusal.because, Held):
                holders.update(dict.fromkeys(refusal.because.claims))
            texts.setdefault(key, shared_text(refusal.reason, node.node))
            devices = found.setdefault(key, {}).setdefault(node.node, [])
            devices += refusal.devices
    if holders:
        texts[""] = Wording().held_by(tuple(holders))
    return [
        (texts[key], [tuple(devices) for devices in by_node.values()])
        for key, by_node in found.items()
    ]


def nearest(nodes: Sequence[NodeExplanation]) -> NodeExplanation | None:
    """The node that is nearest to fitting."""
    return min(nodes, key=distance, default=None)
