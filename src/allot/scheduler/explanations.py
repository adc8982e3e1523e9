"""Explanations as values: what is said about pods, nodes, requests and claims, and which nodes look alike.

They are made in `explaining` and `situations`, and are written as JSON as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import Enum
from typing import Final, NamedTuple

from allot.allocation import Explanation
from allot.allocation.reasons import IS_FALSE
from allot.api.base import ApiObject, always
from allot.scheduler.plugins.dynamic_resources.judging import NAME

HELD: Final = re.compile(r"held by claim (.+)")
OF_ANOTHER_CLASS: Final = "class "
"""How the reasons begin of devices that the selectors of a class do not let through."""
NODE: Final = "<node>"
"""Stands for the name of a node where several are spoken of."""


def nothing() -> tuple[()]:
    """An empty list that is written all the same, so that documents have one shape."""
    return ()


class PodState(Enum):
    """What a pod is doing."""

    SCHEDULED = "Scheduled"
    FINISHED = "Finished"
    TERMINATING = "Terminating"
    """It goes away without ever having had a node."""
    GATED = "Gated"
    """Nobody tries to place it: something it needs is missing."""
    WAITING_FOR_DEVICES = "WaitingForDevices"
    """It has a node, and devices that must be made ready first (KEP-5007)."""
    FITS = "Fits"
    DOES_NOT_FIT = "DoesNotFit"
    FAILED = "Failed"
    """Whether it fits could not be found out."""


class ClaimState(Enum):
    """What has become of a claim."""

    ALLOCATED = "Allocated"
    PENDING = "Pending"
    UNUSED = "Unused"
    """No pod asks for it, so nobody allocates it."""
    TERMINATING = "Terminating"
    MISSING = "Missing"


# --- why nodes do not take a pod ---


class RefusedDevices(ApiObject, frozen=True):
    """One reason, and the devices refused for it."""

    reason: str = always(str)
    devices: tuple[str, ...] = always(nothing)
    """As `driver/pool/device`."""


class RequestExplanation(ApiObject, frozen=True):
    """How far one request, or one alternative of it, came."""

    claim: str = always(str)
    request: str = always(str)
    wanted: int = always(int)
    found: int = always(int)
    was_tried: bool = always(bool)
    """Whether all requests before it could be satisfied at least once."""
    refusals: tuple[RefusedDevices, ...] = always(nothing)

    @property
    def name(self) -> str:
        """The request without the alternative."""
        return self.request.partition("/")[0]


class NodeExplanation(ApiObject, frozen=True):
    """Why a node does not take the pod."""

    node: str = always(str)
    plugin: str = always(str)
    reasons: tuple[str, ...] = always(nothing)
    """In Kubernetes' words."""
    details: tuple[str, ...] = always(nothing)
    """The values behind the reasons."""
    requests: tuple[RequestExplanation, ...] = always(nothing)
    besides: tuple[str, ...] = always(nothing)
    """Why it would not take the pod even with the devices."""

    @property
    def progress(self) -> float:
        """How much of what the claims ask for was found, from 0 to 1."""
        wanted = sum(request.wanted for request in self.requests)
        return sum(request.found for request in self.requests) / wanted if wanted else 0.0

    @property
    def suitable(self) -> tuple[int, int]:
        """How many devices are wanted but cannot be had, and how many are at least of the right class."""
        reasons = [
            (refusal.reason, len(refusal.devices))
            for request in self.requests
            for refusal in request.refusals
        ]
        wanted = sum(number for reason, number in reasons if IS_FALSE not in reason)
        of_class = sum(
            number for reason, number in reasons if not reason.startswith(OF_ANOTHER_CLASS)
        )
        return wanted, of_class


class Proposed(ApiObject, frozen=True):
    """A change after which the pod's claims fit on a node. It has been tried."""

    node: str = always(str)
    change: str = always(str)


# --- claims and their devices ---


class AllocatedDevice(ApiObject, frozen=True):
    """A device, or a share of one, that a claim has."""

    request: str = always(str)
    device: str = always(str)
    """As `driver/pool/device`."""
    share_id: str = ""
    consumed_capacity: dict[str, str] = always(dict)
    admin_access: bool = False
    missing_conditions: tuple[str, ...] = ()
    failure: str = ""
    """Why it cannot be made ready."""


class ClaimSummary(ApiObject, frozen=True):
    """A claim of a pod, as it is."""

    claim: str = always(str)
    state: ClaimState = always(lambda: ClaimState.MISSING)
    name: str = ""
    """The entry in the pod's spec."""
    allocated_at: datetime | None = None
    node_selection: str = ""
    """On which nodes the allocated devices can be used."""
    devices: tuple[AllocatedDevice, ...] = always(nothing)
    reserved_for: tuple[str, ...] = always(nothing)


# --- the answers ---


