"""PreEnqueue and queueing hints for pods with claims."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

from allot.features import FeatureGates
from allot.rules import REPORT_MISSING_CLAIMS
from allot.scheduler.framework import events
from allot.scheduler.framework.events import Action, ClusterEvent, EventRegistration, Hint
from allot.scheduler.framework.plugins import PreEnqueuePlugin
from allot.scheduler.framework.status import SUCCESS, Status, unresolvable
from allot.scheduler.plugins.dynamic_resources.pod_claims import (
    Unusable,
    claim_hint,
    claim_keys,
    claims_of,
    helps_only_referencing_pods,
    pod_hint,
)
from allot.scheduler.plugins.dynamic_resources.pod_extension import extended_claim_pod
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.pods import PodInfo


class ClaimQueueing(PreEnqueuePlugin):
    """Keeps pods out of the queue until their claims exist; queueing hints for the others."""

    gates_on_referenced_objects: ClassVar[bool] = True
    _tracker: ClaimTracker
    _gates: FeatureGates

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.claims:
            return SUCCESS
        claims = claims_of(pod, self._tracker.get)
        if not isinstance(claims, Unusable):
            return SUCCESS
        self._on_unusable_claims(pod)
        is_reported = claims.needs_user and REPORT_MISSING_CLAIMS in self._gates
        return unresolvable(claims.reason, is_reported=is_reported)

    def _on_unusable_claims(self, pod: PodInfo) -> None:
        """The pod is gated, because it cannot have its claims yet."""

    def referenced_objects(self, pod: PodInfo) -> Iterable[Hashable]:
        return claim_keys(pod) if pod.claims else ()

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        node = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        changes = Action.ADD | Action.UPDATE
        return (
            EventRegistration(ClusterEvent(events.NODE, node)),
            EventRegistration(
                ClusterEvent(events.RESOURCE_CLAIM, changes | Action.DELETE),
                self._claim_hint,
                helps_only_referencing_pods,
            ),
            EventRegistration(
                ClusterEvent(events.WAITING_POD, Action.UPDATE_POD_CLAIM_STATUSES), self._pod_hint
            ),
            EventRegistration(ClusterEvent(events.DEVICE_CLASS, changes)),
            EventRegistration(ClusterEvent(events.RESOURCE_SLICE, changes)),
        )

    def _claim_hint(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        if new is None and old is not None and extended_claim_pod(old) == pod.uid:
            return Hint.QUEUE  # the claim of an earlier attempt is gone
        return claim_hint(pod, old, new, self._tracker.get)

    def _pod_hint(self, pod: PodInfo, _old: Any, _new: Any) -> Hint:
        return pod_hint(pod, self._tracker.get)
