"""Eviction of preemption victims through the API, and the disruption budgets that limit it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from allot.api.times import written_time
from allot.client import resources
from allot.client.errors import ApiStatusError
from allot.client.options import PatchType
from allot.scheduler.framework.waiting_pods import WaitingPods
from allot.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from allot.client.client import Client


class Evictor:
    """Marks a pod as preempted, and deletes it."""

    def __init__(
        self, client: Client, utc_now: Callable[[], datetime], waiting_pods: WaitingPods
    ) -> None:
        self._client = client
        self._waiting_pods = waiting_pods
        self._utc_now = utc_now

    async def evict(self, victim: PodInfo, pod: PodInfo, node_name: str) -> None:
        """Evict a victim for `pod`. A victim that waits for a permit plugin is rejected instead of deleted."""
        if self._waiting_pods.reject(victim.uid, "preempted"):
            return
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{pod.scheduler_name}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": written_time(self._utc_now()),
        }
        patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        with contextlib.suppress(ApiStatusError):
            await self._client.patch(
                resources.PODS, victim.key, patch, PatchType.STRATEGIC, subresource="status"
            )
        try:
            await self._client.delete(resources.PODS, victim.key)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise
