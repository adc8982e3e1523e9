"""Recent writes that the informers may not show yet. It saves requests; entries expire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

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


class _CreatedClaim(NamedTuple):
    pod: ObjectKey
    pod_uid: str
    expires_at: float


class CreatedClaims:
    """Created claims that the informer does not have yet, with their pods."""

    def __init__(self, now: Callable[[], float], limit: int = MAX_CREATED) -> None:
        self._now = now
        self._limit = limit
        self._created: dict[ObjectKey, _CreatedClaim] = {}
        """Oldest first."""

    def __len__(self) -> int:
        return len(self._created)

    def add(self, key: ObjectKey, pod: ObjectKey, pod_uid: str) -> None:
        self._created.pop(key, None)
        expires_at = self._now() + CREATED_CLAIM_TTL_SECONDS
        self._created[key] = _CreatedClaim(pod, pod_uid, expires_at)
        if len(self._created) > self._limit:
            del self._created[next(iter(self._created))]

    def forget(self, key: ObjectKey) -> None:
        """The informer has the claim, or its deletion."""
        self._created.pop(key, None)

    def is_made_for(self, key: ObjectKey, pod_uid: str) -> bool:
        made = self._created.get(key)
        return made is not None and made.pod_uid == pod_uid and made.expires_at > self._now()

    def expire(self) -> list[ObjectKey]:
        """Forget the claims that the informer should have by now. Returns their pods."""
        now, pods = self._now(), []
        for key, made in tuple(self._created.items()):
            if made.expires_at > now:
                break
            del self._created[key]
            pods.append(made.pod)
        return pods
