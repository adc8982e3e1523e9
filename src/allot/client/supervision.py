"""Running components: restarted with a backoff when they fail, and polled until they are ready."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from allot.backoff import Backoff
from allot.client.clock import Clock
from allot.client.errors import log_failure

log = logging.getLogger(__name__)

RESTART_BACKOFF: Final = Backoff(initial_seconds=0.1, max_seconds=30.0, jitter=0.0)
READY_POLL_SECONDS: Final = 0.01


async def run_with_restarts(name: str, run: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Call `run` until it returns. An exception is logged, and `run` is called again after a backoff."""
    failures = 0
    while True:
        try:
            await run()
            return
        except Exception as error:  # noqa: BLE001 - one component must not stop the others
            failures += 1
            wait = RESTART_BACKOFF.seconds(failures, 0.0)
            log_failure(log, error, "%s failed; restarting in %.1f s", name, wait)
            await clock.sleep(wait)


async def wait_until_ready(is_ready: Callable[[], bool]) -> None:
    """Returns when `is_ready` is true; asks every 10 ms."""
    while not is_ready():
        await asyncio.sleep(READY_POLL_SECONDS)
