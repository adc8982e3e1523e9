"""Failed devices: devices that could not be bound for a pod, which avoids them with exponential backoff.

They could not be made ready (KEP-5007): the controller should take a broken one out of use, by a taint or by removing
it, but the scheduler may decide before it sees that, and not every controller does so. Or the API server refused the
allocation because others hold them, which the scheduler does not see if its feature gates differ from the server's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, NamedTuple

from allot.api.identities import DeviceId, SharedDeviceId
from allot.backoff import Backoff
from allot.scheduler.state.pods import PodInfo

FAILED_DEVICE_BACKOFF: Final = Backoff(initial_seconds=30.0, max_seconds=600.0)
HELD_DEVICE_BACKOFF: Final = Backoff(initial_seconds=5.0, max_seconds=30.0)
"""After the API server refused an allocation. Shorter, because another scheduler may just have been faster."""
MAX_REMEMBERED: Final = 10_000
"""So many failures of devices for pods are remembered."""


class _Failure(NamedTuple):
    times: int
    avoided_until: float


class FailedDevices:
    """Which devices each pod avoids, and until when."""

    def __init__(
        self,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        retry: Callable[[PodInfo], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`retry` is called when a pod avoids a device no longer."""
        self._spawn = spawn
        self._retry = retry
        self._now = now
        self._failures: dict[str, dict[DeviceId, _Failure]] = {}

    def add(
        self,
        pod: PodInfo,
        devices: Iterable[SharedDeviceId | DeviceId],
        backoff: Backoff = FAILED_DEVICE_BACKOFF,
    ) -> None:
        """These devices could not be bound for the pod."""
        known = self._failures.pop(pod.uid, {})
        seconds = 0.0
        for each in devices:
            device = DeviceId(each.driver, each.pool, each.device)
            before = known.get(device)
            times = before.times + 1 if before is not None else 1
            seconds = max(seconds, backoff.seconds(times))
            known[device] = _Failure(times, self._now() + backoff.seconds(times))
        self._failures[pod.uid] = known
        while sum(map(len, self._failures.values())) > MAX_REMEMBERED and len(self._failures) > 1:
            del self._failures[next(iter(self._failures))]
        self._spawn(self._retry_after(pod, seconds))

    async def _retry_after(self, pod: PodInfo, seconds: float) -> None:
        await asyncio.sleep(seconds + 0.01)  # by then it is over, however coarse the clock is
        if pod.uid in self._failures:
            self._retry(pod)

    def avoided_devices(self, pod: PodInfo) -> frozenset[DeviceId]:
        """The devices that the pod shall not get now."""
        known = self._failures.get(pod.uid)
        if not known:
            return frozenset()
        now = self._now()
        return frozenset(device for device, failure in known.items() if now < failure.avoided_until)

    def forget(self, pod: PodInfo) -> None:
        """The pod is bound, or gone."""
        self._failures.pop(pod.uid, None)
