"""Work for pods that may take long, and is retried: calls to drivers.

A pod's work runs in a task of its own, so that a driver that hangs holds up nothing else. The pod loop asks again when
it is told that the work has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from allot.api.identities import ObjectKey
from allot.backoff import Backoff
from allot.client.clock import Clock

RETRIES: Final = Backoff(initial_seconds=0.5, max_seconds=10.0, jitter=0.0)

SOON_SECONDS: Final = 0.01


class Progress(Enum):
    DONE = auto()
    PENDING = auto()
    FAILED = auto()


class PodWorkOutcome(NamedTuple):
    """How far the work for a pod is. A failure is reported once. `retry_seconds`: when to ask again, if not told."""

    progress: Progress
    message: str = ""
    retry_seconds: float = 0.0


DONE: Final = PodWorkOutcome(Progress.DONE)
PENDING: Final = PodWorkOutcome(Progress.PENDING)


class _Work:
    def __init__(self, pod: ObjectKey) -> None:
        self.pod = pod
        self.task: asyncio.Task[None] | None = None
        self.error = ""
        self.failures = 0
        self.retry_at = 0.0


class PodWork:
    """One kind of work, at most once at a time for each pod."""

    def __init__(
        self, clock: Clock, failure: type[Exception], on_end: Callable[[ObjectKey], None]
    ) -> None:
        """`failure` is the exception that is reported and retried."""
        self._clock = clock
        self._failure = failure
        self._on_end = on_end
        self._works: dict[str, _Work] = {}

    def advance(
        self, uid: str, pod: ObjectKey, run: Callable[[], Coroutine[Any, Any, None]]
    ) -> PodWorkOutcome:
        """Start the work, unless it runs or waits for its next attempt."""
        work = self._works.get(uid)
        if work is None:
            work = self._works[uid] = _Work(pod)
        if work.task is not None:
            return PENDING
        if work.error:
            error, work.error = work.error, ""
            return PodWorkOutcome(
                Progress.FAILED, error, max(work.retry_at - self._clock.now(), SOON_SECONDS)
            )
        if self._clock.now() < work.retry_at:
            return self._waiting(work)
        work.task = asyncio.create_task(self._run(uid, work, run))
        return PENDING

    def fail(self, uid: str, pod: ObjectKey, message: str) -> PodWorkOutcome:
        """The work cannot even be started. PENDING if that was reported, and its next attempt is not due."""
        work = self._works.setdefault(uid, _Work(pod))
        if self._clock.now() < work.retry_at:
            return self._waiting(work)
        self._note_failure(work)
        return PodWorkOutcome(Progress.FAILED, message, work.retry_at - self._clock.now())

    def _waiting(self, work: _Work) -> PodWorkOutcome:
        return PENDING._replace(retry_seconds=work.retry_at - self._clock.now())

    def _note_failure(self, work: _Work) -> None:
        work.failures += 1
        work.retry_at = self._clock.now() + RETRIES.seconds(work.failures, 0.0)

    def is_waiting(self, uid: str) -> bool:
        """Whether a failed attempt is to be repeated later."""
        work = self._works.get(uid)
        return work is not None and work.task is None and self._clock.now() < work.retry_at

    def retry_now(self) -> None:
        """What made attempts fail may have changed."""
        for work in self._works.values():
            if work.task is None:
                work.retry_at = 0.0
                self._on_end(work.pod)

    def forget(self, uid: str) -> None:
        """The work is done, or its pod is gone."""
        work = self._works.get(uid)
        if work is not None and work.task is None:
            del self._works[uid]

    def cancel(self, uid: str) -> None:
        """The pod ends: its work is not needed any more."""
        work = self._works.pop(uid, None)
        if work is not None and work.task is not None:
            work.task.cancel()

    def close(self) -> None:
        for work in self._works.values():
            if work.task is not None:
                work.task.cancel()
        self._works.clear()

    async def _run(
        self, uid: str, work: _Work, run: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        try:
            await run()  # not made before: the task may be cancelled before it begins
            if self._works.get(uid) is work:
                del self._works[uid]
        except self._failure as error:
            work.error = str(error)
            self._note_failure(work)
        finally:
            work.task = None
        self._on_end(work.pod)
