"""Answers that several requests share: equal requests are counted once, as long as that is the same answer.

An answer is good for a request if nothing it counts has changed since, or if it was counted after the request came:
it is then as fresh as one counted now for a request that waited as long.
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
"""Of all answers that are kept..."""
MIN_ENTRY_BYTES: Final = 4096
"""... each of which counts as so many at least."""


class RequestedPools(NamedTuple):
    """What a request asks for. Equal ones have equal answers."""

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
    """An answer as it is written, and when it was counted."""

    counted_at: datetime
    began: float
    state: object
    """What can be compared to tell whether anything has changed since the counting began."""
    pool_count: int
    shown: int
    faulty: int
    incomplete: int
    left_out: int
    errors: tuple[str, ...]
    is_provisional: bool
    json: bytes
    generation_zero: tuple[PoolStatus, ...] = ()
    """All pools, if one has the generation 0: such an answer is written in another version."""

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
    """The last answer to each request, the most recent ones, up to a size."""

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
        """A kept answer that is good for a request that came at `since`, or what `count` gives."""
        lock = self._locks.setdefault(asked, asyncio.Lock())
        async with lock:
            kept = self._kept.get(asked)
            if kept is not None and (kept.began > since or kept.state == state()):
                return kept
            answer = await count()
            self._kept.put(asked, answer)
            return answer
