"""Samples the main thread of a Python process by its CPU time. Python imports it at start, from PYTHONPATH.

SIGUSR1 begins, SIGUSR2 ends and writes `$ALLOT_SAMPLES/PID.json`.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, Final

from phases import Call, component_of, phase_of  # type: ignore[import-not-found]

INTERVAL_SECONDS: Final = 0.002
TICKS: Final = os.sysconf("SC_CLK_TCK")
IDLE: Final = "idle"


def _call(frame: FrameType) -> Call:
    path = frame.f_code.co_filename
    for mark in ("/allot/", "/asyncio/", "/sampling/"):
        if mark in path:
            module = path.rpartition(mark)[2].removesuffix(".py")
            return Call(module if mark == "/allot/" else mark[1:] + module, frame.f_code.co_name)
    return Call(path.rpartition("/")[2].removesuffix(".py"), frame.f_code.co_name)


def _thread_seconds() -> dict[str, float]:
    """The CPU time of every thread of this process."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        found[task.name] = (int(fields[11]) + int(fields[12])) / TICKS
    return found


class Sampler:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._samples: Counter[tuple[str, str]] = Counter()
        self._before: dict[str, float] = {}

    def begin(self, *_: Any) -> None:
        self._samples.clear()
        self._before = _thread_seconds()
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_SECONDS, INTERVAL_SECONDS)

    def sample(self, _: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code.co_name == "select":
            # The signal woke this thread: another one used the time.
            self._samples[IDLE, IDLE] += 1
            return
        stack = []
        while frame is not None:
            stack.append(_call(frame))
            frame = frame.f_back
        self._samples[component_of(stack), phase_of(stack)] += 1

    def end(self, *_: Any) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        main = str(threading.main_thread().native_id)
        used = {
            name: seconds - self._before.get(name, 0.0)
            for name, seconds in _thread_seconds().items()
        }
        report = {
            "program": sys.argv,
            "main": used.pop(main),
            "threads": sum(used.values()),
            "samples": [[*where, count] for where, count in self._samples.items()],
        }
        path = self._directory / f"{os.getpid()}.json"
        path.with_suffix(".part").write_text(json.dumps(report))
        path.with_suffix(".part").rename(path)


def _after_collection(_phase: str, _info: Any) -> None:
    """A sample that falls into a collection is taken here, when it is over."""
    return


def _install() -> None:
    directory = os.environ.get("ALLOT_SAMPLES")
    if directory is None:
        return
    sampler = Sampler(Path(directory))
    signal.signal(signal.SIGUSR1, sampler.begin)
    signal.signal(signal.SIGUSR2, sampler.end)
    signal.signal(signal.SIGPROF, sampler.sample)
    gc.callbacks.append(_after_collection)


_install()
