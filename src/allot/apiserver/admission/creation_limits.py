"""Rate limits for creating objects: a token bucket per user.

For ResourcePoolStatusRequests (KEP-5677): each makes a controller count devices and write a status that may be
large. Dry runs are not counted.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final, NamedTuple

from allot.api.identities import GroupVersion
from allot.api.resource import GROUP
from allot.apiserver import api_errors
from allot.apiserver.admission.chain import ADMITTED, AdmissionAttributes, Admitted
from allot.apiserver.kinds.resources import Resource, find
from allot.client.rate_limits import TokenBucket
from allot.lru_cache import LRUCache

MAX_USERS: Final = 10_000
"""The number of users whose buckets are kept. The longest idle one is dropped first."""


class CreationLimit(NamedTuple):
    """The limit of one user: a burst, and a rate per second."""

    per_second: float = 5.0
    """0 means no limit."""
    burst: int = 50


def loop_time() -> float:
    """The time of the event loop, which is virtual in tests."""
    return asyncio.get_running_loop().time()


class PoolStatusRequestLimit:
    """Rejects ResourcePoolStatusRequests above a user's rate limit with 429."""

    def __init__(self, limit: CreationLimit, clock: Callable[[], float] = loop_time) -> None:
        self._limit = limit
        self._clock = clock
        found = find(GroupVersion(GROUP, "v1alpha3"), "resourcepoolstatusrequests")
        assert found is not None
        self._resource = found
        self._buckets: LRUCache[str, TokenBucket] = LRUCache(MAX_USERS)

    def handles(self, operation: str, resource: Resource) -> bool:
        is_limited = self._limit.per_second > 0
        return is_limited and resource is self._resource and operation == "create"

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        if not attributes.info.dry_run:
            self._take(attributes.info.caller.name)
        return ADMITTED

    def _take(self, user: str) -> None:
        now = self._clock()
        bucket = self._buckets.get(user)
        if bucket is None:
            bucket = TokenBucket(self._limit.per_second, max(self._limit.burst, 1), now)
            self._buckets.put(user, bucket)
        if bucket.take(now):
            return
        raise api_errors.too_many_requests(
            f"user {user!r} creates too many {self._resource.plural}: at most"
            f" {self._limit.per_second:g} per second, {self._limit.burst} at once",
            retry_after_seconds=max(1, math.ceil(bucket.seconds_to_next(now))),
        )
