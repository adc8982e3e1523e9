"""Reads the changes of a watch cache without blocking, for authorization."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from allot.apiserver.watch_cache.cache import ResourceCache
from allot.apiserver.watch_cache.object_changes import ObjectChange
from allot.apiserver.watch_cache.stored_objects import StoredObject


class CacheFollower:
    """A cursor into the changes of one watch cache."""

    def __init__(self, cache: ResourceCache) -> None:
        self._cache = cache
        self._epoch = 0
        self._position = 0
        self._last_change = 0

    async def start(self) -> None:
        await self._cache.start()

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls `listener` when the cache changes, before the write returns, or is reloaded."""
        self._cache.listen_at_once(listener)

    def news(self) -> Sequence[ObjectChange] | None:
        """The changes since the last call; None if everything must be read again."""
        cache = self._cache
        cache.catch_up()
        if cache.epoch == self._epoch:
            if cache.last_change == self._last_change:
                return ()
            self._last_change = cache.last_change
            changes = cache.changes_from(self._position, cache.window_length)
            self._position = cache.position
            return changes
        self._epoch, self._position = cache.epoch, cache.position
        self._last_change = cache.last_change
        return None

    def objects(self) -> list[StoredObject]:
        return self._cache.select(self._cache.prefix)
