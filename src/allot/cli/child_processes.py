"""Child processes: starting them, stopping them, and ending them with their parent."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import Final

from allot.cli.core_placement import use_all_cores

log = logging.getLogger(__name__)

PROGRAM: Final = (sys.executable, "-c", "from allot.cli.main import run; run()")
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG

START_SECONDS: Final = 60.0
"""A component that is not ready by then is reported."""
COMPONENT_STOP_SECONDS: Final = 1.5
"""A component that takes longer is killed: it has no state that would be lost."""


async def is_started(is_ready: asyncio.Event, keeping: asyncio.Task[None], name: str) -> bool:
    """Whether a component is ready; False if `keeping` it has ended before.

    However long it takes: what it has to read may be large, and can be deleted while the API server answers.
    """
    waiting = asyncio.create_task(is_ready.wait())
    try:
        done, _ = await asyncio.wait(
            {waiting, keeping}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            log.warning("%s: not ready after %.0f s, waiting on", name, START_SECONDS)
            await asyncio.wait({waiting, keeping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    return is_ready.is_set()


def is_killed(code: int) -> bool:
    """Whether a signal ended the process, as when memory runs out; it did not end by itself."""
    return code < 0


async def stopped(process: asyncio.subprocess.Process | None, seconds: float) -> None:
    """Terminate a process; kill it if it still runs after so many seconds."""
    if process is None or process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def prepare_child() -> None:
    """In the child: leave Ctrl-C to the parent, end when the parent ends, and use all cores."""
    os.setpgid(0, 0)
    use_all_cores()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGTERM)
