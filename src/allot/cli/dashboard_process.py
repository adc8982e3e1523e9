"""The dashboard of `allot up`: a process of its own, started when a browser connects for the first time.

    allot up: listens ── first connection ──▶ dashboard process: takes the socket over, reads the API server

Until then it costs one socket. If the process ends, the next connection starts it again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import sys
from pathlib import Path
from typing import Final

from allot.cli.child_processes import COMPONENT_STOP_SECONDS, prepare_child, stopped
from allot.cli.components import component_runner, set_up_logging
from allot.cli.dashboard_address import listening_socket, url_of
from allot.cli.data_directory import KUBECONFIG
from allot.cli.signals import end_stopped_program, stopped_by_signals
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

PROGRAM: Final = (sys.executable, "-m", "allot.cli.dashboard_process")
RESTART_SECONDS: Final = 1.0
ADDRESS: Final = "127.0.0.1"


# --- in the process of `allot up` ---


class DashboardProcess:
    """The socket of the dashboard, and its process as soon as there is one."""

    def __init__(self, data_dir: Path, port: int | None, verbose: int) -> None:
        """`CommandError` if the port is in use."""
        self._data_dir = data_dir
        self._verbose = verbose
        self._token = secrets.token_urlsafe(24)
        self._socket = listening_socket(ADDRESS, port)
        self._socket.setblocking(False)
        self._process: asyncio.subprocess.Process | None = None
        self._keeping = asyncio.create_task(self._keep(), name="dashboard process")

    @property
    def url(self) -> str:
        """The address with the token."""
        return f"{url_of(ADDRESS, self._socket.getsockname()[1])}/?token={self._token}"

    async def stop(self) -> None:
        await cancel_and_wait(self._keeping, ignore_errors=True)
        await stopped(self._process, COMPONENT_STOP_SECONDS)
        self._socket.close()

    async def _keep(self) -> None:
        while True:
            await self._first_connection()
            code = await self._run_once()
            log.error("the dashboard exited with %s; the next connection starts it again", code)
            await asyncio.sleep(RESTART_SECONDS)

    async def _first_connection(self) -> None:
        """Returns when a connection waits to be accepted."""
        connected = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._socket.fileno(), connected.set)
        try:
            await connected.wait()
        finally:
            loop.remove_reader(self._socket.fileno())

    async def _run_once(self) -> int:
        listening = self._socket.fileno()
        self._process = process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            pass_fds=[listening],
            preexec_fn=prepare_child,
        )
        # Not in the arguments: other users of the machine see those.
        settings = {
            "socket": listening,
            "token": self._token,
            "kubeconfig": str(self._data_dir / KUBECONFIG),
            "verbose": self._verbose,
        }
        await process.communicate(json.dumps(settings).encode())
        return await process.wait()


# --- in the process of the dashboard ---


def main() -> None:
    """Serve the dashboard. `allot up` starts this."""
    settings = json.loads(sys.stdin.read())
    set_up_logging(settings["verbose"])
    with component_runner() as runner, socket.socket(fileno=settings["socket"]) as listening:
        runner.run(_serve(listening, settings["token"], Path(settings["kubeconfig"])))
    end_stopped_program()


async def _serve(listening: socket.socket, token: str, kubeconfig: Path) -> None:
    from allot.cli.dashboard import source_of
    from allot.cli.question_options import ClusterArguments
    from allot.dashboard.access import Access
    from allot.dashboard.dashboard import Dashboard
    from allot.dashboard.server import DashboardServer

    source = await source_of(ClusterArguments(kubeconfig=kubeconfig))
    access = Access(ADDRESS, listening.getsockname()[1], token)
    server = DashboardServer(Dashboard(source), access)
    stopping = asyncio.Event()
    with stopped_by_signals(stopping.set):
        try:
            await server.start(listening)
            await stopping.wait()
        finally:
            await server.stop()


if __name__ == "__main__":
    main()
