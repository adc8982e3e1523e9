"""The control loop that writes the status of ResourcePoolStatusRequests, each once, and deletes expired ones.

    request without status ──► debounce ──► count ──► all pools complete? ──► write the status, once
                                  ▲                     │ no, and less than 5 s have passed
                                  └── slice event ◄─────┘

`inventory` follows slices and claims by their events, so that the cost of a request depends on the pools it
selects, not on the number of claims. Equal requests share an answer (`shared_answers`). Counting yields to other tasks;
requests for few pools are processed before requests for many (`WorkQueue`), and the bytes of answers per second are
limited. With several controllers the first write wins: the other writes conflict.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import ClassVar, Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.api.messages import no_slice_of_driver
from allot.api.pool_status import DEFAULT_LIMIT, ResourcePoolStatusRequestStatus
from allot.client.client import with_limit
from allot.client.clock import Clock
from allot.client.cooperative import finish_with_pauses
from allot.client.errors import ApiStatusError, ClientError
from allot.client.options import DeleteOptions
from allot.client.rate_limits import RequestLimit, TokenBucket
from allot.client.work_queue import WorkQueue
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.pool_status.answers import (
    MAX_ANSWER_BYTES,
    Completion,
    answering_request,
    completion,
    failed,
)
from allot.controllers.pool_status.expiry import expires_at
from allot.controllers.pool_status.incomplete_pools import WaitingRequests
from allot.controllers.pool_status.inventory import PoolInventory
from allot.controllers.pool_status.metrics import PoolStatusMetrics
from allot.controllers.pool_status.request_ttls import RequestTtls
from allot.controllers.pool_status.requests import (
    PARTIAL_REQUESTS,
    REQUESTS,
    PartialRequest,
)
from allot.controllers.pool_status.shared_answers import RequestedPools, SharedAnswer, SharedAnswers
from allot.controllers.pool_status.status_writes import TooLargeError, write_answer, write_failure
from allot.features import RESOURCE_POOL_STATUS
from allot.rules import (
    KEP_FIELDS_IN_V1ALPHA3,
    REPORT_INCOMPLETE_POOLS,
    UNKNOWN_DRIVER_WARNING,
)

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 0.05
"""Watches of different kinds are not ordered: slices and claims written before the request may arrive after it."""
MAX_REQUEUE_SECONDS: Final = 24 * 3600.0
REQUESTS_PER_SECOND: Final = 50.0
REQUESTS_AT_ONCE: Final = 100
"""Many requests must not starve the other controllers, which share the connection to the API server."""
BYTES_PER_SECOND: Final = 4 * 1024 * 1024
BYTES_AT_ONCE: Final = 8 * 1024 * 1024
"""Nor must large answers: each is decoded, validated, stored and sent to all watchers."""
SMALL_ANSWER_BYTES: Final = 64 * 1024
"""Smaller answers are not rate limited."""
SECONDS_PER_POOL: Final = 0.01
"""How long a request waits for cheaper ones, per selected pool."""
HOUSEKEEPING_SECONDS: Final = 5.0
"""How long deleting expired requests waits for pending requests."""
MIN_ANSWER_BYTES: Final = 16 * 1024
"""If an answer of this size is still too large, the request fails."""


class ResourcePoolStatusRequestController(QueueController[ObjectKey]):
    """Writes the status of requests."""

    name: ClassVar[str] = "resourcepoolstatusrequest-controller"
    queue_name: ClassVar[str] = "resourcepoolstatusrequest"
    workers: ClassVar[int] = 4

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.is_enabled = RESOURCE_POOL_STATUS in context.gates
        self._gates = context.gates
        self._inventory = PoolInventory(context.gates)
        self._metrics = PoolStatusMetrics(
            context.registry, lambda driver: self._inventory.slice_count(driver) > 0
        )
        self._arrivals: dict[ObjectKey, _Arrival] = {}
        """When pending requests arrived."""
        self._max_bytes_by_uid: dict[str, int] = {}
        self._answers = SharedAnswers()
        self._writing = asyncio.Lock()
        if not self.is_enabled:
            return
        self.queue = WorkQueue(
            clock=self.clock,
            observer=context.queue_metrics.of(self.queue_name),
            handicap=self._priority_delay,
        )
        self._waiting = WaitingRequests(self.queue, self.clock)
        self._bytes = TokenBucket(BYTES_PER_SECOND, BYTES_AT_ONCE, self.clock.now())
        limit = RequestLimit(REQUESTS_PER_SECOND, REQUESTS_AT_ONCE)
        self.client = with_limit(self.client, limit)
        self._ttls = RequestTtls(self.client, lambda key: self._requests.get(key) is not None)
        informers = context.informers
        self._inventory.add_handlers(informers, self._waiting.wake)
        self._requests = informers.informer(PARTIAL_REQUESTS)
        self._requests.add_handlers(
            self._enqueue, lambda _, request: self._enqueue(request), self._forget
        )

    async def run(self) -> None:
        if not self.is_enabled:
            log.info("%s: %s is off", self.name, RESOURCE_POOL_STATUS)
            return
        await super().run()

    # --- event handlers ---

    def _enqueue(self, request: PartialRequest) -> None:
        key = request.key
        if self._is_answered(request):
            self._settle(request)
            self.queue.add(key)
        else:
            if key not in self._arrivals:
                self._arrivals[key] = _Arrival.of(request, self.clock)
            self.queue.add_after(key, SETTLE_SECONDS)

    def _is_answered(self, request: PartialRequest) -> bool:
        needs_time = self._ttls.is_served and KEP_FIELDS_IN_V1ALPHA3 in self._gates
        return request.is_answered(needs_observation_time=needs_time)

    def _settle(self, request: PartialRequest) -> None:
        """Drop the state of a pending request once it is answered."""
        self._arrivals.pop(request.key, None)
        self._waiting.forget(request.key)
        self._max_bytes_by_uid.pop(request.metadata.uid, None)

    def _forget(self, request: PartialRequest) -> None:
        self._settle(request)
        self._ttls.forget(request.metadata.uid)

    def _priority_delay(self, key: ObjectKey) -> float:
        request = self._requests.get(key)
        if (
            request is None
            or request.metadata.deletion_timestamp is not None
            or self._is_answered(request)
        ):
            return HOUSEKEEPING_SECONDS
        spec = request.spec
        if spec.pool_name is not None:
            return SECONDS_PER_POOL
        limit = DEFAULT_LIMIT if spec.limit is None else spec.limit
        return SECONDS_PER_POOL * min(limit, self._inventory.slice_count(spec.driver))

    # --- one request ---

    async def reconcile(self, key: ObjectKey) -> None:
        request = self._requests.get(key)
        if request is None or request.metadata.deletion_timestamp is not None:
            return
        if request.status is not None:
            ttl_seconds = await self._ttls.get(request)
            if self._is_answered(request):
                await self._delete_in_time(request, ttl_seconds)
                return
        try:
            await self._answer(request)
        except ClientError:
            self._metrics.went_wrong(request.spec.driver)
            if await self._delete_in_time(request, None):
                return
            raise

    async def _answer(self, request: PartialRequest) -> None:
        started = self.clock.now()
        # Read now: with its status the request may be large.
        await self._ttls.get(request)
        answer = await self._status(request)
        if answer is None:
            return
        try:
            if isinstance(answer, ResourcePoolStatusRequestStatus):
                await write_failure(self.client, request, answer)
            elif not await self._write(request, answer):
                return
        except ApiStatusError as error:
            if error.is_conflict or error.is_not_found:
                # Answered, changed or deleted meanwhile: the informer delivers the event.
                return
            if not error.is_invalid:
                raise
            await self._write_refusal(request, error)
        self._waiting.forget(request.key)
        now = self.clock.now()
        arrival = self._arrivals.get(request.key)
        waited = now - (arrival.created_at if arrival is not None else started)
        self._metrics.answered(request.spec.driver, now - started, waited)

    async def _status(
        self, request: PartialRequest
    ) -> SharedAnswer | ResourcePoolStatusRequestStatus | None:
        """The answer, or the status of a failure; None to wait for incomplete pools."""
        await self._inventory.load()
        now = self.clock.today()
        for kind in self._inventory.unserved_kinds():
            return failed(f"Failed to list {kind}: the server does not have them", now)
        max_bytes = self._max_bytes_by_uid.get(request.metadata.uid, MAX_ANSWER_BYTES)
        asked = RequestedPools.by(request.spec, max_bytes)
        arrival = self._arrivals.get(request.key)
        since = (arrival.seen_at if arrival else self.clock.now()) + SETTLE_SECONDS
        try:
            answer = await self._answers.get(
                asked,
                since,
                lambda: self._inventory.version(asked.driver),
                lambda: self._counted(request, max_bytes),
            )
        except Exception as error:
            log.exception("%s: unexpected exception", request.key)
            self._metrics.went_wrong(request.spec.driver)
            return failed(f"Failed to count devices: {type(error).__name__}: {error}", now)
        if answer.is_provisional and (
            self._waiting.is_worth_it(request) or REPORT_INCOMPLETE_POOLS not in self._gates
        ):
            self._await_change(request, answer)
            return None
        if answer.state == self._inventory.version(asked.driver):
            return answer._replace(counted_at=self.clock.today())  # still up to date
        return answer

    def _await_change(self, request: PartialRequest, answer: SharedAnswer) -> None:
        """From now on only what is counted later is an answer to a request that waits."""
        key, driver = request.key, request.spec.driver
        if (arrival := self._arrivals.get(key)) is not None:
            self._arrivals[key] = arrival._replace(seen_at=self.clock.now())
        if answer.state != self._inventory.version(driver):
            self._waiting.wake(driver)  # it changed before the request waited

    async def _counted(self, request: PartialRequest, max_bytes: int) -> SharedAnswer:
        spec = request.spec
        slices, rules = self._inventory.slices(spec), self._inventory.taint_rules()
        today, began, state = (
            self.clock.today(),
            self.clock.now(),
            self._inventory.version(spec.driver),
        )
        steps = answering_request(
            spec, slices, self._inventory.ledger, rules, max_bytes, self._gates
        )
        return SharedAnswer.of(await finish_with_pauses(steps), today, began, state)

    async def _write(self, request: PartialRequest, answer: SharedAnswer) -> bool:
        """Whether the status was written; otherwise the request is queued again."""
        size = len(answer.json)
        outcome = Completion(
            answer.shown,
            answer.faulty,
            answer.incomplete,
            answer.left_out,
            "" if answer.pool_count else self._why_no_pool(request),
        )
        condition = completion(outcome, answer.counted_at, self._gates)
        write = partial(
            write_answer, self.client, request, answer, condition, knows_kep=self._ttls.is_served
        )
        try:
            if size < SMALL_ANSWER_BYTES:
                await write()
            elif self._may_write(request, size):
                # One at a time: large writes are expensive for the server.
                async with self._writing:
                    await write()
            else:
                return False
        except TooLargeError as error:
            smaller = min(size, MAX_ANSWER_BYTES) // 2
            log.warning("%s: %s; retrying with at most %d bytes", request.key, error, smaller)
            if smaller < MIN_ANSWER_BYTES:
                await self._write_refusal(request, error)
                return True
            self._max_bytes_by_uid[request.metadata.uid] = smaller
            self.queue.add(request.key)
            return False
        return True

    def _why_no_pool(self, request: PartialRequest) -> str:
        """Empty under v1.38's rules."""
        if UNKNOWN_DRIVER_WARNING not in self._gates:
            return ""
        spec = request.spec
        if self._inventory.slice_count(spec.driver) > 0:
            return f"driver {spec.driver} has no pool {spec.pool_name}"
        return no_slice_of_driver(spec.driver, self._inventory.drivers())

    def _may_write(self, request: PartialRequest, size: int) -> bool:
        """Whether the rate limit allows writing now; otherwise the request is queued for later."""
        now = self.clock.now()
        if self._bytes.take(now, size):
            return True
        wait = self._bytes.seconds_to_next(now, size)
        self.queue.add_after(request.key, max(wait, SETTLE_SECONDS))
        return False

    async def _write_refusal(self, request: PartialRequest, error: Exception) -> None:
        log.warning("%s: the status was rejected: %s", request.key, error)
        self._metrics.went_wrong(request.spec.driver)
        status = failed(f"The answer was not accepted: {error}", self.clock.today())
        await write_failure(self.client, request, status)

    # --- expiry ---

    async def _delete_in_time(self, request: PartialRequest, ttl_seconds: int | None) -> bool:
        """Delete the request if it has expired, else requeue it for that time. Whether it had expired."""
        expires = expires_at(request, ttl_seconds)
        if expires is None:
            return False
        left = (expires - self.clock.today()).total_seconds()
        if left > 0:
            if request.status is not None:
                self.queue.add_after(request.key, min(left, MAX_REQUEUE_SECONDS))
            return False
        try:
            options = DeleteOptions(uid=request.metadata.uid)
            await self.client.delete(REQUESTS, request.key, options)
            log.info("%s: expired, deleted", request.key)
        except ApiStatusError as error:
            if not (error.is_conflict or error.is_not_found):
                raise
        return True


class _Arrival(NamedTuple):
    """When a request arrived."""

    seen_at: float
    """When the controller first observed it, or last found that it has to wait."""
    created_at: float
    """Its creation on the controller's clock. Timestamps have whole seconds: up to one second late, never early."""

    @classmethod
    def of(cls, request: PartialRequest, clock: Clock) -> _Arrival:
        now, created = clock.now(), request.metadata.creation_timestamp
        age = (clock.today() - created).total_seconds() if created is not None else 0.0
        return cls(now, now - max(0.0, age - 1.0))
