"""`allot up`: a whole cluster on this machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allot.cli.audit_options import AuditArguments, audit_options
from allot.cli.cluster_options import ClusterOptions
from allot.cli.components import (
    component_runner,
    set_up_logging,
)
from allot.cli.data_directory import KUBECONFIG, data_dir_option, occupied
from allot.cli.errors import EXIT_OK, CommandError, storage_error
from allot.cli.gate_options import gate_options, gates_from_option
from allot.cli.linked_components import LinkedComponents
from allot.cli.scheduler import load_configuration
from allot.cli.signals import stopped_by_signals
from allot.rules import RuleSet

if TYPE_CHECKING:
    from allot.client.client import Client


@click.command()
@data_dir_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6443,
    show_default=True,
    help="The API server's port; 0 takes a free one.",
)
@click.option(
    "--storage",
    default="sqlite",
    metavar="sqlite:PATH|etcd:URL[,URL…]|memory",
    help="Where objects are kept. Default: sqlite, in the data directory.",
)
@click.option(
    "--hardware",
    multiple=True,
    metavar="FILE[=N]",
    help="Simulated nodes with their devices: a file or a profile (`allot nodes --profiles`), N nodes.",
)
@click.option(
    "-f",
    "--filename",
    "manifests",
    multiple=True,
    metavar="FILE|DIR",
    help="Apply these manifests when the cluster is ready.",
)
@click.option(
    "--scheduler-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A KubeSchedulerConfiguration file.",
)
@gate_options("as the scheduler's configuration says, or seeds")
@click.option("--no-scheduler", is_flag=True, help="Leave scheduling to another scheduler.")
@click.option("--no-controllers", is_flag=True, help="Run no controllers.")
@click.option(
    "--controllers",
    default="*",
    show_default=True,
    metavar="*,NAME,-NAME",
    help="Which controllers run: * the usual ones, NAME this one, -NAME not this one.",
)
@click.option("--no-nodes", is_flag=True, help="Simulate no nodes.")
@click.option(
    "--all-nodes",
    is_flag=True,
    help="Simulate every node, not only those labelled allot.dev/simulated=true.",
)
@click.option(
    "--complete-annotation",
    default="",
    metavar="NAME",
    help='Pods with this annotation and the value "true" succeed as soon as they start.',
)
@audit_options
@click.option("--separate", is_flag=True, help="Run every component in a separate process.")
@click.option("-v", "--verbose", count=True, help="Log more (twice: debug).")
def up(
    data_dir: Path,
    port: int,
    storage: str,
    hardware: tuple[str, ...],
    manifests: tuple[str, ...],
    scheduler_config: Path | None,
    feature_gates: str,
    rules: RuleSet | None,
    no_scheduler: bool,
    no_controllers: bool,
    controllers: str,
    no_nodes: bool,
    all_nodes: bool,
    complete_annotation: str,
    audit_policy_file: str | None,
    audit_log_path: str | None,
    audit_log_maxage: int,
    audit_log_maxbackup: int,
    audit_log_maxsize: int,
    separate: bool,
    verbose: int,
) -> int:
    """Start a cluster: API server, scheduler, controllers and simulated nodes.

    kubectl and any other client can use it; the command prints how. Ctrl-C stops it, the state stays.
    """
    started = time.monotonic()
    set_up_logging(verbose)
    asked = ClusterOptions(
        data_dir=data_dir,
        port=port,
        storage=storage,
        hardware=() if no_nodes else hardware,
        scheduler_config=scheduler_config,
        feature_gates=feature_gates,
        rules=load_configuration(scheduler_config, rules).rules or RuleSet.SEEDS,
        controllers="" if no_controllers else controllers,
        has_scheduler=not no_scheduler,
        has_nodes=not no_nodes,
        all_nodes=all_nodes,
        complete_annotation=complete_annotation,
        verbose=verbose,
        audit=AuditArguments(
            audit_policy_file,
            audit_log_path,
            audit_log_maxage,
            audit_log_maxbackup,
            audit_log_maxsize,
        ),
    )
    asked.audit.options()  # says what is missing
    if hardware and no_nodes:
        raise CommandError("--hardware needs simulated nodes: leave out --no-nodes")
    with occupied(data_dir), component_runner() as runner:
        runner.run(_run(asked, manifests, separate, started))
    return EXIT_OK


async def _run(
    asked: ClusterOptions, manifests: tuple[str, ...], separate: bool, started: float
) -> None:
    stopped = asyncio.Event()
    with stopped_by_signals(stopped.set):
        working = asyncio.create_task(_work(asked, manifests, separate, started))
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not working.done():
            click.echo("stopping ...", err=True)
            working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _work(
    asked: ClusterOptions, manifests: tuple[str, ...], separate: bool, started: float
) -> None:
    """Run the cluster until cancelled."""
    from allot.cli.apply import apply_manifests
    from allot.cli.cluster_processes import running_processes

    running = running_processes(asked) if separate else _running_pair(asked)
    async with running as (url, client):
        if manifests:
            await apply_manifests(client, manifests)
        click.echo(await _greeting(asked, url, client, time.monotonic() - started))
        await asyncio.Event().wait()


@asynccontextmanager
async def _running_pair(asked: ClusterOptions) -> AsyncIterator[tuple[str, Client]]:
    """The API server in this process, all other components in a second one."""
    from allot.apiserver.audit.policy import AuditPolicyError
    from allot.apiserver.auth.authentication import TokenFileError
    from allot.apiserver.auth.credentials import CredentialError
    from allot.apiserver.running import AddressError, ServerOptions, running_server
    from allot.client.client import Client
    from allot.client.in_process import InProcessTransport
    from allot.storage.interface import StorageError

    gates = gates_from_option(asked.feature_gates, asked.rules)
    options = ServerOptions(
        asked.data_dir, gates, asked.storage, port=asked.port, audit=asked.audit.options()
    )
    components = LinkedComponents(asked)
    try:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(components.stop)
            running = await stack.enter_async_context(running_server(options))
            stack.push_async_callback(components.stop)  # before the server does
            token = running.credentials.admin_token
            components.connect(running.server.app)
            for name in ("scheduler", "controllers", "nodes"):
                running.server.metrics.others[name] = partial(components.metrics, name)
            await components.ready()
            client = Client(InProcessTransport(running.server.app, token, "allot-up"))
            stack.push_async_callback(client.close)
            yield running.url, client
    except StorageError as error:
        raise storage_error(error) from error
    except (AddressError, AuditPolicyError, CredentialError, TokenFileError) as error:
        raise CommandError(str(error)) from error


async def _greeting(asked: ClusterOptions, url: str, client: Client, seconds: float) -> str:
    """The cluster's size, and what to type next."""
    from allot.client.resources import NODES, RESOURCE_SLICES

    nodes = len((await client.list(NODES)).items)
    slices = (await client.list(RESOURCE_SLICES)).items
    devices = sum(len(found.spec.devices or ()) for found in slices)
    kubeconfig = asked.data_dir / KUBECONFIG
    return f"""\
allot is ready after {seconds:.1f} s: {url}, {nodes} nodes, {devices} devices
Type next, in another terminal:

  export KUBECONFIG={kubeconfig.absolute()}
  kubectl get nodes,resourceslices,deviceclasses
  allot status
  allot demo

Ctrl-C stops it; the state stays in {asked.data_dir}."""
