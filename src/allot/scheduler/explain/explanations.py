"""Explanations as values, of pods, nodes, requests and claims.

They are created in `explainer` and `object_explainer`, and are also the JSON output.
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
    """The state of a pod."""

    SCHEDULED = "Scheduled"
    FINISHED = "Finished"
    TERMINATING = "Terminating"
    """It is deleted and was never bound."""
    GATED = "Gated"
    """It is gated: something that it needs is missing."""
    WAITING_FOR_DEVICES = "WaitingForDevices"
    """It has a node, and waits for binding conditions of its devices (KEP-5007)."""
    FITS = "Fits"
    DOES_NOT_FIT = "DoesNotFit"
    FAILED = "Failed"
    """A plugin failed, so that it is unknown whether it fits."""


class ClaimState(Enum):
    """The state of a claim."""

    ALLOCATED = "Allocated"
    PENDING = "Pending"
    UNUSED = "Unused"
    """No pod references it, so it is not allocated."""
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
    """How many devices a request, or one alternative of it, gets: with the others of the conflict, or alone."""

    claim: str = always(str)
    request: str = always(str)
    wanted: int = always(int)
    found: int = always(int)
    in_conflict: bool = always(bool)
    """Whether it is part of the conflict."""
    refusals: tuple[RefusedDevices, ...] = always(nothing)
    problem: str = ""
    """What is wrong with the request itself."""

    @property
    def name(self) -> str:
        """The request without the alternative."""
        return self.request.partition("/")[0]


class NodeExplanation(ApiObject, frozen=True):
    """Why a node does not fit."""

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
    """Why it would not fit even with the devices."""


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
    """The reported status; empty if it was never reported."""
    reason: str = ""
    message: str = ""
    since: datetime | None = None


class DeviceSummary(ApiObject, frozen=True):
    """A device, or a share of one, that is allocated to a claim."""

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
    """An alternative before the one that a claim has, and why it is not available now."""

    request: str = always(str)
    """With the alternative's name."""
    node: str = always(str)
    reason: str = always(str)
    """Empty if it is available now."""
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
    devices: tuple[DeviceSummary, ...] = always(nothing)
    reserved_for: tuple[str, ...] = always(nothing)
    preferred: tuple[PreferredAlternative, ...] = ()
    """Alternatives before those that it has."""


# --- the answers ---


class EarlierFailure(ApiObject, frozen=True):
    """An attempt that failed because devices did not become ready (KEP-5007)."""

    message: str = always(str)
    last_at: datetime | None = None
    count: int = 1


class PodExplanation(ApiObject, frozen=True):
    """The state of a pod and its reasons."""

    pod: str = always(str)
    state: PodState = always(lambda: PodState.FAILED)
    verdict: str = always(str)
    """One or two sentences."""
    reason: str = ""
    """The part of the verdict that says why the pod has no node."""
    node: str = ""
    """Where it is, will be, or would be."""
    since: datetime | None = None
    deadline: datetime | None = None
    """The deadline of the wait for binding conditions."""
    assumed_timeout_seconds: float | None = None
    """The timeout that is assumed because the scheduler's own is unknown."""
    obstacles: tuple[AnyObstacle, ...] = ()
    """Why its claims cannot be used."""
    earlier_failures: tuple[EarlierFailure, ...] = ()
    scheduler_name: str = ""
    claims: tuple[ClaimSummary, ...] = always(nothing)
    nodes: tuple[NodeExplanation, ...] = always(nothing)
    proposals: tuple[Proposed, ...] = always(nothing)
    notes: tuple[str, ...] = always(nothing)
    """Further notes, such as what was not examined."""
    rules: str = ""
    """Whose answers these are: `seeds`, or those of Kubernetes `v1.38`."""
    feature_gates_of: str = ""
    """Whose feature gates count: those of the cluster's `scheduler` or `API server`, or `defaults`."""


class ClaimExplanation(ApiObject, frozen=True):
    """The state of a claim and its reasons."""

    claim: str = always(str)
    state: ClaimState = always(lambda: ClaimState.MISSING)
    verdict: str = always(str)
    summary: ClaimSummary | None = None
    pods: tuple[PodExplanation, ...] = always(nothing)
    """The pods that use it or wait for it."""
    nodes: tuple[NodeExplanation, ...] = always(nothing)
    proposals: tuple[Proposed, ...] = always(nothing)
    notes: tuple[str, ...] = always(nothing)
    rules: str = ""
    feature_gates_of: str = ""


def requests_in(explanation: Explanation, wording: Wording) -> tuple[RequestExplanation, ...]:
    """The allocator's explanation of each request."""
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
