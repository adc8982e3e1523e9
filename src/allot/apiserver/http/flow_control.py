"""Flow control: how many requests are answered at once, and whose.

As in Kubernetes' API priority and fairness, with two levels that do not take seats from each other: `system` for the
components of the cluster, `workload` for all others. Health endpoints, and components in this process, are
exempt. Reads and writes have seats of their own. A watch holds a seat only until it begins, the log of a pod none at all;
how many of these one user may keep open is limited apart. The memory of request bodies is limited by the same rules.

A large answer gives its seat back when it is sent, for one of those that are being sent: a client that takes it slowly
delays other large answers of its user, and no small one.
"""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial
from typing import Final, NamedTuple

from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError
from allot.apiserver.auth.authentication import User
from allot.apiserver.http.fair_limiter import FairLimiter, QueueLimits, RejectedError
from allot.apiserver.http.metrics import Metrics
from allot.apiserver.log_aggregation import Notice
from allot.client.component_users import CONTROLLER_MANAGER, DRIVERS, NODES, SCHEDULER

log = logging.getLogger(__name__)

SYSTEM: Final = "system"
WORKLOAD: Final = "workload"
READ_ONLY: Final = "readOnly"
MUTATING: Final = "mutating"
CONCURRENCY_LIMIT: Final = "concurrency-limit"
OBJECTS_PER_SEAT: Final = 100
MAX_SEATS: Final = 10
"""A list of many objects takes more than one seat, as in Kubernetes."""

SENDING_QUEUE: Final = QueueLimits(max_waiting=200, max_waiting_per_user=50)
"""Answers that wait until they are sent take memory."""

SYSTEM_USERS: Final = frozenset(
    user.name for user in (SCHEDULER, CONTROLLER_MANAGER, NODES, DRIVERS)
)
SYSTEM_GROUPS: Final = frozenset(("system:nodes", "system:serviceaccounts:kube-system"))


class FlowLimits(NamedTuple):
    """How much is done at once, on each of the two levels."""

    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200
    max_body_bytes: int = 64 * 1024 * 1024
    max_watches_per_user: int = 1000
    queue: QueueLimits = QueueLimits()


class PriorityLevel:
    """What the requests of one level share."""

    def __init__(self, name: str, limits: FlowLimits) -> None:
        self.name = name
        self.seats = {
            READ_ONLY: FairLimiter(limits.max_requests_inflight, limits.queue),
            MUTATING: FairLimiter(limits.max_mutating_requests_inflight, limits.queue),
        }
        self.sending = FairLimiter(limits.max_requests_inflight, SENDING_QUEUE)
        """Seats of large answers to reads while they are sent."""
        self.bodies = FairLimiter(limits.max_body_bytes, limits.queue)
        self.watches: Counter[str] = Counter()


