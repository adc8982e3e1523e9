"""The binding gate (KEP-5007): pods are bound once all devices are ready; claims whose devices fail are released."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from allot.api.claims import AllocationResult, ResourceClaim
from allot.api.identities import ObjectKey
from allot.client.errors import ClientError
from allot.features import BINDING_CONDITIONS
from allot.scheduler.framework.bind_errors import KeepsNominationError
from allot.scheduler.plugins.dynamic_resources.binding_conditions import (
    BindingFailed,
    NotReady,
    drivers_with_conditions,
    dropped_conditions,
    has_conditions,
    waits_for_binding,
)
from allot.scheduler.plugins.dynamic_resources.binding_wait import BindingWait
from allot.scheduler.plugins.dynamic_resources.claim_write_queue import ClaimChangedError
from allot.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from allot.scheduler.plugins.dynamic_resources.failed_devices import FailedDevices
from allot.scheduler.plugins.dynamic_resources.pod_claims import claim_keys, is_reserved_for
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from allot.scheduler.framework.ordered_binding import OrderedBinding

log = logging.getLogger(__name__)


class BindingOutcome(Enum):
    """How waiting ended; the names are those of metrics."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    ERROR = "error"


class DevicesNotReadyError(ClaimChangedError, KeepsNominationError):
    """A device has failed, or was not ready in time."""

    def __init__(self, why: BindingFailed, *, keeps_nomination: bool) -> None:
        super().__init__(why.message)
        self.outcome = BindingOutcome.TIMEOUT if why.timed_out else BindingOutcome.FAILURE
        self.keeps_nomination = keeps_nomination


class BindingReporter(Protocol):
    """Tells users and metrics about pods that wait for their devices."""

    async def waits(
        self, pod: PodInfo, node_name: str, missing: Sequence[str], timeout: timedelta
    ) -> None:
        """The pod begins to wait, so long at most since its allocation; its node stays nominated."""

    def waited(
        self, pod: PodInfo, drivers: Sequence[str], outcome: BindingOutcome, seconds: float
    ) -> None:
        """The pod has waited for devices of these drivers."""

    def passed(
        self, pod: PodInfo, outcome: BindingOutcome, seconds: float, *, has_conditions: bool
    ) -> None:
        """The pod's claims were written and, if they have conditions, waited for; or that failed."""


