"""What a controller has written and not yet seen: until it has, it must not count.

A pod that was created a moment ago may be missing from the copy, and would be created again. So every
creation is awaited by name and every deletion by uid, for a while: what never shows up (it came and went
while the watch was broken) is not waited for forever.
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
    """Writes that have not come back yet, by the owner they were made for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: defaultdict[ObjectKey, dict[_Write, float]] = defaultdict(dict)

    def seconds_left(self, owner: ObjectKey) -> float:
        """How long to wait at most before the copy can be believed; zero if it can be now."""
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
        """It was seen, or will never be."""
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
