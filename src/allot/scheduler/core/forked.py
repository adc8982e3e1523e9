"""Runs work in a forked child process with a time limit.

The child sees a copy of the current state (copy on write). It runs with low priority and is killed when its time is
over.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

NICENESS: Final = 10
REAP_POLL_SECONDS: Final = 0.005
PIPE_BYTES: Final = 1 << 16
STDERR: Final = 2
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG

can_fork: Final = hasattr(os, "fork") and sys.platform != "emscripten"


class ChildFailedError(Exception):
    """The child ended without a result: a timeout, lack of memory, or an error."""


async def in_child(work: Callable[[], bytes], seconds: float) -> bytes:
    """What `work` returns in a child process; `ChildFailedError` if it does not within `seconds`."""
    read_end, write_end = os.pipe()
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns that threads do not survive a fork. The child uses none.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _run_child(work, write_end)
        os.close(write_end)
        try:
            async with asyncio.timeout(seconds):
                answer = await _read_all(read_end)
        except TimeoutError:
            raise ChildFailedError(f"it was ended after {seconds:.0f} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            ending = await asyncio.shield(_reaped(pid))
    finally:
        os.close(read_end)
    if not answer:
        raise ChildFailedError(f"it ended without an answer ({ending})")
    return answer


async def _read_all(read_end: int) -> bytes:
    os.set_blocking(read_end, False)
    loop = asyncio.get_running_loop()
    parts: list[bytes] = []
    readable = asyncio.Event()
    loop.add_reader(read_end, readable.set)
    try:
        while True:
            await readable.wait()
            readable.clear()
            try:
                part = os.read(read_end, PIPE_BYTES)
            except BlockingIOError:
                continue
            if not part:
                return b"".join(parts)
            parts.append(part)
            readable.set()
            await asyncio.sleep(0)
    finally:
        loop.remove_reader(read_end)


async def _reaped(pid: int) -> str:
    """How the child ended, after it was reaped."""
    try:
        while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
            await asyncio.sleep(REAP_POLL_SECONDS)
    except ChildProcessError:
        return "reaped elsewhere"
    code = os.waitstatus_to_exitcode(ended[1])
    return f"exit code {code}" if code >= 0 else signal.strsignal(-code) or f"signal {-code}"


def _run_child(work: Callable[[], bytes], write_end: int) -> NoReturn:
    code = 1
    try:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        # Connections and files of the parent stay open as long as one process has them.
        os.closerange(3, write_end)
        os.closerange(write_end + 1, os.sysconf("SC_OPEN_MAX"))
        with suppress(OSError):
            os.nice(NICENESS)
        gc.disable()  # it would copy the pages of all objects it visits
        answer = memoryview(work())
        while answer:
            answer = answer[os.write(write_end, answer) :]
        code = 0
    except BaseException:  # noqa: BLE001 - the child ends here, whatever it was
        os.write(STDERR, traceback.format_exc().encode())
    finally:
        os._exit(code)
