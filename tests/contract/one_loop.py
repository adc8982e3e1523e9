"""One event loop for all tests with stores.

gRPC hands answers to event loops from a thread of its own. Answers that come for a loop which is closed already
can take others with them, so tests must not close loops as they go. Programs have one loop anyway.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

Result = TypeVar("Result")


@cache
def _runner() -> asyncio.Runner:
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """As `asyncio.run`: what is left running afterwards is cancelled."""
    runner = _runner()
    try:
        return runner.run(main)
    finally:
        runner.run(_cancel_the_rest())


async def _cancel_the_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
