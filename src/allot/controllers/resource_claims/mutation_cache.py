"""Recent writes that the informers may not show yet. It saves requests; entries expire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from allot.api.identities import ObjectKey
from allot.lru_cache import LRUCache

MAX_DELETED: Final = 5000
MAX_CREATED: Final = 5000
CREATED_CLAIM_TTL_SECONDS: Final = 30.0
"""How long a created claim that the informer does not have is assumed to exist."""


class DeletedPods:
    """The uids of recently deleted pods."""

    def __init__(self, limit: int = MAX_DELETED) -> None:
        self._uids: LRUCache[str, bool] = LRUCache(limit)

    def add(self, uid: str) -> None:
        self._uids.put(uid, True)

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids


class CreatedClaims:
    """Created claims that the informer does not have yet, with the uids of their pods."""

    def __init__(self, now: Callable[[], float], limit: int = MAX_CREATED) -> None:
        self._now = now
        self._created: LRUCache[ObjectKey, tuple[str, float]] = LRUCache(limit)

    def add(self, key: ObjectKey, pod_uid: str) -> None:
        self._created.put(key, (pod_uid, self._now() + CREATED_CLAIM_TTL_SECONDS))

    def forget(self, key: ObjectKey) -> None:
        """The informer has the claim, or its deletion."""
        self._created.pop(key)

    def is_made_for(self, key: ObjectKey, pod_uid: str) -> bool:
        made = self._created.get(key)
        if made is None:
            return False
        if made[1] <= self._now():
            self._created.pop(key)
            return False
        return made[0] == pod_uid
