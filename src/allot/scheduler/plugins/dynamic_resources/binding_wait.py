"""Waits until devices are ready (KEP-5007). A change of a claim wakes the pods that wait for it; nothing polls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.scheduler.framework.concurrency_limit import released_slot
from allot.scheduler.plugins.dynamic_resources.binding_conditions import (
    BindingFailed,
    NotReady,
    Ready,
    readiness,
)
from allot.scheduler.plugins.dynamic_resources.claim_write_queue import ClaimChangedError
from allot.scheduler.plugins.dynamic_resources.claim_writes import check_still_ours
from allot.scheduler.plugins.dynamic_resources.pod_claims import is_reserved_for
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.pods import PodInfo


class NodeGoneError(ClaimChangedError):
    """The node was deleted while a pod waited to be bound to it."""

    def __init__(self, node_name: str) -> None:
        super().__init__(
            f"node {node_name} was deleted while the pod waited for its devices to become ready there"
        )


class _Waiter:
    """A pod that waits."""

    __slots__ = ("changed", "node_is_gone", "node_name")

    def __init__(self, node_name: str) -> None:
        self.node_name = node_name
        self.node_is_gone = False
        self.changed = asyncio.Event()


class BindingWait:
    """All pods of one scheduler that wait for devices."""

    def __init__(
        self,
        tracker: ClaimTracker,
        timeout: timedelta,
        today: Callable[[], datetime],
        has_node: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`has_node` says whether a node exists."""
        self._tracker = tracker
        self._has_node = has_node
        self.timeout = timeout
        self._today = today
        self._waiting: dict[ObjectKey, set[_Waiter]] = {}
        tracker.add_listener(self._on_claim_change)

    def __len__(self) -> int:
        """The number of claims that pods wait for."""
        return len(self._waiting)

    def outlook(
        self, claims: Sequence[ResourceClaim], since: datetime | None = None
    ) -> Ready | NotReady | BindingFailed:
        """The readiness of all claims of a pod: the first failure, or all missing conditions.

        `since` is when waiting began, if it has.
        """
        missing: list[str] = []
        deadlines: list[datetime] = []
        now = self._today()
        for claim in claims:
            match readiness(claim, self.timeout, now, since):
                case BindingFailed() as failed:
                    return failed
                case NotReady(lacking, deadline):
                    missing += lacking
                    if deadline is not None:
                        deadlines.append(deadline)
        return NotReady(tuple(missing), min(deadlines, default=None)) if missing else Ready()

    def why_unusable(self, claim: ResourceClaim) -> str:
        """Why an allocated claim will not become ready any more; empty if it may."""
        outlook = self.outlook([claim])
        return outlook.message if isinstance(outlook, BindingFailed) else ""

    async def until_ready(
        self, claims: Sequence[ResourceClaim], pod: PodInfo, node_name: str
    ) -> Ready | BindingFailed:
        """Returns when there is nothing to wait for any more.

        `ClaimChangedError` if a claim was taken away, or the node.
        """
        keys = [claim.key for claim in claims]
        waiter = _Waiter(node_name)
        since = self._today()
        for key in keys:
            self._waiting.setdefault(key, set()).add(waiter)
        try:
            while True:
                waiter.changed.clear()
                if waiter.node_is_gone or not self._has_node(node_name):
                    raise NodeGoneError(node_name)
                outlook = self.outlook([self._current(claim, pod) for claim in claims], since)
                if not isinstance(outlook, NotReady):
                    return outlook
                async with released_slot():
                    await self._sleep(waiter.changed, outlook.deadline)
        finally:
            for key in keys:
                self._waiting[key].discard(waiter)
                if not self._waiting[key]:
                    del self._waiting[key]

    async def _sleep(self, changed: asyncio.Event, deadline: datetime | None) -> None:
        if deadline is None:
            await changed.wait()
            return
        seconds = max((deadline - self._today()).total_seconds(), 0.05)
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            return

    def _current(self, claim: ResourceClaim, pod: PodInfo) -> ResourceClaim:
        """The claim as it is now, if it is still allocated and ours."""
        key = claim.key
        current = self._tracker.get(key)
        if current is None or current.metadata.uid != claim.metadata.uid:
            raise ClaimChangedError(f"claim {key} got deleted in the meantime")
        check_still_ours(current, claim, None)
        if not is_reserved_for(current, pod):
            raise ClaimChangedError(f"claim {key} is no longer reserved for the pod")
        return current

    def _on_claim_change(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if not self._waiting:
            return
        claim = new or old
        assert claim is not None
        key = claim.key
        for waiter in self._waiting.get(key, ()):
            waiter.changed.set()

    def on_node_delete(self, name: str) -> None:
        """A node was deleted, even if another of the same name has come since."""
        for waiters in self._waiting.values():
            for waiter in waiters:
                if waiter.node_name == name:
                    waiter.node_is_gone = True
                    waiter.changed.set()
