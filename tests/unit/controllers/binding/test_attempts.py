"""Attempts: what is tried again, after how long, and when it is enough."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from allot.backoff import Backoff
from allot.controllers.binding import (
    Attacher,
    AttachFailedError,
    Attachment,
    AttachRequest,
    AttemptLimits,
    BindingObserver,
)
from allot.controllers.binding.attachments import attach_requests
from allot.controllers.binding.attempts import (
    AttemptContext,
    attach_until_decided,
    detach_until_done,
)
from tests.unit.client.fakes import FakeClock
from tests.unit.controllers.binding.claims import DRIVER, allocated, attachment

(REQUEST,) = attach_requests(allocated("gpu-0"), DRIVER).values()
LIMITS = AttemptLimits(backoff=Backoff(1.0, 8.0, jitter=0.0))
BUSY = AttachFailedError("Busy", "later")


def context(limits: AttemptLimits = LIMITS, clock: FakeClock | None = None) -> AttemptContext:
    return AttemptContext(limits, clock or FakeClock(hasty=True), BindingObserver())


class Scripted(Attacher):
    """Each call takes the next step: an error to raise, something to wait for, or nothing."""

    def __init__(self, *steps: object) -> None:
        self.steps = list(steps)

    async def _step(self) -> None:
        step = self.steps.pop(0)
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, asyncio.Event):
            await step.wait()

    async def attach(self, device: AttachRequest) -> None:
        await self._step()

    async def detach(self, device: Attachment) -> None:
        await self._step()


def attach(
    *steps: object, limits: AttemptLimits = LIMITS
) -> tuple[AttachFailedError | None, list[float]]:
    """What came of it, and the waits in between."""
    clock = FakeClock(hasty=True)
    attacher = Scripted(*steps)
    outcome = asyncio.run(
        attach_until_decided(attacher, REQUEST, context(limits, clock), asyncio.Lock())
    )
    assert attacher.steps == []
    return outcome, clock.slept


def test_at_once() -> None:
    assert attach(None) == (None, [])


def test_transient_failures_are_retried_with_backoff() -> None:
    outcome, waits = attach(BUSY, BUSY, BUSY, BUSY, BUSY, None)

    assert outcome is None
    assert waits == [1, 2, 4, 8, 8]


def test_permanent_failures_are_not_retried() -> None:
    broken = AttachFailedError("Broken", permanent=True)

    assert attach(BUSY, broken) == (broken, [1])


def test_enough_is_enough() -> None:
    outcome, waits = attach(BUSY, BUSY, BUSY, limits=LIMITS._replace(max_attempts=3))

    assert outcome is BUSY
    assert waits == [1, 2]


def reason(step: Callable[[], object], **limits: float) -> str:
    outcome, _ = attach(step(), limits=LIMITS._replace(max_attempts=1, **limits))  # type: ignore[arg-type]
    assert outcome is not None
    assert not outcome.permanent
    return str(outcome)


def test_a_hang_ends_in_time() -> None:
    assert reason(asyncio.Event, attach_seconds=0.01) == "AttachTimedOut: not ready after 0.01 s"


def test_mistakes_in_an_attacher_are_failures_like_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.CRITICAL):
        assert reason(lambda: KeyError("x")) == "AttachError: KeyError: 'x'"
    assert "was cancelled" in reason(asyncio.CancelledError)
    assert reason(lambda: TimeoutError("port 3")) == "AttachTimedOut: port 3"


def test_progress_tells_of_failed_attempts() -> None:
    said: list[tuple[str, str]] = []
    request = AttachRequest(
        REQUEST.attachment, REQUEST.claim, "gpu", (), (), report=lambda *what: said.append(what)
    )

    asyncio.run(attach_until_decided(Scripted(BUSY, None), request, context(), asyncio.Lock()))

    assert said == [("Busy", "attempt 1 failed: later")]


def test_letting_go_is_never_given_up(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock(hasty=True)
    attacher = Scripted(OSError("no"), asyncio.Event(), asyncio.CancelledError(), BUSY, None)
    limits = LIMITS._replace(detach_seconds=0.01, max_attempts=2)

    with caplog.at_level(logging.CRITICAL):
        asyncio.run(
            detach_until_done(attacher, attachment(), context(limits, clock), asyncio.Lock())
        )

    assert attacher.steps == []
    assert clock.slept == [1, 2, 4, 8]


def test_a_cancelled_task_does_not_go_on() -> None:
    async def main() -> None:
        for work in (
            attach_until_decided(Scripted(asyncio.Event()), REQUEST, context(), asyncio.Lock()),
            detach_until_done(Scripted(asyncio.Event()), attachment(), context(), asyncio.Lock()),
        ):
            task = asyncio.ensure_future(work)
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait((task,))
            assert task.cancelled()

    asyncio.run(main())


def test_calls_in_one_lane_come_one_after_another() -> None:
    class Counting(Attacher):
        now = most = 0

        async def attach(self, device: AttachRequest) -> None:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1

        async def detach(self, device: Attachment) -> None:
            await self.attach(REQUEST)

    async def most(lanes: tuple[asyncio.Lock, ...]) -> int:
        attacher = Counting()
        await asyncio.gather(
            *(attach_until_decided(attacher, REQUEST, context(), lane) for lane in lanes),
            *(detach_until_done(attacher, attachment(), context(), lane) for lane in lanes),
        )
        return attacher.most

    lane = asyncio.Lock()
    assert asyncio.run(most((lane, lane))) == 1
    assert asyncio.run(most((asyncio.Lock(), asyncio.Lock()))) == 2
