"""How the tasks of a component end: cancelled, and awaited until they have."""

from __future__ import annotations

import asyncio
from typing import Any


async def cancel_and_wait(*tasks: asyncio.Task[Any] | None, ignore_errors: bool = False) -> None:
    """Cancel tasks and return when all have ended. None is a task that was not started.

    Raises the first exception that a task ended with, unless `ignore_errors`. If the caller is cancelled meanwhile,
    `CancelledError` is raised, also after all tasks have ended.
    """
    started = [task for task in tasks if task is not None]
    for task in started:
        task.cancel()
    # `suppress(CancelledError)` around `await task` would also swallow a cancellation of the caller.
    await asyncio.gather(*started, return_exceptions=True)
    if ignore_errors:
        return
    for task in started:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
