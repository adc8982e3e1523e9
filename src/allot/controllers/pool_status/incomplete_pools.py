"""Requests that wait for incomplete pools."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.client.clock import Clock
from allot.client.work_queue import WorkQueue
from allot.controllers.pool_status.requests import PartialRequest

INCOMPLETE_POOL_SECONDS: Final = 5.0
"""How long a request waits for an incomplete pool."""
SLICES_SETTLE_SECONDS: Final = 0.2
"""Slice events come in bursts: debounce."""


class _Waiting(NamedTuple):
    uid: str
    driver: str
    since: float


class WaitingRequests:
    """Waiting requests. Queued again by slice events of their driver, or after the timeout."""

    def __init__(self, queue: WorkQueue[ObjectKey], clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._waiting: dict[ObjectKey, _Waiting] = {}
        self._keys_by_driver: dict[str, dict[ObjectKey, None]] = {}
        self._waking: set[str] = set()

    def is_worth_it(self, request: PartialRequest) -> bool:
        """Whether to keep waiting; if so, the request is queued for later."""
        now = self._clock.now()
        key, uid = request.key, request.metadata.uid
        waiting = self._waiting.get(key)
        if waiting is None or waiting.uid != uid:
            self.forget(key)
            waiting = self._waiting[key] = _Waiting(uid, request.spec.driver, now)
            self._keys_by_driver.setdefault(waiting.driver, {})[key] = None
        left = waiting.since + INCOMPLETE_POOL_SECONDS - now
        if left <= 0:
            return False
        self._queue.add_after(key, left)
        return True

    def forget(self, key: ObjectKey) -> None:
        waiting = self._waiting.pop(key, None)
        if waiting is None:
            return
        keys = self._keys_by_driver[waiting.driver]
        del keys[key]
        if not keys:
            del self._keys_by_driver[waiting.driver]

    def wake(self, driver: str) -> None:
        """A slice of the driver has changed. Events are debounced."""
        if driver in self._keys_by_driver and driver not in self._waking:
            self._waking.add(driver)
            self._clock.call_later(SLICES_SETTLE_SECONDS, lambda: self._wake_now(driver))

    def _wake_now(self, driver: str) -> None:
        self._waking.discard(driver)
        for key in self._keys_by_driver.get(driver, ()):
            self._queue.add(key)
