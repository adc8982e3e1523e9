"""Verdicts on pods and claims whose state alone explains them: finished, scheduled, gated, allocated, being deleted."""

from __future__ import annotations

from typing import Any

from allot.api.base import replace
from allot.api.identities import ObjectKey
from allot.api.times import read_time
from allot.scheduler.core.pod_status import POD_SCHEDULED
from allot.scheduler.explain.explanations import ClaimSummary, PodExplanation, PodState
from allot.scheduler.state.pods import PodInfo


def outlook(found: PodExplanation) -> str:
    """What a scheduler would do, as the end of a sentence."""
    if found.state is PodState.FITS:
        return f"would fit on node {found.node}"
    return f"would be pending: {found.reason}"


def gated(known: PodExplanation, reason: str, advice: str = "") -> PodExplanation:
    verdict = f"Pod {known.pod} is not being scheduled: {reason}.{advice}"
    return replace(known, state=PodState.GATED, verdict=verdict, reason=reason)


def finished(known: PodExplanation, pod: PodInfo) -> PodExplanation:
    where = f" on node {pod.node_name}" if pod.node_name else ""
    phase = pod.pod.get("status", "phase", default="")
    verdict = f"Pod {pod.key} has ended{where}: {phase}."
    return replace(known, state=PodState.FINISHED, verdict=verdict)


def scheduled(known: PodExplanation, pod: PodInfo) -> PodExplanation:
    condition = scheduled_condition(pod)
    since = read_time(condition.get("lastTransitionTime")) or read_time(pod.start_time)
    phase = pod.pod.get("status", "phase", default="Pending")
    going = ", and is being deleted" if pod.is_terminating else ""
    verdict = f"Pod {pod.key} is on node {pod.node_name} ({phase}){going}."
    return replace(known, state=PodState.SCHEDULED, verdict=verdict, since=since)


def allocated(key: ObjectKey, summary: ClaimSummary) -> str:
    number = len(summary.devices)
    devices = f"{number} device{'s' * (number != 1)}"
    users = (
        ", ".join(summary.reserved_for) or "no pod yet, so that any pod that asks for it can use it"
    )
    return f"Claim {key} has {devices}, for {summary.node_selection}; reserved for {users}."


def being_deleted(key: ObjectKey, summary: ClaimSummary) -> str:
    users = ", ".join(summary.reserved_for)
    return f"Claim {key} is being deleted" + (
        f"; it is still reserved for {users}." if users else "."
    )


def scheduled_condition(pod: PodInfo) -> dict[str, Any]:
    """The condition PodScheduled; empty if the pod has none."""
    conditions = pod.pod.get("status", "conditions", default=[])
    found: dict[str, Any] = next(
        (each for each in conditions if each.get("type") == POD_SCHEDULED), {}
    )
    return found
