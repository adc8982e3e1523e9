"""Explanations as values: what is said about pods, nodes, requests and claims.

They are made in `explainer` and `object_explainer`, and are written as JSON as they are.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from allot.allocation.explain import AnyChange, Conflict, Explanation, Wording
from allot.allocation.explain.reasons import AnyReason, NotDecidable, nothing
from allot.api.base import ApiObject, always
from allot.scheduler.explain.claim_obstacles import AnyObstacle
from allot.scheduler.explain.pod_changes import AnyPodChange, WithoutNodeAffinity


class PodState(Enum):
    """What a pod is doing."""

    SCHEDULED = "Scheduled"
    FINISHED = "Finished"
    TERMINATING = "Terminating"
    """It goes away without ever having had a node."""
    GATED = "Gated"
    """It is not tried: something it needs is missing."""
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
    """No pod asks for it, so it is not allocated."""
    TERMINATING = "Terminating"
    MISSING = "Missing"


# --- why nodes do not take a pod ---


class RefusedDevices(ApiObject, frozen=True):
    """One reason, and the devices refused for it."""

    reason: str = always(str)
    """As text."""
    devices: tuple[str, ...] = always(nothing)
    """As `driver/pool/device`."""
    because: AnyReason = always(NotDecidable)
    """The reason as a value."""


class RequestExplanation(ApiObject, frozen=True):
    """How far one request, or one alternative of it, came: with the others of the conflict, or else alone."""

    claim: str = always(str)
    request: str = always(str)
    wanted: int = always(int)
    found: int = always(int)
    in_conflict: bool = always(bool)
    """Whether it is part of what cannot be satisfied together."""
    refusals: tuple[RefusedDevices, ...] = always(nothing)
    problem: str = ""
    """What is wrong with the request itself."""

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
    conflict: Conflict | None = None
    """The requests and constraints that cannot be satisfied together."""
    summary: str = ""
    """The conflict as text."""
    requests: tuple[RequestExplanation, ...] = always(nothing)
    besides: tuple[str, ...] = always(nothing)
    """Why it would not take the pod even with the devices."""


class Proposed(ApiObject, frozen=True):
    """A change after which the pod fits on a node. It has been tried."""

    node: str = always(str)
    change: str = always(str)
    """As text."""
    action: AnyChange | AnyPodChange = always(WithoutNodeAffinity)
    """As a value."""


# --- claims and their devices ---


class LackingCondition(ApiObject, frozen=True):
    """A binding condition that is not True (KEP-5007)."""

    type: str = always(str)
    status: str = ""
    """As it was reported; empty if it never was."""
    reason: str = ""
    message: str = ""
    since: datetime | None = None


class AllocatedDevice(ApiObject, frozen=True):
    """A device, or a share of one, that a claim has."""

    request: str = always(str)
    device: str = always(str)
    """As `driver/pool/device`."""
    share_id: str = ""
    consumed_capacity: dict[str, str] = always(dict)
    admin_access: bool = False
    missing_conditions: tuple[str, ...] = ()
    conditions: tuple[LackingCondition, ...] = ()
    """The missing conditions, as they were reported."""
    failure: str = ""
    """Why it cannot be made ready."""


class PreferredAlternative(ApiObject, frozen=True):
    """An alternative that comes before the one that a claim has, and what is against it now."""

    request: str = always(str)
    """With the alternative's name."""
    node: str = always(str)
    reason: str = always(str)
    """Empty if it could be had now."""
    conflict: Conflict | None = None


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
    preferred: tuple[PreferredAlternative, ...] = ()
    """Better alternatives than those that it has."""


# --- the answers ---


class EarlierFailure(ApiObject, frozen=True):
    """An attempt that ended because devices could not be made ready (KEP-5007)."""

    message: str = always(str)
    last_at: datetime | None = None
    count: int = 1


class PodExplanation(ApiObject, frozen=True):
    """What a pod is doing and why."""

    pod: str = always(str)
    state: PodState = always(lambda: PodState.FAILED)
    verdict: str = always(str)
    """One or two sentences."""
    reason: str = ""
    """The part of it that says why the pod has no node."""
    node: str = ""
    """Where it is, will be, or would be."""
    since: datetime | None = None
    deadline: datetime | None = None
    """Until when it may wait for its devices."""
    assumed_timeout_seconds: float | None = None
    """What the deadline is counted with if the scheduler's own setting is not known."""
    obstacles: tuple[AnyObstacle, ...] = ()
    """What is wrong with the claims that it names."""
    earlier_failures: tuple[EarlierFailure, ...] = ()
    scheduler_name: str = ""
    claims: tuple[ClaimSummary, ...] = always(nothing)
    nodes: tuple[NodeExplanation, ...] = always(nothing)
    proposals: tuple[Proposed, ...] = always(nothing)
    notes: tuple[str, ...] = always(nothing)
    """What else should be known, such as what was not looked at."""
    rules: str = ""
    """Whose answers these are: `seeds`, or those of Kubernetes `v1.38`."""
    feature_gates_of: str = ""
    """Whose feature gates count: those of the cluster's `scheduler` or `API server`, or `defaults`."""


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
    feature_gates_of: str = ""


def requests_in(explanation: Explanation, wording: Wording) -> tuple[RequestExplanation, ...]:
    """What allocation found out about each request."""
    return tuple(
        RequestExplanation(
            claim=report.claim,
            request=report.request,
            wanted=report.wanted,
            found=report.found,
            in_conflict=report.in_conflict,
            refusals=tuple(
                RefusedDevices(
                    wording.reason(refusal.reason),
                    tuple(map(str, refusal.devices)),
                    refusal.reason,
                )
                for refusal in report.refusals
            ),
            problem=report.problem,
        )
        for report in explanation.requests
    )
