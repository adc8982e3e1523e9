"""Expectations: writes that the informer has not delivered yet. Until then a controller must not count dependents.

A pod that was just created may be missing from the informer, and would be created again. Creations are expected by
name and deletions by uid. Expectations time out: an object may be created and deleted while a watch is broken.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.client.clock import Clock

EXPECTATIONS_TIMEOUT_SECONDS: Final = 300.0


class _Write(NamedTuple):
    """A creation of a name, or a deletion of a uid."""

    verb: str
    what: str


class Expectations:
    """Pending writes by owner."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: defaultdict[ObjectKey, dict[_Write, float]] = defaultdict(dict)

    def seconds_left(self, owner: ObjectKey) -> float:
        """The maximum time until the expectations are satisfied or time out; zero if they are satisfied."""
        awaited = self._until.get(owner)
        if not awaited:
            return 0.0
        now = self._clock.now()
        for write in [write for write, until in awaited.items() if until <= now]:
            del awaited[write]
        return max((until - now for until in awaited.values()), default=0.0)

    def expect_creation(self, owner: ObjectKey, name: str) -> None:
        self._expect(owner, _Write("create", name))

    def expect_deletion(self, owner: ObjectKey, uid: str) -> None:
        self._expect(owner, _Write("delete", uid))

    def created(self, owner: ObjectKey, name: str) -> None:
        """The creation was observed, or failed."""
        self._settle(owner, _Write("create", name))

    def deleted(self, owner: ObjectKey, uid: str) -> None:
        self._settle(owner, _Write("delete", uid))

    def forget(self, owner: ObjectKey) -> None:
        self._until.pop(owner, None)

    def _expect(self, owner: ObjectKey, write: _Write) -> None:
        self._until[owner][write] = self._clock.now() + EXPECTATIONS_TIMEOUT_SECONDS

    def _settle(self, owner: ObjectKey, write: _Write) -> None:
        awaited = self._until.get(owner)
        if awaited is not None:
            awaited.pop(write, None)
            if not awaited:
                del self._until[owner]
