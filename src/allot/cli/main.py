"""Entry point of the `allot` program.

The commands are in `program`, which is imported when the program runs: Ctrl-C is handled before that.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

from allot._lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from allot.cli.program import allot
else:
    __getattr__ = lazy_names(__name__, {"allot": "allot.cli.program"})

__all__ = ["allot", "run"]

INTERRUPTED = 130
GARBAGE_THRESHOLD = 100_000
"""New objects between two collections."""


def run() -> None:
    """Run the command line. A failure that is not a bug becomes one line and an exit code."""
    end_at_once_when_interrupted()
    # Modules are no garbage: looking for it while they are imported takes a tenth of the time.
    gc.set_threshold(GARBAGE_THRESHOLD)
    from allot.cli.program import run_program

    code = run_program()
    if (signals := sys.modules.get("allot.cli.signals")) is not None:  # not every command loads it
        signals.end_stopped_program(code)
    sys.exit(code)


def end_at_once_when_interrupted() -> None:
    """Ctrl-C ends the process with one line.

    Commands that have something to stop or to remove replace the handler while they do (`signals`). An exception
    could also arrive where it is reported and ignored, such as in a destructor.
    """
    process = os.getpid()

    def end(_number: int, _frame: FrameType | None) -> None:
        if os.getpid() == process:  # not in a child between fork and exec
            line = b"\ninterrupted\n" if os.isatty(2) else b"interrupted\n"
            os.write(2, line)
        os._exit(INTERRUPTED)

    signal.signal(signal.SIGINT, end)
