"""Components run on uvloop if it is installed (the extra `speed`), else on asyncio's event loop, and behave the same."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, sys
if sys.argv[1] == "asyncio":
    sys.modules["uvloop"] = None  # importing it fails as if it were not installed
from allot.cli.components import component_runner
from allot.cli.signals import stopped_by_signals

async def run():
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "print('from the child')", stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await child.communicate()
    stopping = asyncio.Event()
    with stopped_by_signals(stopping.set):
        loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
        print(loop, child.returncode, printed.decode().strip(), flush=True)
        await stopping.wait()
    print("stopped", flush=True)

with component_runner() as runner:
    runner.run(run())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_children_and_signals(loop: str, number: signal.Signals) -> None:
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, loop], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{loop} 0 from the child\n"
        process.send_signal(number)
        rest, _ = process.communicate(timeout=60)
    assert (rest, process.returncode) == ("stopped\n", 0)


ENDING = """
import asyncio, signal, sys
from allot.cli.components import component_runner
from allot.cli.signals import end_stopped_program, stopped_by_signals

class Large:
    def __del__(self):
        print("freed", flush=True)

kept = [Large()]

async def run():
    stopping = asyncio.Event()
    with stopped_by_signals(stopping.set):
        if sys.argv[1] == "stopped":
            signal.raise_signal(signal.SIGTERM)
            await stopping.wait()

with component_runner() as runner:
    runner.run(run())
sys.stdout.write("closed\\n")  # and not flushed
end_stopped_program(3)
"""


@pytest.mark.parametrize(
    ("how", "printed"), [("stopped", "closed\n"), ("by-itself", "closed\nfreed\n")]
)
def test_a_stopped_program_leaves_its_memory_to_the_kernel(how: str, printed: str) -> None:
    """To free millions of objects one by one takes seconds."""
    ended = subprocess.run(
        [sys.executable, "-c", ENDING, how], capture_output=True, text=True, timeout=60, check=False
    )

    assert (ended.stdout, ended.returncode) == (printed, 3 if how == "stopped" else 0)
