"""Processes of our own: how they are started, and that they end with us."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import Final

PROGRAM: Final = (sys.executable, "-c", "from allot.cli.main import run; run()")
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


def prepare_child() -> None:
    """Leave Ctrl-C to us, and end with us, however we end."""
    os.setpgid(0, 0)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGTERM)
