"""Asks a cluster every few milliseconds, and says how long it was left without an answer.

A process of its own, so that the load that a test makes does not disturb it. Beside the cluster it asks a control, the
least that answers HTTP, in a process of its own on the same machine:

    watchdog ──▶ /livez, an ordinary GET       the cluster's API server
             ──▶ /                             control_server.py

A machine that has other things to do makes all processes wait. Linux says how long a thread was ready to run and had no core
(`schedstat`), and how long a virtual machine's core was taken away by its host (`steal` in `/proc/stat`). The time that the
API server and the watchdog itself spent in the one way, or their cores in the other if that is longer, is taken off (`own`), so that what
is left is the API server's own doing. The watchdog runs before all others if it may, so that it hardly ever waits itself.

It reads its settings as one line of JSON, watches until its standard input ends, and prints what it saw as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import ssl
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

ASKING: Final = "asking"
"""Said when all targets have answered once: the connections are there before the attack begins."""
POLL_SECONDS: Final = 0.01
ANSWER_SECONDS: Final = 60.0
"""Then the request is sent again, on a new connection. The time goes on from when it was due."""
RECONNECT_SECONDS: Final = 0.02
SLOWEST_SHOWN: Final = 5
PROCESSOR: Final = 36
"""Among the fields of a thread's `stat` after its name."""
STEAL: Final = 7
"""Among the figures of a core in `/proc/stat`."""
GONE: Final = (OSError, ssl.SSLError, asyncio.IncompleteReadError, TimeoutError)


@dataclass(frozen=True)
class Settings:
    """What is watched."""

    host: str
    port: int
    ca_file: str
    token: str
    pid: int = 0
    """Of the API server; 0 if its waiting for a core is not known."""
    paths: tuple[str, ...] = ("/livez", "/api/v1/namespaces/default")


@dataclass
class Seen:
    """What came of asking one target. Times in seconds."""

    latencies: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    slowest: list[tuple[float, float]] = field(default_factory=list)
    """(own, when since the start), the longest first."""
    codes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, latency: float, waited: float, at: float) -> None:
        own = max(latency - waited, 0.0)
        self.latencies.append(latency)
        self.own.append(own)
        self.slowest = sorted([*self.slowest, (own, at)], reverse=True)[:SLOWEST_SHOWN]

    def summary(self) -> dict[str, Any]:
        return {
            "count": len(self.latencies),
            "median": _rank(self.latencies, 0.5),
            "p99": _rank(self.latencies, 0.99),
            "longest": max(self.latencies, default=0.0),
            "own_p99": _rank(self.own, 0.99),
            "own_longest": max(self.own, default=0.0),
            "slowest": [(round(own, 4), round(at, 2)) for own, at in self.slowest],
            "codes": dict(self.codes),
            "errors": dict(self.errors),
        }


def _rank(values: list[float], share: float) -> float:
    if not values:
        return 0.0
    if share == 0.5:
        return statistics.median(values)
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


class RunDelay:
    """How long threads have been ready to run without a core."""

    def __init__(self, *pids: int) -> None:
        self._files = [Path(f"/proc/{pid}/task/{pid}/schedstat") for pid in pids if pid]

    def seconds(self) -> float:
        total = 0
        for file in self._files:
            with contextlib.suppress(OSError, IndexError):  # another system, or it has ended
                total += int(file.read_text().split()[1])
        return total / 1e9

    def now(self) -> Waited:
        return Waited(self.seconds(), self._cores(), _stolen_seconds())

    def _cores(self) -> frozenset[int]:
        """Those that the threads run on, or ran on last."""
        found = set()
        for file in self._files:
            with contextlib.suppress(OSError, IndexError):
                fields = file.with_name("stat").read_text().rpartition(")")[2].split()
                found.add(int(fields[PROCESSOR]))
        return frozenset(found)


class Waited(NamedTuple):
    """What threads have waited for so far."""

    core: float
    """Seconds for a core."""
    cores: frozenset[int]
    stolen: Mapping[int, float]
    """Seconds for which the host had a core, by core."""

    def since(self, before: Waited) -> float:
        """Both may be the same time, so only the longer one counts."""
        stolen = (
            self.stolen[core] - before.stolen[core]
            for core in self.cores | before.cores
            if core in self.stolen and core in before.stolen
        )
        return max(self.core - before.core, max(stolen, default=0.0))


