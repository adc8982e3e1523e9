"""What the machine takes for the waiting that a pod cannot avoid: a control beside latencies in milliseconds.

Two processes that do nothing else pass a message to and fro, as often as API server and scheduler do for one pod, and
append to a file twice, waiting for the disk. A host that is busy, or stalls, shows here as it does there.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

ROUND_TRIPS = 4
APPENDS = 2
RECORD = bytes(4096)
ASK = b"?"


class Control:
    """Milliseconds that the control took, each time it was asked."""

    def __init__(self, connection: socket.socket) -> None:
        self.times: list[float] = []
        self._connection = connection

    async def ask(self) -> None:
        loop = asyncio.get_running_loop()
        started = time.monotonic()
        await loop.sock_sendall(self._connection, ASK)
        await loop.sock_recv(self._connection, 1)
        self.times.append((time.monotonic() - started) * 1e3)

    async def ask_every(self, seconds: float) -> None:
        """Until it is cancelled."""
        while True:
            await self.ask()
            await asyncio.sleep(seconds)


@asynccontextmanager
async def running_control() -> AsyncIterator[Control]:
    """Its two processes, until the end of the block."""
    spawn = multiprocessing.get_context("spawn")
    ours, asked = socket.socketpair()
    first, second = socket.socketpair()
    processes = [
        spawn.Process(target=answer, args=(asked, first), daemon=True),
        spawn.Process(target=echo, args=(second,), daemon=True),
    ]
    for process in processes:
        process.start()
    for end in (asked, first, second):
        end.close()
    ours.setblocking(False)
    control = Control(ours)
    await control.ask()  # both have started
    control.times.clear()
    try:
        yield control
    finally:
        ours.close()
        for process in processes:
            process.join()


@asynccontextmanager
async def asked_every(control: Control, seconds: float) -> AsyncIterator[None]:
    """The control is asked again and again during the block."""
    asking = asyncio.create_task(control.ask_every(seconds))
    try:
        yield
    finally:
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking


def answer(asked: socket.socket, partner: socket.socket) -> None:
    with tempfile.TemporaryFile() as file:
        while asked.recv(1):
            for _ in range(ROUND_TRIPS):
                partner.sendall(ASK)
                partner.recv(1)
            for _ in range(APPENDS):
                os.write(file.fileno(), RECORD)
                os.fdatasync(file.fileno())
            asked.sendall(ASK)


def echo(partner: socket.socket) -> None:
    while partner.recv(1):
        partner.sendall(ASK)


def in_words(times: Sequence[float]) -> str:
    p99 = statistics.quantiles(times, n=100)[98]
    return f"median {statistics.median(times):7.1f}   p99 {p99:7.1f}   most {max(times):7.1f}"
