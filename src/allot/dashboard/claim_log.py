"""What happened to claims while the dashboard watched, as far as their objects have no time for it: bounded, by claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.client import resources
from allot.client.resources import Resource
from allot.lru_cache import LRUCache

MAX_CLAIMS: Final = 5_000
MAX_ENTRIES: Final = 200
"""Of one claim; the oldest are dropped."""


class Noticed(NamedTuple):
    """Something that happened to a claim."""

    at: float
    what: str
    detail: str = ""


class ClaimLog:
    """The claims that changed last."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: LRUCache[ObjectKey, tuple[Noticed, ...]] = LRUCache(MAX_CLAIMS)

    def changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        """An object has changed. Claims that existed before are not noticed as created."""
        if resource is not resources.RESOURCE_CLAIMS or old is None:
            return
        now = self._clock()
        found = [Noticed(now, what, detail) for what, detail in _differences(old, new)]
        if found:
            known = self._entries.get(old.key) or ()
            self._entries.put(old.key, (*known, *found)[-MAX_ENTRIES:])

    def of(self, claim: ObjectKey) -> Sequence[Noticed]:
        return self._entries.get(claim) or ()


def _differences(old: ResourceClaim, new: ResourceClaim | None) -> Iterator[tuple[str, str]]:
    if new is None:
        yield "deleted", ""
        return
    before = {each.uid: each.name for each in old.status.reserved_for}
    after = {each.uid: each.name for each in new.status.reserved_for}
    for uid, name in after.items():
        if uid not in before:
            yield "reserved", f"for pod {name}"
    for uid, name in before.items():
        if uid not in after:
            yield "released", f"by pod {name}"
    if old.status.allocation is not None and new.status.allocation is None:
        yield "deallocated", ""
