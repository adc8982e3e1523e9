"""Calls of an attacher, retried with a backoff until they succeed or fail permanently."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import NamedTuple

from allot.backoff import Backoff
from allot.client.clock import Clock
from allot.controllers.binding.attacher import Attacher, AttachFailedError
from allot.controllers.binding.attachments import Attachment, AttachRequest
from allot.controllers.binding.observer import BindingObserver

log = logging.getLogger(__name__)


class AttemptLimits(NamedTuple):
    """The retry policy: timeout of one call, backoff, maximum number of attempts."""

    attach_seconds: float | None = 300.0
    detach_seconds: float | None = 300.0
    max_attempts: int | None = None
    """An attach fails permanently after this many attempts. None: no limit; the scheduler's timeout ends it."""
    backoff: Backoff = Backoff(initial_seconds=1.0, max_seconds=60.0, jitter=0.2)
    chance: Callable[[], float] = random.random

    def wait_seconds(self, failures: int) -> float:
        return self.backoff.seconds(failures, self.chance())


class AttemptContext(NamedTuple):
    """The retry policy, the clock and the observer of all attempts."""

    limits: AttemptLimits
    clock: Clock
    seen: BindingObserver


async def attach_until_decided(
    attacher: Attacher, request: AttachRequest, context: AttemptContext, lane: asyncio.Lock
) -> AttachFailedError | None:
    """None when the device is ready; otherwise the permanent failure.

    `lane` serializes the calls for one device.
    """
    limits, clock, seen = context
    failures = 0
    while True:
        async with lane:
            seen.attach_tried(request)
            error = await _attach_once(attacher, request, limits.attach_seconds)
        if error is None:
            return None
        failures += 1
        if error.permanent or failures == limits.max_attempts:
            seen.attach_failed(request, error)
            return error
        wait = limits.wait_seconds(failures)
        log.info("%s: attempt %d: %s; retrying in %.1f s", request, failures, error, wait)
        seen.attach_retried(request, error, wait)
        request.report(error.reason, f"attempt {failures} failed: {error.message}")
        await clock.sleep(wait)


async def _attach_once(
    attacher: Attacher, request: AttachRequest, seconds: float | None
) -> AttachFailedError | None:
    try:
        async with asyncio.timeout(seconds):
            await attacher.attach(request)
    except AttachFailedError as error:
        return error
    except TimeoutError as error:
        return AttachFailedError("AttachTimedOut", str(error) or f"not ready after {seconds:g} s")
    except asyncio.CancelledError:
        if _are_cancelled():
            raise
        return AttachFailedError("AttachError", "a task that attach awaited was cancelled")
    except Exception as error:
        log.exception("%s: attach raised an unexpected exception", request)
        return AttachFailedError("AttachError", f"{type(error).__name__}: {error}")
    return None


async def detach_until_done(
    attacher: Attacher, attachment: Attachment, context: AttemptContext, lane: asyncio.Lock
) -> None:
    """Retries without limit: other claims cannot use the device before it is detached."""
    limits, clock, seen = context
    failures = 0
    while True:
        try:
            async with lane, asyncio.timeout(limits.detach_seconds):
                await attacher.detach(attachment)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _are_cancelled():
                raise
            problem = str(error) or type(error).__name__
            log.warning("%s: detach: %s", attachment, problem, exc_info=not failures)
        else:
            return
        failures += 1
        wait = limits.wait_seconds(failures)
        seen.detach_retried(attachment, problem, wait)
        await clock.sleep(wait)


def _are_cancelled() -> bool:
    """Whether the current task is being cancelled, not just a task that it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