class BindingGate:
    """All pods of one profile that wait."""

    def __init__(
        self,
        tracker: ClaimTracker,
        writer: ClaimWriter,
        wait: BindingWait,
        reporter: BindingReporter,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        now: Callable[[], float] = time.monotonic,
        is_complete: Callable[[], bool] = lambda: True,
        failed: FailedDevices | None = None,
        *,
        heeds_server: bool = True,
    ) -> None:
        """`failed` remembers the devices that pods avoid; None if they do not.

        `heeds_server`: an API server that has the gate off drops binding conditions, and the pod gets another device.

        `is_complete` says whether the tracker knows all claims; before that, one that is missing means nothing."""
        self._tracker = tracker
        self._writer = writer
        self._wait = wait
        self._reporter = reporter
        self._spawn = spawn
        self._now = now
        self._is_complete = is_complete
        self._failed = failed
        self._heeds_server = heeds_server

    def __len__(self) -> int:
        """The number of claims that are waited for."""
        return len(self._wait)

    def forget(self, pod: PodInfo) -> None:
        """The pod is bound, or gone."""
        if self._failed is not None:
            self._failed.forget(pod)

    def on_node_delete(self, name: str) -> None:
        """Pods that wait to be bound to this node will not be."""
        self._wait.on_node_delete(name)

    def why_unusable(self, claim: ResourceClaim) -> str:
        """Why an allocated claim will not become ready any more; empty if it may."""
        return self._wait.why_unusable(claim)

    def why_release(self, claim: ResourceClaim, pod: PodInfo) -> str:
        """Why a pod that no node takes must not keep a claim; empty if it may.

        Its devices have failed; or they are not ready, and the scheduler that waited for them was restarted.
        """
        match self._wait.outlook([claim]):
            case BindingFailed(message):
                return message
            case NotReady(missing) if is_reserved_for(claim, pod):
                return f"not ready: {'; '.join(missing)}"
        return ""

    async def write_and_wait(
        self,
        pod: PodInfo,
        node_name: str,
        decided: Sequence[ResourceClaim],
        write: Callable[[bool], Awaitable[Sequence[ResourceClaim]]],
        binding: OrderedBinding | None = None,
    ) -> None:
        """Write the claims, then wait until every device is ready; `ClaimChangedError` or `ClientError` if not.

        `write` is told whether the pod can be bound as soon as it has succeeded, and may have sent `binding` with it.
        What was written is given back when waiting fails; if writing does, that is the caller's business.
        """
        started, outcome = self._now(), BindingOutcome.ERROR
        with_conditions = any(map(has_conditions, decided))
        try:
            claims = await write(not with_conditions)
            if with_conditions:
                await self._check_conditions_kept(pod, decided, claims)
            conditioned = [claim for claim in claims if has_conditions(claim)]
            # A pod that is bound does not wait, even if admission has added conditions to what was written.
            if conditioned and (binding is None or await binding.outcome() is None):
                await self._until_ready(pod, node_name, claims, conditioned)
            outcome = BindingOutcome.SUCCESS
        except DevicesNotReadyError as error:
            outcome = error.outcome
            raise
        finally:
            seconds = self._now() - started
            self._reporter.passed(pod, outcome, seconds, has_conditions=with_conditions)

    async def _check_conditions_kept(
        self, pod: PodInfo, decided: Sequence[ResourceClaim], claims: Sequence[ResourceClaim]
    ) -> None:
        """What is stored without its conditions is not waited for: the device would be used before it is ready."""
        devices = dropped_conditions(decided, claims)
        if not devices or not self._heeds_server:
            return
        if self._failed is not None:
            self._failed.add(pod, devices)
        await self._give_back((claim.key for claim in claims), pod)
        names = ", ".join(f"{each.driver}/{each.pool}/{each.device}" for each in devices)
        message = (
            f"device {names} has binding conditions, and the {BINDING_CONDITIONS} feature is"
            " disabled in the API server"
        )
        why = BindingFailed(message, timed_out=False, devices=devices)
        raise DevicesNotReadyError(why, keeps_nomination=False)

    async def _until_ready(
        self,
        pod: PodInfo,
        node_name: str,
        claims: Sequence[ResourceClaim],
        conditioned: Sequence[ResourceClaim],
    ) -> None:
        started, outcome = self._now(), BindingOutcome.ERROR
        try:
            outlook = self._wait.outlook(conditioned)
            missing = outlook.missing if isinstance(outlook, NotReady) else ()
            if any(map(waits_for_binding, filter(None, _allocations(conditioned)))):
                await self._reporter.waits(pod, node_name, missing, self._wait.timeout)
            ended = await self._wait.until_ready(conditioned, pod, node_name)
            if isinstance(ended, BindingFailed):
                if self._failed is not None:
                    self._failed.add(pod, ended.devices)
                raise DevicesNotReadyError(ended, keeps_nomination=self._failed is not None)
            outcome = BindingOutcome.SUCCESS
        except ClaimChangedError as error:
            outcome = error.outcome if isinstance(error, DevicesNotReadyError) else outcome
            await self._give_back((claim.key for claim in claims), pod)
            raise
        finally:
            drivers = drivers_with_conditions(conditioned)
            self._reporter.waited(pod, drivers, outcome, self._now() - started)

    def release_claims(self, pod: PodInfo) -> None:
        """The pod was deleted during the wait: release its devices."""
        self.forget(pod)
        self._spawn(self._give_back(claim_keys(pod), pod))

    def release_if_claim_missing(self, pod: PodInfo) -> None:
        """A pod that lacks a claim lets go of those it has: it may have waited for them before a restart.

        A claim that is being deleted would otherwise never go, and the pod never get another.
        """
        claims = [self._tracker.get(key) for key in claim_keys(pod)]
        if not claims:
            return
        if (
            any(map(_is_lost, claims))
            and any(claim is not None and is_reserved_for(claim, pod) for claim in claims)
            and self._is_complete()
        ):
            self.release_claims(pod)

    async def _give_back(self, keys: Iterable[ObjectKey], pod: PodInfo) -> None:
        """Clear what the claims hold for this pod, so that other devices can be found."""
        for key in keys:
            claim = self._tracker.get(key)
            if claim is None or not is_reserved_for(claim, pod):
                continue
            try:
                released = await self._writer.release(claim, pod)
            except ClientError as error:
                # The next attempt finds it as it is; a pod that is gone is others' business then.
                log.warning("claim %s of pod %s was not released: %s", key, pod.key, error)
            else:
                if released is not None:
                    self._tracker.assume(released)


def _allocations(claims: Iterable[ResourceClaim]) -> Iterator[AllocationResult | None]:
    return (claim.status.allocation for claim in claims)


def _is_lost(claim: ResourceClaim | None) -> bool:
    return claim is None or claim.metadata.deletion_timestamp is not None
