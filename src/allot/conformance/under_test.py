"""The driver under test: a program that the suite starts, kills and stops, or one that runs already."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from allot.conformance.process_groups import GroupWatcher

STOP_SECONDS: Final = 40.0
"""How long a driver may take to end: longer than the grace period of pods."""


class DriverUnderTest(Protocol):
    """A driver that can be started and ended, perhaps."""

    @property
    def can_restart(self) -> bool: ...

    @property
    def can_run_twice(self) -> bool:
        """Whether two instances can run, as in a rolling update."""
        ...

    async def start(self, instance: str) -> None: ...

    async def kill(self, instance: str) -> None:
        """End it without warning. Its sockets stay."""
        ...

    async def stop(self, instance: str) -> str:
        """Ask it to end: what is wrong with how it did; empty if nothing is."""
        ...

    def problem(self, instance: str) -> str:
        """Why it does not run, if it should. Empty if it does."""
        ...


class RunningDriver:
    """A driver that others start and end."""

    can_restart = False
    can_run_twice = False

    async def start(self, instance: str) -> None: ...

    async def kill(self, instance: str) -> None:
        raise AssertionError("checks that kill the driver need one that can be restarted")

    async def stop(self, instance: str) -> str:
        return ""

    def problem(self, instance: str) -> str:
        return ""


def filled_command(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The command with `{kubeconfig}` and the other placeholders replaced; other braces stay."""
    known = re.compile("|".join(rf"\{{{name}\}}" for name in values))
    return [known.sub(lambda found: values[found[0][1:-1]], word) for word in command]


class DriverProcess:
    """A driver as a program. Its output goes to a log file. It ends with this process, also if that is killed."""

    can_restart = True

    def __init__(self, command: Sequence[str], values: Mapping[str, str], log: Path) -> None:
        """`values` are those of the placeholders, except {instance}."""
        self._command = command
        self._values = values
        self._log = log
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._watchers: dict[str, GroupWatcher] = {}

    @property
    def can_run_twice(self) -> bool:
        return any("{instance}" in word for word in self._command)

    async def start(self, instance: str) -> None:
        if instance in self._processes:
            self._forget(instance)  # it ended by itself
        environment = {
            **os.environ,
            "NODE_NAME": self._values["node"],
            "KUBECONFIG": self._values["kubeconfig"],
        }
        command = filled_command(self._command, {**self._values, "instance": instance})
        with self._log.open("ab") as output:
            process = subprocess.Popen(  # noqa: S603 - what the user asked for
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
        self._processes[instance] = process
        self._watchers[instance] = GroupWatcher(process.pid)

    async def kill(self, instance: str) -> None:
        process = self._processes.get(instance)
        if process is None:
            return
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.to_thread(process.wait, STOP_SECONDS)
        self._forget(instance)

    async def stop(self, instance: str) -> str:
        process = self._processes.get(instance)
        if process is None:
            return ""
        process.terminate()
        try:
            code = await asyncio.to_thread(process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            await self.kill(instance)
            return f"it still ran {STOP_SECONDS:.0f} s after SIGTERM"
        self._forget(instance)
        if code not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            return f"it ended with exit code {code} after SIGTERM"
        return ""

    def _forget(self, instance: str) -> None:
        """After it ended: end what it started and left."""
        with suppress(ProcessLookupError):
            os.killpg(self._processes.pop(instance).pid, signal.SIGKILL)
        self._watchers.pop(instance).release()

    def problem(self, instance: str) -> str:
        process = self._processes.get(instance)
        if process is None or process.poll() is None:
            return ""
        return f"the driver ended with exit code {process.returncode}: {self._last_lines()}"

    def _last_lines(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-3:]
        return " | ".join(lines) or "no output"
