"""Runs the cluster of `allot up`: starts its processes, fills it, says where it is, and waits until it is stopped.

The API server runs in this process, all other components in a second one (`linked_components`), or each component in
a process of its own (`cluster_processes`).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from allot.cli.apply import StartObjects, apply_manifests, restore_objects
from allot.cli.cluster_options import ClusterOptions
from allot.cli.cluster_waiting import wait_until_settled
from allot.cli.components import component_runner, set_up_logging
from allot.cli.dashboard_process import DashboardProcess
from allot.cli.data_directory import occupied
from allot.cli.detached import Announcer
from allot.cli.echo import echo_text
from allot.cli.errors import CommandError, address_error, storage_error
from allot.cli.garbage_collection import long_lived_objects
from allot.cli.gate_options import gates_from_option
from allot.cli.greeting import Greeting, read_facts, starting_line
from allot.cli.last_start import LastStart, write_last_start
from allot.cli.linked_components import LinkedComponents, spawned_components
from allot.cli.signals import stopped_by_signals

if TYPE_CHECKING:
    from allot.apiserver.running import RunningServer
    from allot.cli.cluster_exporter import ClusterExporter
    from allot.cli.manifests import Manifest
    from allot.client.client import Client
    from allot.exposition import Exposition


class DashboardRequest(NamedTuple):
    """Whether a dashboard is served, and where; without a port, on any."""

    port: int | None = None
    is_wanted: bool = True


class UpRequest(NamedTuple):
    """What `allot up` was asked for."""

    cluster: ClusterOptions
    objects: StartObjects
    separate: bool
    merge_kubeconfig: bool
    detach: bool
    wait: bool
    started: float
    dashboard: DashboardRequest = DashboardRequest()


def run_cluster(request: UpRequest, announcer: Announcer) -> None:
    """Run the cluster until it is stopped."""
    set_up_logging(request.cluster.verbose)
    with occupied(request.cluster.data_dir), component_runner() as runner:
        runner.run(_run(request, announcer))


async def _run(request: UpRequest, announcer: Announcer) -> None:
    stopped = asyncio.Event()
    with stopped_by_signals(stopped.set):
        working = asyncio.create_task(_work(request, announcer))
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not working.done():
            # A terminal shows ^C in the line of the cursor.
            click.echo("\nstopping ..." if sys.stderr.isatty() else "stopping ...", err=True)
            working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _work(request: UpRequest, announcer: Announcer) -> None:
    """Run the cluster until cancelled."""
    from allot.cli.cluster_processes import running_processes

    asked = request.cluster
    announcer.progress(starting_line(asked))
    prepare = partial(_restore, request.objects.dumped, announcer)
    run = running_processes if request.separate else partial(_running_pair, announcer)
    async with run(asked, prepare) as (url, client), AsyncExitStack() as stack:
        if request.objects.written:
            count = await apply_manifests(client, request.objects.written)
            announcer.progress(f"  {count} objects applied")
        if asked.has_nodes:
            write_last_start(asked.data_dir, LastStart(asked.hardware, asked.storage))
        if request.merge_kubeconfig:
            from allot.cli.merged_kubeconfig import merge_kubeconfig

            announcer.progress(f"  {merge_kubeconfig(asked.data_dir)}")
        problem = await wait_until_settled(client) if request.wait else ""
        facts = await read_facts(client)
        page = _dashboard(request, stack)
        seconds = time.monotonic() - request.started
        greeting = Greeting(
            asked, url, facts, seconds, request.detach, request.merge_kubeconfig, page
        )
        announcer.ready(greeting.text(), problem)
        await asyncio.Event().wait()


def _dashboard(request: UpRequest, stack: AsyncExitStack) -> str:
    """Listen for viewers of the dashboard; its address, or an empty string without one."""
    port, is_wanted = request.dashboard
    if not is_wanted:
        return ""
    asked = request.cluster
    page = DashboardProcess(asked.data_dir, port, asked.verbose)
    stack.push_async_callback(page.stop)
    return page.url


async def _restore(dumped: Sequence[Manifest], announcer: Announcer, client: Client) -> None:
    """Fill the API server before the other components run."""
    if not dumped:
        return
    done = await restore_objects(client, dumped)
    existing = f", {done.existing} exist already" if done.existing else ""
    announcer.progress(f"  {done.created} objects restored{existing}")
    if done.unknown:
        kinds = ", ".join(done.unknown)
        echo_text(f"left out, because allot does not serve them: {kinds}", err=True)


async def _devices_page(client: Client, made: list[ClusterExporter], accept: str) -> Exposition:
    """The metrics of `allot exporter`; what computes them is loaded when they are first asked for, beside the event loop."""
    if not made:
        made.append(await asyncio.to_thread(_new_exporter, client))
    return await made[0].page(accept)


def _new_exporter(client: Client) -> ClusterExporter:
    from allot.cli.cluster_exporter import PAUSES, ClusterExporter, ListedCluster

    return ClusterExporter(ListedCluster(client), pauses=PAUSES)


@asynccontextmanager
async def _running_pair(
    announcer: Announcer, asked: ClusterOptions, prepare: Callable[[Client], Awaitable[None]]
) -> AsyncIterator[tuple[str, Client]]:
    """The API server in this process, all other components in a second one, which starts after `prepare`."""
    gates = gates_from_option(asked.feature_gates, asked.rules)
    async with spawned_components(asked) as components:
        with long_lived_objects():  # now, because the other process does so at the same time
            from allot.apiserver.audit.policy import AuditPolicyError
            from allot.apiserver.auth.authentication import TokenFileError
            from allot.apiserver.auth.credentials import CredentialError
            from allot.apiserver.running import AddressError, ServerOptions, running_server
            from allot.storage.interface import StorageError

        options = ServerOptions(
            asked.data_dir,
            gates,
            asked.storage,
            port=asked.port,
            audit=asked.audit.options(),
            shows_pending_writes=True,
        )
        try:
            async with (
                running_server(options) as running,
                _linked(running, components, announcer, prepare) as client,
            ):
                yield running.url, client
        except StorageError as error:
            raise storage_error(error) from error
        except AddressError as error:
            raise address_error(error) from error
        except (AuditPolicyError, CredentialError, TokenFileError) as error:
            raise CommandError(str(error)) from error


@asynccontextmanager
async def _linked(
    running: RunningServer,
    components: LinkedComponents,
    announcer: Announcer,
    prepare: Callable[[Client], Awaitable[None]],
) -> AsyncIterator[Client]:
    """A client of the API server, to which the components are linked. They can write until they have stopped."""
    from allot.apiserver.http.component_health import PARTS
    from allot.client.client import Client
    from allot.client.in_process import InProcessTransport

    announcer.progress(f"  API server: {running.url}")
    token = running.credentials.admin_token
    client = Client(InProcessTransport(running.server.app, token, "allot-up"))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(partial(_stop_together, components, running))
        stack.push_async_callback(client.close)
        await prepare(client)
        components.connect(running.server)
        for name in ("scheduler", "controllers", "nodes"):
            running.server.metrics.others[name] = partial(components.metrics, name)
        for component, part in PARTS.items():
            check = partial(components.health, part)
            running.server.component_checks.register(component, check)
        running.server.metrics.others["devices"] = partial(_devices_page, client, [])
        await components.ready()
        yield client


async def _stop_together(components: LinkedComponents, running: RunningServer) -> None:
    """Stop the components, while the requests of other clients end."""
    stopping = asyncio.create_task(components.stop())
    await asyncio.sleep(
        0
    )  # the components are told first: they do not ask again for watches that end
    running.stop()
    await stopping