class PodExplanation(ApiObject, frozen=True):
    """What a pod is doing and why."""

    pod: str = always(str)
    state: PodState = always(lambda: PodState.FAILED)
    verdict: str = always(str)
    """One sentence."""
    reason: str = ""
    """The part of it that says why the pod has no node."""
    node: str = ""
    """Where it is, will be, or would be."""
    since: datetime | None = None
    deadline: datetime | None = None
    scheduler_name: str = ""
    claims: tuple[ClaimSummary, ...] = always(nothing)
    nodes: tuple[NodeExplanation, ...] = always(nothing)
    proposals: tuple[Proposed, ...] = always(nothing)
    notes: tuple[str, ...] = always(nothing)
    """What else should be known, such as what was not looked at."""
    rules: str = ""
    """Whose answers these are: `seeds`, or those of Kubernetes `v1.38`."""


class ClaimExplanation(ApiObject, frozen=True):
    """What has become of a claim and why."""

    claim: str = always(str)
    state: ClaimState = always(lambda: ClaimState.MISSING)
    verdict: str = always(str)
    summary: ClaimSummary | None = None
    pods: tuple[PodExplanation, ...] = always(nothing)
    """Those that use it or wait for it."""
    nodes: tuple[NodeExplanation, ...] = always(nothing)
    proposals: tuple[Proposed, ...] = always(nothing)
    notes: tuple[str, ...] = always(nothing)
    rules: str = ""


def requests_in(explanation: Explanation) -> tuple[RequestExplanation, ...]:
    """What allocation found out about each request."""
    return tuple(
        RequestExplanation(
            claim=report.claim,
            request=report.request,
            wanted=report.wanted,
            found=report.found,
            was_tried=report.was_tried,
            refusals=tuple(
                RefusedDevices(refusal.reason, tuple(map(str, refusal.devices)))
                for refusal in report.refusals
            ),
        )
        for report in explanation.requests
    )


# --- nodes that look alike ---


class NodeGroup(NamedTuple):
    """Nodes about which the same can be said, in order."""

    nodes: tuple[NodeExplanation, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(node.node for node in self.nodes)


def alike(nodes: Iterable[NodeExplanation]) -> list[NodeGroup]:
    """Groups of nodes that differ only in names and numbers of devices; those first that come nearest."""
    groups: dict[object, list[NodeExplanation]] = {}
    for node in nodes:
        groups.setdefault(_looks(node), []).append(node)
    ordered = sorted(groups.values(), key=_distance)
    return [NodeGroup(tuple(members)) for members in ordered]


def _distance(members: Sequence[NodeExplanation]) -> tuple[object, ...]:
    """How far nodes are from taking the pod: what else stands against them, then what they have of what is wanted."""
    node = members[0]
    wanted, of_class = node.suitable
    return (
        bool(node.besides),
        -node.progress,
        -wanted,
        -of_class,
        node.plugin != NAME,
        -len(members),
    )


def _looks(node: NodeExplanation) -> object:
    requests = tuple(
        (
            request.claim,
            request.request,
            request.wanted,
            request.found,
            request.was_tried,
            tuple(sorted({in_general(refusal.reason, node.node) for refusal in request.refusals})),
        )
        for request in node.requests
    )
    texts = tuple(
        tuple(in_general(text, node.node) for text in part)
        for part in (node.reasons, node.details, node.besides)
    )
    return node.plugin, texts, requests


def in_general(text: str, node: str) -> str:
    """A text without what is different on every node: its name, and who holds its devices."""
    if HELD.fullmatch(text):
        return "held by claim"
    if node not in text:
        return text
    return re.sub(rf"(?<![\w.-]){re.escape(node)}(?![\w-]|\.\w)", NODE, text)


def refusals_in(group: NodeGroup, request: int) -> list[tuple[str, list[tuple[str, ...]]]]:
    """For each reason in the group's `request`th request, the devices of each node that were refused for it.

    Devices that others hold are one reason, whoever holds them, if there is more than one node.
    """
    found: dict[str, dict[str, list[str]]] = {}
    holders: dict[str, None] = {}
    several = len(group.nodes) > 1
    for node in group.nodes:
        for refusal in node.requests[request].refusals:
            reason = refusal.reason
            if several:
                if held := HELD.fullmatch(reason):
                    holders.update(dict.fromkeys(held[1].split(", ")))
                reason = in_general(reason, node.node)
            devices = found.setdefault(reason, {}).setdefault(node.node, [])
            devices += refusal.devices
    return [
        (_held_by(reason, tuple(holders)), [tuple(devices) for devices in by_node.values()])
        for reason, by_node in found.items()
    ]


MAX_HOLDERS: Final = 3


def _held_by(reason: str, holders: Sequence[str]) -> str:
    if reason != "held by claim" or not holders:
        return reason
    shown = ", ".join(holders[:MAX_HOLDERS])
    more = len(holders) - MAX_HOLDERS
    return (
        f"held by claim{'s' * (len(holders) > 1)} {shown}{f' and {more} more' if more > 0 else ''}"
    )
