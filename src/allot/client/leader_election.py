"""Leader election by a Lease: the leader is its holder, as long as it renews it.

Clocks of different machines are never compared. A candidate takes the Lease over when it has not changed for its whole
duration, by the candidate's own clock. A leader that cannot renew stops earlier than that.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NamedTuple

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client, without_retries
from allot.client.clock import micro_time
from allot.client.errors import ApiStatusError, ClientError
from allot.client.resources import LEASES

log = logging.getLogger(__name__)


class LeadershipLostError(ClientError):
    """The Lease could not be renewed in time, or has another holder."""


class ElectionTimes(NamedTuple):
    """Lease duration, renew deadline and retry period."""

    lease_seconds: int = 15
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


class _Observed(NamedTuple):
    """A Lease, and when it last changed by the local clock."""

    lease: RawObject
    changed_at: float

    @property
    def holder(self) -> str:
        return str(self.lease.get("spec", "holderIdentity", default=""))

    @property
    def expires_at(self) -> float:
        return self.changed_at + float(self.lease.get("spec", "leaseDurationSeconds", default=0))


def next_lease(lease: RawObject, identity: str, today: datetime, times: ElectionTimes) -> RawObject:
    """The Lease with `identity` as its holder: taken over, or renewed."""
    now = micro_time(today)
    spec: dict[str, Any] = dict(lease.get("spec", default={}))
    if spec.get("holderIdentity") != identity:
        spec["acquireTime"] = now
        spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
    spec["holderIdentity"] = identity
    spec["leaseDurationSeconds"] = times.lease_seconds
    spec["renewTime"] = now
    return lease.with_value(spec, "spec")


def first_lease(key: ObjectKey, identity: str, today: datetime, times: ElectionTimes) -> RawObject:
    empty = RawObject({"metadata": {"namespace": key.namespace, "name": key.name}})
    return next_lease(empty, identity, today, times).with_value(0, "spec", "leaseTransitions")


def released_lease(lease: RawObject, today: datetime) -> RawObject:
    """The Lease without a holder, so that it can be acquired immediately."""
    now = micro_time(today)
    freed = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
    return lease.with_value(dict(lease.get("spec", default={})) | freed, "spec")


class LeaderElector:
    """One candidate of an election."""

    def __init__(
        self,
        client: Client,
        key: ObjectKey,
        identity: str,
        times: ElectionTimes = ElectionTimes(),  # noqa: B008 - a value
        *,
        on_new_leader: Callable[[str], None] | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._client = without_retries(client)
        self._clock = client.clock
        self._key = key
        self._identity = identity
        self._times = times
        self._on_new_leader = on_new_leader
        self._chance = chance
        self._observed: _Observed | None = None
        self._renewed_at = float("-inf")

    @property
    def holder(self) -> str:
        """The last observed holder."""
        return self._observed.holder if self._observed else ""

    @property
    def is_leader(self) -> bool:
        return (
            self.holder == self._identity
            and self._clock.now() < self._renewed_at + self._times.lease_seconds
        )

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Acquire the Lease, run `lead`, then release the Lease.

        If the Lease is lost, `lead` is cancelled, and `LeadershipLostError` is raised after it has ended.
        """
        await self._acquire()
        log.info("%s became the leader of %s", self._identity, self._key)
        work = asyncio.ensure_future(lead())
        renewing = asyncio.create_task(self._renew_until_lost())
        try:
            await asyncio.wait((work, renewing), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise LeadershipLostError(f"{self._identity} lost the lease {self._key}")
            work.result()
        finally:
            # The Lease is renewed until the work has ended.
            work.cancel()
            await asyncio.wait((work,))
            renewing.cancel()
            await asyncio.wait((renewing,))
            await self._release()

    async def _acquire(self) -> None:
        while not await self._try():
            jitter = 1 + 1.2 * self._chance()
            await self._clock.sleep(self._times.retry_seconds * jitter)

    async def _renew_until_lost(self) -> None:
        while True:
            await self._clock.sleep(self._times.retry_seconds)
            if not await self._renew():
                return

    async def _renew(self) -> bool:
        """Retry until renewed; False after the renew deadline, or if another holder has the Lease."""
        deadline = self._renewed_at + self._times.renew_seconds
        while (left := deadline - self._clock.now()) > 0:
            if await self._try(left):
                return True
            if self.holder != self._identity:
                return False
            await self._clock.sleep(min(self._times.retry_seconds, max(left, 0.0)))
        return False

    async def _try(self, seconds: float | None = None) -> bool:
        """Acquire or renew the Lease, if possible."""
        try:
            async with asyncio.timeout(seconds or self._times.renew_seconds):
                return await self._take_or_renew()
        except TimeoutError:
            log.warning("%s: request timed out", self._key)
        except ApiStatusError as error:
            if not (error.is_conflict or error.is_already_exists):
                log.warning("%s: %s", self._key, error)
        except ClientError as error:
            log.warning("%s: %s", self._key, error)
        return False

    async def _take_or_renew(self) -> bool:
        if self.is_leader and self._observed is not None:
            try:
                return await self._write(self._observed.lease)
            except ApiStatusError as error:
                if not (error.is_conflict or error.is_not_found):
                    raise
        lease = await self._client.find(LEASES, self._key)
        if lease is None:
            return await self._create()
        observed = self._observe(lease)
        is_held = observed.holder and observed.holder != self._identity
        if is_held and self._clock.now() < observed.expires_at:
            return False
        return await self._write(lease)

    async def _create(self) -> bool:
        asked_at = self._clock.now()
        lease = first_lease(self._key, self._identity, self._clock.today(), self._times)
        return self._hold(await self._client.create(LEASES, lease), asked_at)

    async def _write(self, lease: RawObject) -> bool:
        asked_at = self._clock.now()
        wanted = next_lease(lease, self._identity, self._clock.today(), self._times)
        return self._hold(await self._client.update(LEASES, wanted), asked_at)

    def _hold(self, lease: RawObject, asked_at: float) -> bool:
        self._observe(lease)
        # Other candidates count from when they observe the change, which is not before the request.
        self._renewed_at = asked_at
        return True

    def _observe(self, lease: RawObject) -> _Observed:
        known = self._observed
        if known is None or known.lease.get("spec") != lease.get("spec"):
            self._observed = _Observed(lease, self._clock.now())
        else:
            self._observed = known._replace(lease=lease)
        if (
            self._on_new_leader is not None
            and self.holder
            and self.holder != (known.holder if known else "")
        ):
            self._on_new_leader(self.holder)
        return self._observed

    async def _release(self) -> None:
        if not self.is_leader or self._observed is None:
            return
        lease, self._observed = self._observed.lease, None
        try:
            async with asyncio.timeout(self._times.renew_seconds):
                await self._client.update(LEASES, released_lease(lease, self._clock.today()))
        except (ClientError, TimeoutError) as error:
            log.warning("%s: not released, will expire: %s", self._key, error)
