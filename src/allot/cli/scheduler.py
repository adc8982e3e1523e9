"""`allot scheduler`: the scheduler on its own, against any Kubernetes API server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import yaml

from allot.cli.apiserver import loop_factory, set_up_logging
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.lint import gates_from_option
from allot.features import FeatureGates

if TYPE_CHECKING:
    from allot.scheduler.assembly import SchedulerProcess


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="How to reach the API server. Default: as kubectl, or the pod's service account.",
)
@click.option("--context", help="The context in the kubeconfig.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A KubeSchedulerConfiguration file.",
)
@click.option(
    "--feature-gates", default="", metavar="A=true,B=false", help="Override feature gates."
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=None,
    help="Of several replicas, let one schedule. Default: as the configuration says.",
)
@click.option(
    "--bind-address", default="127.0.0.1", show_default=True, help="Where to serve the pages."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=10259,
    show_default=True,
    help="For /healthz, /readyz, /metrics and /debug/explain/NAMESPACE/POD; 0 serves none.",
)
@click.option(
    "--debug-token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Whoever sends the token in this file may see /debug; without it nobody may.",
)
@click.option("-v", "--verbose", count=True, help="Say more (twice: much more).")
def scheduler(
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
    feature_gates: str,
    leader_elect: bool | None,
    bind_address: str,
    port: int,
    debug_token_file: Path | None,
    verbose: int,
) -> int:
    """Schedule pods, and give them their devices.

    Works with `allot apiserver` and with Kubernetes. Ctrl-C stops it; what it has decided but not written
    is decided again by whoever comes next.
    """
    set_up_logging(verbose)
    pages = PageOptions(bind_address, port, _token(debug_token_file))
    gates = gates_from_option(feature_gates)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_run(kubeconfig, context, config, gates, leader_elect, pages))
    return EXIT_OK


class PageOptions(NamedTuple):
    """Where the scheduler's own pages are served, and who may see all of them."""

    bind_address: str
    port: int
    debug_token: str


def _token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {error}") from error


async def _run(
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
    gates: FeatureGates,
    leader_elect: bool | None,
    pages: PageOptions,
) -> None:
    from allot.api.identities import ObjectKey
    from allot.client.connecting import connect
    from allot.client.errors import ClientError
    from allot.client.leader_election import ElectionTimes, LeaderElector
    from allot.client.rate_limits import RequestLimit
    from allot.scheduler.assembly import SchedulerProcess
    from allot.scheduler.configuration import (
        ConfigurationError,
        SchedulerConfiguration,
        read_configuration,
    )

    try:
        configuration = (
            read_configuration(_document(config)) if config else SchedulerConfiguration()
        )
        source = kubeconfig or (
            Path(configuration.kubeconfig) if configuration.kubeconfig else None
        )
        client = connect(source, context, limit=RequestLimit(), user_agent="allot-scheduler")
        process = SchedulerProcess(client, configuration, gates)
    except (ConfigurationError, ClientError) as error:
        raise CommandError(str(error)) from error
    election = configuration.leader_election
    elects = election.enabled if leader_elect is None else leader_elect
    serving = _serve(process, pages)
    work: asyncio.Future[None]
    if elects:
        identity = f"{socket.gethostname()}_{os.getpid()}"
        times = ElectionTimes(
            int(election.lease_seconds), election.renew_seconds, election.retry_seconds
        )
        key = ObjectKey(election.namespace, election.name)
        elector = LeaderElector(client, key, identity, times)
        work = asyncio.ensure_future(elector.run(process.run))
    else:
        work = asyncio.ensure_future(process.run())
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, work.cancel)
    click.echo("allot scheduler: " + ", ".join(process.profiles))
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await work
    except ClientError as error:
        raise CommandError(str(error)) from error
    finally:
        if serving is not None:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        await client.close()


def _serve(process: SchedulerProcess, options: PageOptions) -> asyncio.Task[None] | None:
    """Serve the pages beside the work."""
    import uvicorn

    from allot.scheduler.pages import Pages

    if not options.port:
        return None
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.bind_address, options.port))
    except OSError as error:
        listener.close()
        raise CommandError(
            f"{options.bind_address}:{options.port}: {error.strerror}; choose another --port"
        ) from error
    config = uvicorn.Config(
        Pages(process, options.debug_token), lifespan="off", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
    return asyncio.create_task(server.serve(sockets=[listener]))


def _document(path: Path) -> object:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"{path}: {error}") from error
