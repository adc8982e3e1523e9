"""The components of `allot up` in a second process, linked to the API server in the first (decision 0013).

    allot up: API server ◀─ link ─▶ scheduler, controllers, nodes

The API server answers whatever the components do. If their process ends, it is restarted; decisions that were not
written are made again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import click

from allot.cli.child_processes import (
    COMPONENT_STOP_SECONDS,
    is_killed,
    is_started,
    prepare_child,
    stopped,
)
from allot.cli.cluster_options import ClusterOptions
from allot.cli.components import READY, component_runner, set_up_logging
from allot.cli.core_placement import use_all_cores, use_one_core
from allot.cli.errors import CommandError
from allot.cli.garbage_collection import long_lived_objects
from allot.cli.gate_options import gates_from_option
from allot.cli.signals import end_stopped_program, stopped_by_signals
from allot.task_cancellation import cancel_and_wait

if TYPE_CHECKING:
    from allot.apiserver.assembly import ApiServer
    from allot.apiserver.http.component_health import ComponentHealth
    from allot.apiserver.http.link_server import LinkServer
    from allot.client.link import RequestFrame, ResponseFrame
    from allot.components import ClusterParts, Components, NewClient
    from allot.exposition import Exposition

log = logging.getLogger(__name__)

PROGRAM: Final = (sys.executable, "-m", "allot.cli.linked_components")
ERROR: Final = "error: "
HEALTH: Final = "/readyz/"
RESTART_SECONDS: Final = 1.0


# --- in the process of the API server ---


class LinkedComponents:
    """The second process, restarted whenever it ends."""

    def __init__(self, asked: ClusterOptions) -> None:
        self._asked = asked
        self._server: asyncio.Future[ApiServer] = asyncio.get_running_loop().create_future()
        self._link: LinkServer | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._is_ready = asyncio.Event()
        self._error = ""
        self._is_stopping = False
        self._is_spawned = asyncio.Event()
        # Not all clusters of a machine have their API servers on the same core.
        use_one_core(os.getpid())
        self._keeping = asyncio.create_task(self._keep())

    async def spawned(self) -> None:
        """Returns when the process exists."""
        waiting = asyncio.create_task(self._is_spawned.wait())
        await asyncio.wait({waiting, self._keeping}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._keeping.done():
            self._keeping.result()  # raises what prevented it

    def connect(self, server: ApiServer) -> None:
        """Connect it to an API server. Each component has a user of its own."""
        self._server.set_result(server)

    async def ready(self) -> None:
        """Returns when all components are ready; `CommandError` if the process ends before that."""
        if not await is_started(self._is_ready, self._keeping, "the cluster's components"):
            raise CommandError(self._error or "the components of the cluster did not start")

    async def metrics(self, component: str, accept: str) -> Exposition:
        """The metrics of one component; empty while the process restarts."""
        from allot.apiserver.http.link_server import LinkLostError
        from allot.exposition import Exposition

        if self._link is None:
            return Exposition(b"", "text/plain")
        try:
            answer = await self._link.ask(f"/metrics/{component}", [(b"accept", accept.encode())])
        except LinkLostError:
            return Exposition(b"", "text/plain")
        return Exposition(answer.body, dict(answer.headers)[b"content-type"].decode())

    async def health(self, part: str) -> ComponentHealth:
        """Whether a part is ready; it is not while the process restarts."""
        from allot.apiserver.http.component_health import ComponentHealth
        from allot.apiserver.http.link_server import LinkLostError

        problem = "the components are restarting"
        if self._link is not None:
            with suppress(LinkLostError):
                problem = (await self._link.ask(f"{HEALTH}{part}", [])).body.decode()
        return ComponentHealth(not problem, problem or "ok")

    async def stop(self) -> None:
        self._is_stopping = True
        await stopped(self._process, COMPONENT_STOP_SECONDS)
        await cancel_and_wait(self._keeping, ignore_errors=True)
        use_all_cores()

    async def _keep(self) -> None:
        while True:
            code = await self._run_once()
            if self._is_stopping or not (self._is_ready.is_set() or is_killed(code)):
                return
            log.error("the cluster's components exited with %s; restarting them", code)
            await asyncio.sleep(RESTART_SECONDS)

    async def _run_once(self) -> int:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = process = await asyncio.create_subprocess_exec(
                *PROGRAM,
                str(theirs.fileno()),
                self._asked.to_json(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                preexec_fn=prepare_child,
            )
        self._is_spawned.set()
        linking = asyncio.create_task(self._serve(ours))
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                text = line.decode(errors="replace").rstrip()
                if text == READY:
                    self._is_ready.set()
                elif text.startswith(ERROR):
                    self._error = text.removeprefix(ERROR)
            return await process.wait()
        finally:
            await cancel_and_wait(linking, ignore_errors=True)
            if self._link is None:
                ours.close()
            else:
                link, self._link = self._link, None
                await link.close()

    async def _serve(self, connection: socket.socket) -> None:
        from allot.apiserver.http.link_server import LinkServer

        server = await asyncio.shield(self._server)
        link = LinkServer(server.app, server.store)
        await link.start(connection)
        self._link = link


@asynccontextmanager
async def spawned_components(asked: ClusterOptions) -> AsyncIterator[LinkedComponents]:
    """The second process, which loads its modules while the API server does, and stops at the end."""
    components = LinkedComponents(asked)
    try:
        await components.spawned()
        yield components
    finally:
        await components.stop()


# --- in the process of the components ---


def main() -> None:
    """Run scheduler, controllers and nodes. `allot up` starts this."""
    use_one_core(os.getppid() + 1)
    link, asked = int(sys.argv[1]), ClusterOptions.from_json(sys.argv[2])
    set_up_logging(asked.verbose)
    try:
        with component_runner() as runner:
            runner.run(_run(socket.socket(fileno=link), asked))
    except CommandError as error:
        click.echo(f"{ERROR}{error}")
        sys.exit(1)
    end_stopped_program()


async def _run(connection: socket.socket, asked: ClusterOptions) -> None:
    with long_lived_objects():  # takes a while, in which the API server starts
        import allot.components  # noqa: F401
        from allot.client.client import Client
        from allot.client.component_users import CONTROLLER_MANAGER
        from allot.client.errors import ClientError
        from allot.client.link import Link, LinkTransport

        wanted = wanted_parts(asked)
    link = await Link.over(connection)
    stopping = asyncio.Event()
    try:
        with stopped_by_signals(stopping.set, (signal.SIGTERM,)):
            # Answered as soon as the API server is there.
            await LinkTransport(link, CONTROLLER_MANAGER).request("GET", "/version")
            parts = made(
                asked, wanted, lambda user, agent: Client(LinkTransport(link, user, agent))
            )
            link.serve = _serving(parts)
            ending = [asyncio.create_task(each.wait()) for each in (stopping, link.is_lost)]
            try:
                await _started(parts, ending)
                await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await parts.stop()
    except ClientError as error:
        raise CommandError(str(error)) from error
    finally:
        link.close()


async def _started(parts: Components, ending: list[asyncio.Task[Any]]) -> None:
    """Returns when all components are ready, or when the process shall stop."""
    from allot.kubelet.registration import ForeignNodeError

    starting = asyncio.create_task(parts.start())
    with long_lived_objects():  # what informers list
        await asyncio.wait({starting, *ending}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        await cancel_and_wait(starting, ignore_errors=True)
        return
    try:
        await starting
    except ForeignNodeError as error:
        raise CommandError(str(error)) from error
    click.echo(READY)


def wanted_parts(asked: ClusterOptions) -> ClusterParts:
    """What the options select, with the files that they name; `CommandError` for unusable ones."""
    from allot.cli.nodes import load_all
    from allot.cli.scheduler_configuration import load_configuration
    from allot.components import ClusterParts
    from allot.kubelet.settings import KubeletSettings

    nodes = KubeletSettings(
        all_nodes=asked.all_nodes,
        complete_annotation=asked.complete_annotation,
        plugin_dir=asked.drivers.plugin_dir,
        unregistered_drivers=asked.drivers.unregistered_drivers,
        slice_wipe_seconds=asked.drivers.driver_grace_seconds,
    )
    return ClusterParts(
        load_configuration(asked.scheduler_config, asked.rules) if asked.has_scheduler else None,
        asked.controllers.split(",") if asked.controllers else (),
        nodes if asked.has_nodes else None,
        load_all(asked.hardware),
    )


def made(asked: ClusterOptions, wanted: ClusterParts, new_client: NewClient) -> Components:
    """The components; `CommandError` for unusable options. The data directory has the server's certificates."""
    from allot.components import Components
    from allot.controllers.registry import UnknownControllerError
    from allot.scheduler.configuration import ConfigurationError

    gates = gates_from_option(asked.feature_gates, asked.rules, warns=False)
    certificates = (asked.data_dir / "pki" / "ca.crt").read_text(encoding="ascii")
    try:
        return Components(new_client, wanted, gates, root_certificates=certificates)
    except (ConfigurationError, UnknownControllerError) as error:
        raise CommandError(str(error)) from error


def _serving(parts: Components) -> Callable[[RequestFrame], Awaitable[ResponseFrame]]:
    from allot.client.link import ResponseFrame
    from allot.exposition_sharing import shared_exposition

    pages = {name: shared_exposition(registry) for name, registry in parts.registries.items()}

    async def serve(frame: RequestFrame) -> ResponseFrame:
        if frame.path.startswith(HEALTH):
            problem = parts.problem_of(frame.path.removeprefix(HEALTH))
            return ResponseFrame(
                200, [(b"content-type", b"text/plain")], problem.encode(), frame.id
            )
        page = pages.get(frame.path.removeprefix("/metrics/"))
        if page is None:
            return ResponseFrame(404, [(b"content-type", b"text/plain")], b"", frame.id)
        accept = dict(frame.headers).get(b"accept", b"").decode()
        shown = await page.page(accept)
        headers = [(b"content-type", shown.content_type.encode())]
        return ResponseFrame(200, headers, shown.body, frame.id)

    return serve


if __name__ == "__main__":
    main()
