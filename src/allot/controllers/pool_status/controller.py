"""The loop that answers ResourcePoolStatusRequests, each once, and deletes them when they are old.

    request without status ──► a moment ──► count ──► all pools complete? ──► write the status, once
                                  ▲                     │ no, and 5 s are not over
                                  └── a slice came ◄────┘

What claims hold is entered in a ledger as they change, so that a question costs as much as the pools it asks for,
however many claims there are. Of several controllers the first to write has answered: the others' writes conflict.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import ClassVar, Final, NamedTuple

from allot.allocation.ledger import Ledger
from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceTaintRule
from allot.api.identities import ObjectKey
from allot.api.pool_status import ResourcePoolStatusRequest, ResourcePoolStatusRequestStatus
from allot.api.slices import ResourceSlice
from allot.client import resources
from allot.client.client import with_limit
from allot.client.errors import ApiStatusError, ClientError
from allot.client.informer import Informer
from allot.client.options import DeleteOptions
from allot.client.rate_limits import RequestLimit
from allot.controllers.controller import QueueController, Surroundings
from allot.controllers.pool_status.answers import Answer, answer_request, completed, failed
from allot.controllers.pool_status.expiry import expires_at
from allot.controllers.pool_status.metrics import PoolStatusMetrics
from allot.features import DEVICE_TAINT_RULES, RESOURCE_POOL_STATUS

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 0.05
"""Slices, claims and requests come by different ways: what was written before the question may arrive after it."""
PATIENCE_SECONDS: Final = 5.0
"""How long an incomplete pool is waited for."""
SLICES_SETTLE_SECONDS: Final = 0.2
"""Slices come in swarms: one look for all of them."""
LONGEST_NAP_SECONDS: Final = 24 * 3600.0
REQUESTS_PER_SECOND: Final = 50.0
REQUESTS_AT_ONCE: Final = 100
"""Many questions must not keep the others who share our way to the API server from getting through."""

_REQUESTS: Final = resources.RESOURCE_POOL_STATUS_REQUESTS
_KEP_REQUESTS: Final = _REQUESTS.in_version("v1alpha1")
"""The version that knows a time to live, if the server has it."""
_BY_DRIVER: Final = "driver"
_TOO_LARGE: Final = 413


def _driver(slice_: ResourceSlice) -> tuple[str, ...]:
    return (slice_.spec.driver,)


class _Waiting(NamedTuple):
    """A request that some pools are not ready for."""

    uid: str
    driver: str
    since: float


class ResourcePoolStatusRequestController(QueueController[ObjectKey]):
    """Counts devices for those who ask."""

    name: ClassVar[str] = "resourcepoolstatusrequest-controller"
    queue_name: ClassVar[str] = "resourcepoolstatusrequest"
    workers: ClassVar[int] = 1

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self.is_enabled = RESOURCE_POOL_STATUS in surroundings.gates
        self._metrics = PoolStatusMetrics(surroundings.registry)
        self._ledger = Ledger(surroundings.gates)
        self._waiting: dict[ObjectKey, _Waiting] = {}
        if not self.is_enabled:
            return
        limit = RequestLimit(REQUESTS_PER_SECOND, REQUESTS_AT_ONCE)
        self.client = with_limit(self.client, limit)
        informers = surroundings.informers
        self._claims = informers.informer(resources.RESOURCE_CLAIMS)
        self._claims.add_handlers(self._enter, lambda _, claim: self._enter(claim), self._release)
        self._slices = informers.informer(resources.RESOURCE_SLICES)
        self._slices.add_index(_BY_DRIVER, _driver)
        self._slices.add_handlers(self._wake, lambda _, slice_: self._wake(slice_), self._wake)
        self._rules: Informer[DeviceTaintRule] | None = None
        if DEVICE_TAINT_RULES in surroundings.gates:
            self._rules = informers.informer(resources.DEVICE_TAINT_RULES)
        self._requests = informers.informer(_REQUESTS)
        self._requests.add_handlers(
            self._enqueue, lambda _, request: self._enqueue(request), self._forget
        )

    async def run(self) -> None:
        if not self.is_enabled:
            log.info("%s: %s is off", self.name, RESOURCE_POOL_STATUS)
            return
        await super().run()

    # --- what informers say ---

    def _enter(self, claim: ResourceClaim) -> None:
        allocation = claim.status.allocation
        if allocation is None:
            self._release(claim)
        else:
            self._ledger.add(_holder(claim), allocation)

    def _release(self, claim: ResourceClaim) -> None:
        self._ledger.remove(_holder(claim))

    def _wake(self, slice_: ResourceSlice) -> None:
        for key, waiting in self._waiting.items():
            if waiting.driver == slice_.spec.driver:
                self.queue.add_after(key, SLICES_SETTLE_SECONDS)

    def _enqueue(self, request: ResourcePoolStatusRequest) -> None:
        key = ObjectKey("", request.metadata.name)
        if request.status is None:
            self.queue.add_after(key, SETTLE_SECONDS)
        else:
            self._waiting.pop(key, None)
            self.queue.add(key)

    def _forget(self, request: ResourcePoolStatusRequest) -> None:
        self._waiting.pop(ObjectKey("", request.metadata.name), None)

    # --- one request ---

    async def reconcile(self, key: ObjectKey) -> None:
        request = self._requests.get(key)
        if request is None or request.metadata.deletion_timestamp is not None:
            return
        if request.status is not None:
            await self._delete_in_time(key, request, await self._ttl_seconds(key, request))
            return
        try:
            await self._answer(key, request)
        except ClientError:
            self._metrics.went_wrong(request.spec.driver)
            if await self._delete_in_time(key, request, None):
                return
            raise

    async def _answer(self, key: ObjectKey, request: ResourcePoolStatusRequest) -> None:
        started = self.clock.now()
        status = self._status(key, request)
        if status is None:
            return
        try:
            await self._write(replace(request, status=status))
        except ApiStatusError as error:
            if error.is_conflict or error.is_not_found:
                # Somebody answered or changed it, or it is gone. We will hear of it.
                return
            if not error.is_invalid and error.code != _TOO_LARGE:
                raise
            log.warning("%s: the answer was not accepted: %s", key, error)
            self._metrics.went_wrong(request.spec.driver)
            await self._write_failure(request, f"The answer was not accepted: {error}")
        self._waiting.pop(key, None)
        self._metrics.answered(request.spec.driver, self.clock.now() - started)

    def _status(
        self, key: ObjectKey, request: ResourcePoolStatusRequest
    ) -> ResourcePoolStatusRequestStatus | None:
        """What to write; None if it is too early."""
        now = self.clock.today()
        for informer, kind in ((self._slices, "ResourceSlices"), (self._claims, "ResourceClaims")):
            if not informer.lists:
                return failed(f"Failed to list {kind}: the server does not have them", now)
        try:
            answer = self._counted(request)
        except Exception as error:
            log.exception("%s: a mistake of ours", key)
            self._metrics.went_wrong(request.spec.driver)
            return failed(f"Failed to count devices: {type(error).__name__}: {error}", now)
        if answer.is_provisional and self._is_worth_waiting(key, request):
            return None
        return completed(answer, now)

    def _counted(self, request: ResourcePoolStatusRequest) -> Answer:
        slices = self._slices.by_index(_BY_DRIVER, request.spec.driver)
        rules: Collection[DeviceTaintRule] = self._rules.list() if self._rules is not None else ()
        return answer_request(request.spec, slices, self._ledger, rules)

    def _is_worth_waiting(self, key: ObjectKey, request: ResourcePoolStatusRequest) -> bool:
        now = self.clock.now()
        waiting = self._waiting.get(key)
        if waiting is None or waiting.uid != request.metadata.uid:
            waiting = _Waiting(request.metadata.uid, request.spec.driver, now)
            self._waiting[key] = waiting
        left = waiting.since + PATIENCE_SECONDS - now
        if left <= 0:
            return False
        self.queue.add_after(key, left)
        return True

    async def _write(self, request: ResourcePoolStatusRequest) -> None:
        assert request.status is not None
        if any(not pool.generation for pool in request.status.pools):
            # v1alpha3 has no word for the generation 0, which slices may have.
            try:
                await self.client.update_status(_KEP_REQUESTS, request)
                return
            except ApiStatusError as error:
                if not error.is_not_found:
                    raise
        await self.client.update_status(_REQUESTS, request)

    async def _write_failure(self, request: ResourcePoolStatusRequest, message: str) -> None:
        status = failed(message, self.clock.today())
        try:
            await self.client.update_status(_REQUESTS, replace(request, status=status))
        except ApiStatusError as error:
            if not (error.is_conflict or error.is_not_found):
                raise

    # --- its end ---

    async def _ttl_seconds(self, key: ObjectKey, request: ResourcePoolStatusRequest) -> int | None:
        found = await self.client.find(_KEP_REQUESTS, key)
        if found is None or found.metadata.uid != request.metadata.uid:
            return None
        return found.spec.ttl_seconds_after_complete

    async def _delete_in_time(
        self, key: ObjectKey, request: ResourcePoolStatusRequest, ttl_seconds: int | None
    ) -> bool:
        """Delete the request if it has expired, or come back when it will have. Whether it did."""
        expires = expires_at(request, ttl_seconds)
        if expires is None:
            return False
        left = (expires - self.clock.today()).total_seconds()
        if left > 0:
            if request.status is not None:
                self.queue.add_after(key, min(left, LONGEST_NAP_SECONDS))
            return False
        try:
            await self.client.delete(_REQUESTS, key, DeleteOptions(uid=request.metadata.uid))
            log.info("%s: deleted, it has expired", key)
        except ApiStatusError as error:
            if not (error.is_conflict or error.is_not_found):
                raise
        return True


def _holder(claim: ResourceClaim) -> str:
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}#{metadata.uid}"
