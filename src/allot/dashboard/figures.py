"""Figures of a cluster over time: devices, utilisation, fragmentation, pending pods by cause, and how long pods waited."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Any, Final

import msgspec

from allot.allocation.pools import PoolId
from allot.api.claims import AllocationResult
from allot.api.core import Pod
from allot.api.slices import ResourceSlice
from allot.client import resources
from allot.client.resources import Resource
from allot.questions.device_usage import DeviceUsage
from allot.questions.what_if import short_message

WAIT_WINDOW_SECONDS: Final = 60.0
"""Waits of pods that were scheduled within this time count."""
MAX_WAITS: Final = 10_000
MAX_CAUSES: Final = 8
NOT_TRIED: Final = "not tried yet"


class Figures(msgspec.Struct, frozen=True):
    """The cluster at one moment."""

    at: float
    devices: int
    held: int
    utilisation: float
    fragmentation: float
    nodes: int
    pods: int
    """Pods that are not finished."""
    pending: dict[str, int]
    """Pods without a node by the scheduler's last message, that of most pods first."""
    median_wait: float | None
    """Seconds from creation to node, of pods that got their node lately; None without any."""
    longest_wait: float | None


class FigureCounter:
    """Counts with each change of an object. Slices come pool by pool, as the floor plan takes them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._usage = DeviceUsage()
        self._causes: dict[str, int] = {}
        self._nodes = 0
        self._pods = 0
        self._waits: deque[tuple[float, float]] = deque(maxlen=MAX_WAITS)

    def changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        """An object has changed."""
        if resource is resources.PODS:
            self._pod_changed(old, new)
        elif resource is resources.NODES:
            self._nodes += (new is not None) - (old is not None)
        elif resource is resources.RESOURCE_CLAIMS:
            before, after = _allocation(old), _allocation(new)
            if before != after:
                if before is not None:
                    self._usage.release(before)
                if after is not None:
                    self._usage.take(after)

    def publish(self, pool: PoolId, slices: tuple[ResourceSlice, ...]) -> None:
        """The newest slices of a pool are these from now on."""
        self._usage.publish(pool, slices)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for pod, step in ((old, -1), (new, 1)):
            if pod is None or pod.is_finished:
                continue
            self._pods += step
            if not pod.node_name:
                cause = cause_of(pod)
                self._causes[cause] = self._causes.get(cause, 0) + step
                if not self._causes[cause]:
                    del self._causes[cause]
        if old is not None and new is not None and new.node_name and not old.node_name:
            created = new.metadata.creation_timestamp
            if created is not None:
                now = self._clock()
                at = new.true_since("PodScheduled")
                until = at.timestamp() if at is not None else now
                self._waits.append((now, max(0.0, until - created.timestamp())))

    def now(self) -> Figures:
        usage, now = self._usage.figures(), self._clock()
        while self._waits and self._waits[0][0] < now - WAIT_WINDOW_SECONDS:
            self._waits.popleft()
        waits = [wait for _, wait in self._waits]
        return Figures(
            at=now,
            devices=usage.devices,
            held=usage.held,
            utilisation=usage.utilisation,
            fragmentation=usage.fragmentation,
            nodes=self._nodes,
            pods=self._pods,
            pending=self._pending(),
            median_wait=median(waits) if waits else None,
            longest_wait=max(waits) if waits else None,
        )

    def _pending(self) -> dict[str, int]:
        ordered = sorted(self._causes.items(), key=lambda each: (-each[1], each[0]))
        shown = dict(ordered[:MAX_CAUSES])
        rest = sum(number for _, number in ordered[MAX_CAUSES:])
        return shown | ({"other causes": rest} if rest else {})


def cause_of(pod: Pod) -> str:
    """Why a pod has no node, as its scheduler said last."""
    for condition in pod.get("status", "conditions", default=None) or ():
        if condition.get("type") == "PodScheduled" and condition.get("message"):
            return short_message(str(condition["message"]))
    return NOT_TRIED


def _allocation(claim: Any) -> AllocationResult | None:
    found: AllocationResult | None = None if claim is None else claim.status.allocation
    return found
