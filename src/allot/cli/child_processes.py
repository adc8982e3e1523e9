"""Child processes: starting them, stopping them, and ending them with their parent."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import Final

PROGRAM: Final = (sys.executable, "-c", "from allot.cli.main import run; run()")
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


COMPONENT_STOP_SECONDS: Final = 1.5
"""A component that takes longer is killed: it has no state that would be lost."""


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
    """In the child: leave Ctrl-C to the parent, and end when the parent ends."""
    os.setpgid(0, 0)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGTERM)