def _stolen_seconds() -> dict[int, float]:
    ticks = os.sysconf("SC_CLK_TCK")
    found = {}
    with contextlib.suppress(OSError, IndexError, ValueError):
        for line in Path("/proc/stat").read_text().splitlines():
            name, *figures = line.split()
            if name.startswith("cpu") and name != "cpu":
                found[int(name.removeprefix("cpu"))] = int(figures[STEAL]) / ticks
    return found


class Target:
    """One URL, asked on one connection after the other."""

    def __init__(
        self,
        host: str,
        port: int,
        path: str,
        delay: RunDelay,
        tls: ssl.SSLContext | None,
        token: str,
    ) -> None:
        self._host, self._port, self._tls, self._delay = host, port, tls, delay
        self._request = (
            f"GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n"
            "accept: application/json\r\n\r\n"
        ).encode()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.seen = Seen()

    async def poll(self, started: float, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            before = self._delay.now()
            due = time.perf_counter()
            await self._answered(stopping)
            now = time.perf_counter()
            self.seen.add(now - due, self._delay.now().since(before), due - started)
            await asyncio.sleep(max(due + POLL_SECONDS - now, 0.001))
        self._hang_up()

    async def _answered(self, stopping: asyncio.Event) -> None:
        """Returns with the answer, or when there is no time left to wait for one."""
        ending = asyncio.create_task(stopping.wait())
        try:
            while not stopping.is_set():
                asking = asyncio.create_task(self._ask())
                await asyncio.wait({asking, ending}, return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    asking.cancel()
                    await asyncio.gather(asking, return_exceptions=True)
                    return
                try:
                    self.seen.codes[await asking] += 1
                except GONE as error:
                    self.seen.errors[type(error).__name__] += 1
                    self._hang_up()
                    await asyncio.sleep(RECONNECT_SECONDS)
                else:
                    return
        finally:
            ending.cancel()

    async def _ask(self) -> str:
        async with asyncio.timeout(ANSWER_SECONDS):
            if self._streams is None:
                self._streams = await asyncio.open_connection(
                    self._host, self._port, ssl=self._tls, limit=2**20
                )
            reader, writer = self._streams
            writer.write(self._request)
            status, *lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
            headers = dict(line.split(b": ", 1) for line in lines if line)
            await reader.readexactly(int(headers.get(b"content-length", b"0")))
            if headers.get(b"connection") == b"close":
                self._hang_up()
            return status.split()[1].decode()

    def _hang_up(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


def come_first() -> None:
    """Run before everything else, as far as we may."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except (OSError, AttributeError):
        with contextlib.suppress(OSError):
            os.nice(-10)


async def watch(settings: Settings, control_port: int) -> dict[str, Any]:
    tls = ssl.create_default_context(cafile=settings.ca_file)
    ours, both = RunDelay(os.getpid()), RunDelay(os.getpid(), settings.pid)
    targets = {
        path: Target(settings.host, settings.port, path, both, tls, settings.token)
        for path in settings.paths
    }
    targets["control"] = Target("127.0.0.1", control_port, "/", ours, None, "")
    stopping = asyncio.Event()
    started = time.perf_counter()
    polling = [asyncio.create_task(each.poll(started, stopping)) for each in targets.values()]
    while not all(each.seen.own for each in targets.values()):
        await asyncio.sleep(POLL_SECONDS)
    sys.stdout.write(f"{ASKING}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    stopping.set()
    await asyncio.gather(*polling)
    seen = {name: target.seen.summary() for name, target in targets.items()}
    return {"seconds": time.perf_counter() - started, "targets": seen}


def main() -> None:
    fields = {each.name for each in dataclasses.fields(Settings)}
    read = json.loads(sys.stdin.readline())
    settings = Settings(**{name: value for name, value in read.items() if name in fields})
    program = [sys.executable, str(Path(__file__).with_name("control_server.py"))]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as control:
        assert control.stdout is not None
        port = int(control.stdout.readline())
        come_first()
        seen = asyncio.run(watch(settings, port))
        control.communicate(timeout=30)
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main()
