"""The gate before a pod is bound (KEP-5007): it opens when all devices are ready, and gives back what cannot be."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.client.errors import ClientError
from allot.scheduler.framework.status import SUCCESS, Status, failed
from allot.scheduler.plugins.dynamic_resources.binding_conditions import (
    BindingFailed,
    NotReady,
    Ready,
    drivers_with_conditions,
    has_conditions,
)
from allot.scheduler.plugins.dynamic_resources.binding_wait import BindingWait
from allot.scheduler.plugins.dynamic_resources.claim_tracker import ClaimTracker
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimChangedError, ClaimWriter
from allot.scheduler.plugins.dynamic_resources.pod_claims import (
    Unusable,
    claims_of,
    is_reserved_for,
)
from allot.scheduler.state.pods import PodInfo

log = logging.getLogger(__name__)


class BindingReporter(Protocol):
    """Tells users and metrics about pods that wait for their devices."""

    async def waits(self, pod: PodInfo, node_name: str, missing: Sequence[str]) -> None:
        """The pod begins to wait; its node stays nominated."""

    def waited(self, pod: PodInfo, drivers: Sequence[str], outcome: str, seconds: float) -> None:
        """The pod has waited: with success, failure, timeout or error."""


class BindingGate:
    """All pods of one profile that wait."""

    def __init__(
        self,
        tracker: ClaimTracker,
        writer: ClaimWriter,
        wait: BindingWait,
        reporter: BindingReporter,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._tracker = tracker
        self._writer = writer
        self._wait = wait
        self._reporter = reporter
        self._spawn = spawn

    def is_hopeless(self, claim: ResourceClaim) -> bool:
        """Whether an allocated claim will not become ready any more."""
        return isinstance(self._wait.outlook([claim]), BindingFailed)

    async def open_for(
        self, pod: PodInfo, node_name: str, claims: Sequence[ResourceClaim]
    ) -> Status:
        """Wait until every device is ready. What cannot be made ready is given back."""
        current = [self._tracker.get(_key(claim)) or claim for claim in claims]
        conditioned = [claim for claim in current if has_conditions(claim)]
        if not conditioned:
            return SUCCESS
        started = time.monotonic()
        outcome = "error"
        try:
            outlook = self._wait.outlook(conditioned)
            missing = outlook.missing if isinstance(outlook, NotReady) else ()
            await self._reporter.waits(pod, node_name, missing)
            ended = await self._wait.until_ready(conditioned, pod)
            if isinstance(ended, Ready):
                outcome = "success"
                return SUCCESS
            outcome = "timeout" if ended.timed_out else "failure"
            await self._give_back(current, pod)
            return failed(ClaimChangedError(ended.message))
        except (ClaimChangedError, ClientError) as error:
            return failed(error)
        finally:
            drivers = drivers_with_conditions(conditioned)
            self._reporter.waited(pod, drivers, outcome, time.monotonic() - started)

    def abandon(self, pod: PodInfo) -> None:
        """The pod went away while it waited: nobody needs its devices any more."""
        claims = claims_of(pod, self._tracker.get)
        if not isinstance(claims, Unusable):
            self._spawn(self._abandoned(claims, pod))

    async def _abandoned(self, claims: Sequence[ResourceClaim], pod: PodInfo) -> None:
        try:
            await self._give_back(claims, pod)
        except ClientError as error:
            log.warning("pod %s: its claims were not released: %s", pod.key, error)

    async def _give_back(self, claims: Sequence[ResourceClaim], pod: PodInfo) -> None:
        """Clear what the claims hold for this pod, so that other devices can be found."""
        for claim in claims:
            current = self._tracker.get(_key(claim))
            if current is not None and is_reserved_for(current, pod):
                released = await self._writer.release(current, pod)
                if released is not None:
                    self._tracker.assume(released)


def _key(claim: ResourceClaim) -> ObjectKey:
    return ObjectKey(claim.metadata.namespace, claim.metadata.name)
