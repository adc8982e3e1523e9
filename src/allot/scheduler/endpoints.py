"""The scheduler's endpoints: health, metrics, and explanations of pending pods for holders of the debug token."""

from __future__ import annotations

import hmac
import time
from typing import Final

import msgspec

from allot.api.decoding import to_builtin
from allot.api.identities import ObjectKey
from allot.endpoints import JSON, NOT_FOUND, TEXT, ComponentEndpoints, EndpointResponse
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.explain.effort import Effort, within
from allot.scheduler.state.pods import PodInfo

EFFORT: Final = Effort(50, 1, within(0.05, time.monotonic), 0.05)
"""No pod is scheduled meanwhile."""


class SchedulerEndpoints(ComponentEndpoints):
    """Health, metrics and, for requests with the debug token, `/debug`."""

    def __init__(self, process: SchedulerProcess, token: str = "") -> None:
        super().__init__(lambda: not process.is_starting, lambda: process.metrics.registry)
        self._process = process
        self._token = token

    def more(self, path: list[str], authorization: str) -> EndpointResponse:
        match path:
            case ["debug", "explain", namespace, name]:
                if not self._may_debug(authorization):
                    return EndpointResponse(403, TEXT, b"this page needs the debug token\n")
                return self._explained(ObjectKey(namespace, name))
        return NOT_FOUND

    def _may_debug(self, authorization: str) -> bool:
        expected = f"Bearer {self._token}"
        return bool(self._token) and hmac.compare_digest(authorization.encode(), expected.encode())

    def _explained(self, key: ObjectKey) -> EndpointResponse:
        pod = self._find(key)
        if pod is None:
            text = f"pod {key} does not wait for this scheduler\n"
            return EndpointResponse(404, TEXT, text.encode())
        profile = self._process.profiles[pod.scheduler_name]
        explanation = self._process.explainer.explain(profile, pod, EFFORT)
        return EndpointResponse(200, JSON, msgspec.json.encode(explanation, enc_hook=to_builtin))

    def _find(self, key: ObjectKey) -> PodInfo | None:
        return next(
            (queued.pod for queued in self._process.queue.pods() if queued.pod.key == key), None
        )
