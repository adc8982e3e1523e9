"""Disruption of pods: sets the condition DisruptionTarget, then deletes the pod.

Shared by all controllers that evict pods. Writes have the pod's uid as a precondition, so that a successor of the same
name is never disrupted.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.api.core import Pod
from allot.api.identities import ObjectKey
from allot.api.times import written_time
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.options import DeleteOptions, PatchType
from allot.client.resources import PODS

DISRUPTION_TARGET: Final = "DisruptionTarget"
FAILED: Final = "Failed"


class PodRef(NamedTuple):
    """A pod by name and uid."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


def pod_ref(pod: Pod) -> PodRef:
    namespace, name = pod.key
    return PodRef(namespace, name, PODS.codec.uid(pod))


def is_deleting(pod: Pod) -> bool:
    return pod.data["metadata"].get("deletionTimestamp") is not None


class Disruption(NamedTuple):
    """Reason and message of the condition DisruptionTarget."""

    reason: str
    message: str


def disruption_patch(
    pod: Pod, why: Disruption | None, today: datetime, *, fail: bool = False
) -> dict[str, Any] | None:
    """A strategic merge patch of the status; None if nothing changes.

    With `fail`, the phase of a pod that has not finished becomes Failed.
    """
    status: dict[str, Any] = {}
    if fail and not pod.is_finished:
        status["phase"] = FAILED
    # Kubernetes does not change finished pods.
    if why is not None and not (fail and pod.is_finished):
        condition = _condition(pod, why, today)
        if condition is not None:
            status["conditions"] = [condition]
    if not status:
        return None
    return {"metadata": {"uid": PODS.codec.uid(pod)}, "status": status}


def _condition(pod: Pod, why: Disruption, today: datetime) -> dict[str, Any] | None:
    condition = {"type": DISRUPTION_TARGET, "status": "True", **why._asdict()}
    conditions: list[dict[str, Any]] = pod.get("status", "conditions", default=[])
    known = next((found for found in conditions if found.get("type") == DISRUPTION_TARGET), {})
    if known.items() >= condition.items():
        return None
    since = known.get("lastTransitionTime") if known.get("status") == "True" else None
    return {**condition, "lastTransitionTime": since or written_time(today)}


async def disrupt(
    client: Client,
    pod: Pod,
    why: Disruption | None,
    *,
    fail: bool = False,
    grace_seconds: int | None = None,
) -> bool:
    """Set the condition and delete the pod. False if it was gone already."""
    ref = pod_ref(pod)
    patch = disruption_patch(pod, why, client.clock.today(), fail=fail)
    try:
        if patch is not None:
            await client.patch(PODS, ref.key, patch, PatchType.STRATEGIC, subresource="status")
        await client.delete(
            PODS, ref.key, DeleteOptions(ref.uid, grace_period_seconds=grace_seconds)
        )
    except ApiStatusError as error:
        if error.is_not_found:
            return False
        if error.is_conflict:
            found = await client.find_listed(PODS, ref.key)
            if found is None or PODS.codec.uid(found) != ref.uid:
                return False
        raise
    return True
