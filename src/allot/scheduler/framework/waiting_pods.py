"""Waiting pods: pods with a node that permit plugins hold back before they are bound.

    permit ─► WAIT ─► waiting ─► allowed by every such plugin ─► pre_bind, bind
                         └────► rejected by a plugin, or the timeout of one is over ─► unreserve, requeue

Allowing and rejecting go through `Handle.waiting_pods`, as in kube-scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from allot.scheduler.framework.status import SUCCESS, Status, unschedulable
from allot.scheduler.state.pods import PodInfo

MAX_PERMIT_SECONDS: Final = 15 * 60.0
"""Longer timeouts are cut to this."""


class WaitingPod:
    """A pod that waits for one or more permit plugins."""

    def __init__(self, pod: PodInfo, node_name: str, timeouts: Mapping[str, float]) -> None:
        """`timeouts` are the plugins that wait, each with its seconds."""
        self.pod = pod
        self.node_name = node_name
        self._timeouts = {
            plugin: min(seconds, MAX_PERMIT_SECONDS) for plugin, seconds in timeouts.items()
        }
        self._pending = set(timeouts)
        self._status: Status | None = None
        self._decided = asyncio.Event()

    @property
    def pending_plugins(self) -> frozenset[str]:
        """The plugins that have not allowed the pod yet."""
        return frozenset(self._pending)

    def allow(self, plugin: str) -> None:
        """The plugin lets the pod be bound. The last one to do so ends the wait."""
        self._pending.discard(plugin)
        if not self._pending:
            self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> None:
        """The pod is not bound; it is unschedulable because of the plugin."""
        self._decide(unschedulable(message).by(plugin))

    def _decide(self, status: Status) -> None:
        if self._status is None:
            self._status = status
            self._decided.set()

    async def wait(self) -> Status:
        """The decision: SUCCESS, or the rejection by a plugin or by the first timeout."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        while self._status is None:
            plugin = min(self._pending, key=lambda name: (self._timeouts[name], name))
            seconds = self._timeouts[plugin]
            try:
                async with asyncio.timeout(max(started + seconds - loop.time(), 0)):
                    await self._decided.wait()
            except TimeoutError:
                if plugin in self._pending:
                    self.reject(
                        plugin,
                        f"rejected due to timeout after waiting {seconds:g}s at plugin {plugin}",
                    )
        return self._status


class WaitingPods:
    """All waiting pods of one scheduler, by uid."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(tuple(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def add(self, waiting: WaitingPod) -> None:
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def reject(self, uid: str, message: str = "removed") -> bool:
        """Reject a pod whichever plugin it waits for; False if it does not wait."""
        waiting = self._pods.get(uid)
        if waiting is None:
            return False
        waiting.reject(min(waiting.pending_plugins, default=""), message)
        return True
