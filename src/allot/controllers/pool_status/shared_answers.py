"""A cache of answers: equal requests share one answer while it is valid.

An answer is valid for a request if no counted object has changed since, or if it was counted after the request
arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from allot.api.pool_status import DEFAULT_LIMIT, PoolStatus, ResourcePoolStatusRequestSpec
from allot.controllers.pool_status.answers import MAX_ANSWER_BYTES, PoolStatusAnswer
from allot.lru_cache import LRUCache

MAX_CACHED_BYTES: Final = 8 * 1024 * 1024
"""The limit of the cache."""
MIN_ENTRY_BYTES: Final = 4096
"""The minimum size that an entry counts as."""


class RequestedPools(NamedTuple):
    """The selection of a request, the key of the cache."""

    driver: str
    pool_name: str | None
    limit: int
    attribute: str | None
    max_bytes: int

    @classmethod
    def by(
        cls, spec: ResourcePoolStatusRequestSpec, max_bytes: int = MAX_ANSWER_BYTES
    ) -> RequestedPools:
        limit = DEFAULT_LIMIT if spec.limit is None else spec.limit
        attribute = spec.default_partition_type_attribute
        return cls(spec.driver, spec.pool_name, limit, attribute, max_bytes)


class SharedAnswer(NamedTuple):
    """An encoded answer, and when it was counted."""

    counted_at: datetime
    began: float
    state: object
    """A version of the counted objects, compared to detect changes."""
    pool_count: int
    shown: int
    faulty: int
    incomplete: int
    left_out: int
    errors: tuple[str, ...]
    is_provisional: bool
    json: bytes
    generation_zero: tuple[PoolStatus, ...] = ()
    """All pools, if one has the generation 0, which only v1alpha1 can express."""

    @classmethod
    def of(
        cls, answer: PoolStatusAnswer, counted_at: datetime, began: float, state: object
    ) -> SharedAnswer:
        has_zero = any(not pool.generation for pool in answer.pools)
        return cls(
            counted_at,
            began,
            state,
            answer.pool_count,
            len(answer.pools),
            answer.faulty_pools,
            answer.incomplete_pools,
            answer.left_out,
            answer.errors,
            answer.is_provisional,
            answer.json,
            answer.pools if has_zero else (),
        )

    @property
    def size(self) -> int:
        return max(len(self.json), MIN_ENTRY_BYTES)


class SharedAnswers:
    """An LRU cache of answers with a size limit."""

    def __init__(self, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self._kept: LRUCache[RequestedPools, SharedAnswer] = LRUCache(
            max_bytes // MIN_ENTRY_BYTES, max_bytes, lambda answer: answer.size
        )
        self._locks: WeakValueDictionary[RequestedPools, asyncio.Lock] = WeakValueDictionary()

    async def get(
        self,
        asked: RequestedPools,
        since: float,
        state: Callable[[], object],
        count: Callable[[], Awaitable[SharedAnswer]],
    ) -> SharedAnswer:
        """A cached answer that is valid for a request that arrived at `since`, or the result of `count`."""
        lock = self._locks.setdefault(asked, asyncio.Lock())
        async with lock:
            kept = self._kept.get(asked)
            if kept is not None and (kept.began > since or kept.state == state()):
                return kept
            answer = await count()
            self._kept.put(asked, answer)
            return answer