class FlowControl:
    """Limits the requests in flight per priority level, fairly among users."""

    def __init__(self, limits: FlowLimits, metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._levels = {name: PriorityLevel(name, limits) for name in (SYSTEM, WORKLOAD)}
        self._notice = Notice(log)
        self.inflight = {READ_ONLY: 0, MUTATING: 0}
        """Requests that are being answered now, those of all levels."""
        self.exempt = partial(ExemptRequest, self.inflight)
        """A request of a kind that takes no seats and bytes."""
        for kind in self.inflight:
            metrics.inflight.labels(kind).set_function(partial(self.inflight.__getitem__, kind))
        for level in self._levels.values():
            for kind, seats in level.seats.items():
                waiting = metrics.waiting.labels(level.name, kind)
                waiting.set_function(partial(getattr, seats, "waiting"))
            bodies = metrics.body_bytes.labels(level.name)
            bodies.set_function(partial(getattr, level.bodies, "in_use"))

    def request(self, user: User, kind: str, *, exempt: bool = False) -> InFlightRequest:
        """The seats and bytes that a request will hold; none yet."""
        if exempt:
            return self.exempt(kind)
        return LimitedRequest(self, self._levels[level_of(user)], user.name, kind)

    def long_running(self, user: User) -> LongRunningRequest:
        """A request that counts as a watch until its end, and takes no seat; raises 429."""
        self._begin_watch(user)
        return LongRunningRequest(self, user)

    def _begin_watch(self, user: User) -> None:
        """Count a watch until it ends; 429 if the user has too many."""
        level = self._levels[level_of(user)]
        if level.watches[user.name] >= self._limits.max_watches_per_user:
            open_ = f"{level.watches[user.name]} watches are open"
            raise self.rejection(level, user.name, "watch", CONCURRENCY_LIMIT, open_)
        level.watches[user.name] += 1

    def end_watch(self, user: User) -> None:
        watches = self._levels[level_of(user)].watches
        watches[user.name] -= 1
        if not watches[user.name]:
            del watches[user.name]

    def rejection(
        self, level: PriorityLevel, user: str, kind: str, reason: str, state: str
    ) -> ApiError:
        """429, counted and logged."""
        self._metrics.rejected.labels(level.name, kind, reason).inc()
        self._notice.warn(
            f"rejecting requests with 429: user {user!r}, level {level.name}, {kind}, {reason}: {state}"
        )
        return api_errors.too_many_requests(
            f"Too many requests, please try again later: {state} for user {user!r}"
        )


class InFlightRequest:
    """A request while it is answered. `end` releases what it holds; it may be called again."""

    _is_counted = False

    def __init__(self, inflight: dict[str, int], kind: str) -> None:
        self._inflight = inflight
        self._kind = kind

    async def take_body(self, size: int) -> None:
        """Wait until there is memory for a body of this size; raises 429."""

    def shrink_body(self, size: int) -> None:
        """The body is here and smaller than it might have been."""

    def begins(self, width: int = 1) -> bool:
        """Take seats without waiting, if they are free; whether it did."""
        if not self._is_counted:
            self._inflight[self._kind] += 1
            self._is_counted = True
        return True

    async def begin(self, width: int = 1) -> None:
        """Take seats, as soon as they are free; raises 429."""
        self.begins(width)

    async def begin_sending(self) -> None:
        """The large answer to a read is there: free its seats for others while it is sent; raises 429."""

    def pause(self) -> None:
        """Free the seats while the request waits for others; the memory of its body stays counted."""
        if self._is_counted:
            self._inflight[self._kind] -= 1
            self._is_counted = False

    async def resume(self) -> None:
        """Wait for a seat again; raises 429."""
        await self.begin()

    def end(self) -> None:
        if self._is_counted:
            self._inflight[self._kind] -= 1
            self._is_counted = False


class ExemptRequest(InFlightRequest):
    """A request that waits for nothing, and is counted from its beginning."""

    def __init__(self, inflight: dict[str, int], kind: str) -> None:
        self._inflight = inflight
        self._kind = kind
        self._is_counted = True
        inflight[kind] += 1


class LimitedRequest(InFlightRequest):
    """A request that takes the seats and bytes of its priority level."""

    _seats = 0
    _sending = 0
    _bytes = 0

    def __init__(self, flow: FlowControl, level: PriorityLevel, user: str, kind: str) -> None:
        super().__init__(flow.inflight, kind)
        self._flow = flow
        self._level = level
        self._user = user

    async def take_body(self, size: int) -> None:
        bodies = self._level.bodies
        taken = bodies.take(self._user, size)
        if taken is not None:
            self._bytes = taken
            return
        try:
            self._bytes = await bodies.acquire(self._user, size)
        except RejectedError as error:
            state = f"{bodies.held_by(self._user)} bytes of request bodies are being read"
            raise self._rejection(error.reason, state) from None

    def shrink_body(self, size: int) -> None:
        if size < self._bytes:
            self._level.bodies.release(self._user, self._bytes - size)
            self._bytes = size

    def begins(self, width: int = 1) -> bool:
        taken = self._level.seats[self._kind].take(self._user, width)
        if taken is None:
            return False
        self._seats = taken
        return super().begins()

    async def begin(self, width: int = 1) -> None:
        if self.begins(width):
            return
        seats = self._level.seats[self._kind]
        try:
            self._seats = await seats.acquire(self._user, width)
        except RejectedError as error:
            held = seats.held_by(self._user)
            state = f"{held} of {seats.limit} {self._kind} seats are in use"
            raise self._rejection(error.reason, state) from None
        super().begins()

    async def begin_sending(self) -> None:
        if self._kind is not READ_ONLY:
            return  # what a write has done cannot be taken back
        level = self._level
        width, self._seats = self._seats, 0
        level.seats[self._kind].release(self._user, width)
        try:
            self._sending = await level.sending.acquire(self._user, width)
        except RejectedError as error:
            state = f"{level.sending.held_by(self._user)} large answers are being sent"
            raise self._rejection(error.reason, state) from None

    def pause(self) -> None:
        self._leave_seats()
        super().pause()

    def end(self) -> None:
        self._leave_seats()
        if self._sending:
            self._level.sending.release(self._user, self._sending)
            self._sending = 0
        if self._bytes:
            self._level.bodies.release(self._user, self._bytes)
            self._bytes = 0
        super().end()

    def _leave_seats(self) -> None:
        if self._seats:
            self._level.seats[self._kind].release(self._user, self._seats)
            self._seats = 0

    def _rejection(self, reason: str, state: str) -> ApiError:
        return self._flow.rejection(self._level, self._user, self._kind, reason, state)


class LongRunningRequest:
    """A request that counts as a watch of its user. `end` may be called again."""

    __slots__ = ("_flow", "_user")

    def __init__(self, flow: FlowControl, user: User) -> None:
        self._flow = flow
        self._user: User | None = user

    def end(self) -> None:
        user, self._user = self._user, None
        if user is not None:
            self._flow.end_watch(user)


def level_of(user: User) -> str:
    """The priority level of a user's requests."""
    if user.name in SYSTEM_USERS or not SYSTEM_GROUPS.isdisjoint(user.groups):
        return SYSTEM
    return WORKLOAD


def seats_for(objects: int) -> int:
    """How many seats a list of so many objects takes."""
    return min(MAX_SEATS, 1 + objects // OBJECTS_PER_SEAT)
