"""The PodScheduled condition, nominated node and events of pods."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from allot.api.times import written_time
from allot.client.errors import ApiStatusError, ClientError
from allot.client.events import NORMAL, WARNING, ObjectReference
from allot.client.options import PatchType
from allot.client.resources import PODS
from allot.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from allot.client.client import Client
    from allot.client.event_recorder import EventRecorder

log = logging.getLogger(__name__)

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
POD_SCHEDULED: Final = "PodScheduled"
FAILED_SCHEDULING: Final = "FailedScheduling"
MAX_CONFLICTS: Final = 5
"""Pods change while a condition is written, but not often; the next attempt writes again."""


class PodStatusReporter:
    """Writes the result of an attempt. Failed writes are logged; the next attempt writes again."""

    def __init__(
        self, client: Client, recorder: EventRecorder, clock: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock

    def scheduled(self, pod: PodInfo, node_name: str) -> None:
        log.info("pod %s: bound to node %s", pod.key, node_name)
        note = f"Successfully assigned {pod.key} to {node_name}"
        self._recorder.event(_reference(pod), NORMAL, "Scheduled", "Binding", note, is_routine=True)

    def skipped(self, pod: PodInfo) -> None:
        """An event for a pod that is being deleted and therefore skipped."""
        note = f"skip schedule deleting pod: {pod.key}"
        self._recorder.event(_reference(pod), WARNING, FAILED_SCHEDULING, "Scheduling", note)

    def pending(
        self, pod: PodInfo, reason: str, note: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        """A Normal event about a pod that is not scheduled yet."""
        self._recorder.event(
            _reference(pod), NORMAL, reason, "Scheduling", note, annotations=annotations
        )

    def warn(self, pod: PodInfo, reason: str, note: str) -> None:
        """A Warning event about a pod."""
        self._recorder.event(_reference(pod), WARNING, reason, "Scheduling", note)

    async def nominate(self, pod: PodInfo, node_name: str) -> None:
        """Write `status.nominatedNodeName`, for other schedulers and for a restart."""
        if pod.nominated_node_name == node_name:
            return
        patch = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node_name}}
        try:
            await self._client.submit_patch(
                PODS, pod.key, patch, PatchType.STRATEGIC, subresource="status"
            )
        except ClientError as error:
            log.log(
                _log_level(error), "pod %s: cannot write the nominated node: %s", pod.key, error
            )

    async def failed(
        self,
        pod: PodInfo,
        reason: str,
        message: str,
        nominated_node: str | None = None,
        more: str | None = "",
    ) -> None:
        """Write the condition and an event; nominate a node, or with "" clear the nomination.

        `more` is appended to the message. None: not known yet, so a detail in the current condition stays.
        """
        message = with_detail(pod, message, more)
        log.info("pod %s: %s", pod.key, reason)
        log.debug("pod %s: %s", pod.key, message)
        self._recorder.event(_reference(pod), WARNING, FAILED_SCHEDULING, "Scheduling", message)
        status = status_change(pod, reason, message, nominated_node, self._clock())
        if status is None:
            return
        try:
            await self._patch_unbound(pod, status)
        except ClientError as error:
            log.log(
                _log_level(error),
                "pod %s: cannot write the PodScheduled condition: %s",
                pod.key,
                error,
            )

    async def _patch_unbound(self, pod: PodInfo, status: dict[str, Any]) -> None:
        """Patch the status unless the pod is bound by now.

        Answers get lost and patches are repeated: without the version as a precondition, one about an earlier
        attempt could arrive after the binding and overwrite the condition that this sets.
        """
        version = pod.pod.metadata.resource_version
        for _ in range(MAX_CONFLICTS):
            patch = {"metadata": {"uid": pod.uid, "resourceVersion": version}, "status": status}
            try:
                await self._client.submit_patch(
                    PODS, pod.key, patch, PatchType.STRATEGIC, subresource="status"
                )
            except ApiStatusError as error:
                if not error.is_conflict:
                    raise
            else:
                return
            found = await self._client.find(PODS, pod.key)
            if found is None or found.metadata.uid != pod.uid or found.node_name:
                return
            version = found.metadata.resource_version


def _log_level(error: ClientError) -> int:
    """Failed writes for deleted pods are only worth a debug line."""
    is_gone = isinstance(error, ApiStatusError) and error.is_not_found
    return logging.DEBUG if is_gone else logging.WARNING


def with_detail(pod: PodInfo, message: str, more: str | None) -> str:
    if more is None:
        written: str = _condition(pod).get("message") or ""
        return written if written.startswith(f"{message} ") else message
    return f"{message} {more}" if more else message


def _condition(pod: PodInfo) -> dict[str, Any]:
    conditions = pod.pod.get("status", "conditions", default=[])
    found: dict[str, Any] = next(
        (item for item in conditions if item.get("type") == POD_SCHEDULED), {}
    )
    return found


def status_change(
    pod: PodInfo, reason: str, message: str, nominated_node: str | None, now: datetime
) -> dict[str, Any] | None:
    """The part of a pod's status that must change; None if nothing must."""
    found = _condition(pod)
    wanted = {"type": POD_SCHEDULED, "status": "False", "reason": reason, "message": message}
    status: dict[str, Any] = {}
    if any(found.get(name) != value for name, value in wanted.items()):
        since = found.get("lastTransitionTime") if found.get("status") == "False" else None
        time = since or written_time(now)
        generation = pod.pod.metadata.generation
        observed = {"observedGeneration": generation} if generation else {}
        status["conditions"] = [
            {**wanted, **observed, "lastProbeTime": None, "lastTransitionTime": time}
        ]
    if nominated_node is not None and nominated_node != pod.nominated_node_name:
        status["nominatedNodeName"] = nominated_node or None
    return status or None


def _reference(pod: PodInfo) -> ObjectReference:
    (namespace, name), metadata = pod.key, pod.pod.data["metadata"]
    version = metadata.get("resourceVersion") or ""
    return ObjectReference("v1", "Pod", namespace, name, pod.uid, version)
