"""A cluster with one process per component: `allot up --separate`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from allot.cli.child_processes import (
    COMPONENT_STOP_SECONDS,
    PROGRAM,
    is_killed,
    is_started,
    prepare_child,
    stopped,
)
from allot.cli.components import READY
from allot.cli.data_directory import (
    CONTROLLER_MANAGER_KUBECONFIG,
    DRIVER_KUBECONFIG,
    KUBECONFIG,
    NODES_KUBECONFIG,
    PROCESSES_FILE,
    SCHEDULER_KUBECONFIG,
)
from allot.cli.errors import EXIT_FINDINGS, CommandError, DamageError
from allot.task_cancellation import cancel_and_wait

if TYPE_CHECKING:
    from pathlib import Path

    from allot.cli.cluster_options import ClusterOptions
    from allot.client.client import Client

SERVER_STOP_SECONDS: Final = 2.5
RESTART_SECONDS: Final = 1.0


class Command(NamedTuple):
    """A component and its arguments."""

    name: str
    arguments: tuple[str, ...]


def api_server_command(asked: ClusterOptions) -> Command:
    arguments = ("--storage", asked.storage, "--data-dir", str(asked.data_dir))
    own = ("--port", str(asked.port), *asked.audit.arguments())
    return Command("apiserver", (*arguments, *own, *_common(asked)))


def other_commands(asked: ClusterOptions) -> Iterator[Command]:
    """The commands of the components other than the API server."""
    alone = (*_common(asked), "--no-leader-elect", "--port", "0")
    if asked.has_scheduler:
        config = ("--config", str(asked.scheduler_config)) if asked.scheduler_config else ()
        yield Command("scheduler", (*_as(asked, SCHEDULER_KUBECONFIG), *alone, *config))
    if asked.controllers:
        connection = _as(asked, CONTROLLER_MANAGER_KUBECONFIG)
        own = ("--use-service-account-credentials", "--controllers", asked.controllers)
        yield Command("controller-manager", (*connection, *alone, *own))
    if asked.has_nodes:
        hardware = tuple(f"--hardware={reference}" for reference in asked.hardware)
        served = ("--all",) if asked.all_nodes else ()
        completes = (f"--complete-annotation={asked.complete_annotation}",)
        verbose = ("-v",) * asked.verbose
        connection = _as(asked, NODES_KUBECONFIG)
        driver = ("--driver-kubeconfig", str(asked.data_dir / DRIVER_KUBECONFIG))
        own = (*hardware, *served, *completes, *asked.drivers.arguments())
        yield Command("nodes", (*connection, *driver, *verbose, *own))


def _as(asked: ClusterOptions, kubeconfig: str) -> tuple[str, str]:
    return "--kubeconfig", str(asked.data_dir / kubeconfig)


def _common(asked: ClusterOptions) -> tuple[str, ...]:
    switches = ("--feature-gates", asked.feature_gates, "--rules", asked.rules.value)
    return (*switches, *(("-v",) * asked.verbose))


@asynccontextmanager
async def running_processes(
    asked: ClusterOptions, prepare: Callable[[Client], Awaitable[None]]
) -> AsyncIterator[tuple[str, Client]]:
    """All components, each restarted if it ends. `prepare` fills the API server before the others start.

    The API server stops last.
    """
    from allot.client.connection import connect

    async with AsyncExitStack() as stack:
        server = _Process(api_server_command(asked))
        stack.push_async_callback(server.stop, SERVER_STOP_SECONDS)
        await server.start()
        client = connect(asked.data_dir / KUBECONFIG, user_agent="allot-up")
        stack.push_async_callback(client.close)
        await prepare(client)
        processes = ProcessFile(asked.data_dir / PROCESSES_FILE)
        stack.callback(processes.remove)
        others = [_Process(command, processes) for command in other_commands(asked)]
        stack.push_async_callback(_stop_all, others)
        await asyncio.gather(*(process.start() for process in others))
        yield server.first_line.split()[3].rstrip(","), client


async def _stop_all(processes: list[_Process]) -> None:
    await asyncio.gather(*(process.stop(COMPONENT_STOP_SECONDS) for process in processes))


class ProcessFile:
    """Tells the API server which components are ready."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._processes: dict[str, int | None] = {}

    def set(self, name: str, pid: int | None) -> None:
        from allot.apiserver.http.component_health import write_processes

        self._processes[name] = pid
        write_processes(self._path, self._processes)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


class _Process:
    """A component that is restarted when it ends by itself."""

    def __init__(self, command: Command, processes: ProcessFile | None = None) -> None:
        self._command = command
        self._processes = processes
        self._keeping: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self.first_line = ""
        self._is_ready = asyncio.Event()

    async def start(self) -> None:
        """Returns when it is ready; `CommandError` if it ends before that."""
        self._keeping = asyncio.create_task(self._keep())
        name = f"allot {self._command.name}"
        if not await is_started(self._is_ready, self._keeping, name):
            code = self._process.returncode if self._process else None
            kind = DamageError if code == EXIT_FINDINGS else CommandError
            raise kind(f"{name} did not start")

    async def stop(self, seconds: float) -> None:
        await cancel_and_wait(self._keeping, ignore_errors=True)
        await stopped(self._process, seconds)

    async def _keep(self) -> None:
        while True:
            code = await self._run_once()
            if not (self._is_ready.is_set() or is_killed(code)):
                return
            click.echo(f"allot {self._command.name} ended with {code}; starting it again", err=True)
            await asyncio.sleep(RESTART_SECONDS)

    async def _run_once(self) -> int:
        name, arguments = self._command
        self._process = process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            name,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            preexec_fn=prepare_child,
        )
        assert process.stdout is not None
        async for line in process.stdout:
            text = line.decode(errors="replace").rstrip()
            self.first_line = self.first_line or text
            if text == READY:
                self._report_pid(process.pid)
                self._is_ready.set()
        self._report_pid(None)
        return await process.wait()

    def _report_pid(self, pid: int | None) -> None:
        if self._processes is not None:
            self._processes.set(self._command.name, pid)
