"""`allot dashboard`: a web page with the devices of a cluster, and answers to questions about it."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from allot.cli.components import component_runner
from allot.cli.dashboard_address import DEFAULT_PORT, listening_socket, url_of
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.question_options import ClusterArguments, cluster_options
from allot.cli.signals import stopped_by_signals

if TYPE_CHECKING:
    from allot.dashboard.cluster_source import ClusterSource

AGENT: Final = "allot-dashboard"


@click.command()
@cluster_options(
    "-f",
    "--filename",
    does="Show what is in files, directories, or - for standard input, or in a file of `allot clone`"
    " or `allot record`, instead of a cluster.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"The port of the page; 0 takes a free one. Default: {DEFAULT_PORT}, or a free one.",
)
@click.option(
    "--address",
    default="127.0.0.1",
    show_default=True,
    help="Where to serve the page. Others than this machine reach it only at another address; there is no TLS.",
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
def dashboard(cluster: ClusterArguments, port: int | None, address: str, no_open: bool) -> int:
    """Show devices, pending pods, claims and what-if answers of a cluster in a browser.

    Only lists and watches are requested: read-only rights are enough, and what may not be listed is left out. The
    address that is printed has a token, which every request needs. Ctrl-C stops it.

    \b
    allot dashboard
    allot dashboard --context prod --no-open
    allot dashboard -f clone.yaml
    """
    listening = listening_socket(address, port)
    with listening, component_runner() as runner:
        runner.run(_serve(cluster, listening, address, opens=not no_open and sys.stdout.isatty()))
    return EXIT_OK


async def _serve(
    cluster: ClusterArguments, listening: socket.socket, address: str, *, opens: bool
) -> None:
    from allot.client.errors import ClientError
    from allot.dashboard.access import Access
    from allot.dashboard.dashboard import Dashboard
    from allot.dashboard.server import DashboardServer

    port = listening.getsockname()[1]
    access = Access(address, port)
    server = DashboardServer(Dashboard(await source_of(cluster)), access)
    stopped = asyncio.Event()
    with stopped_by_signals(stopped.set):
        try:
            await server.start(listening)
            await server.started()
            url = f"{url_of(address, port)}/?token={access.token}"
            click.echo(f"dashboard: {url}")
            click.echo("Ctrl-C stops it; nothing in the cluster is changed.")
            if opens:
                await asyncio.to_thread(_open, url)
            await stopped.wait()
        except (ClientError, TimeoutError) as error:
            raise CommandError(f"the cluster cannot be read: {error or 'timeout'}") from error
        finally:
            await server.stop()


def _open(url: str) -> None:
    import webbrowser

    with suppress(webbrowser.Error):
        webbrowser.open(url)


async def source_of(cluster: ClusterArguments) -> ClusterSource:
    """The cluster that the options name; `CommandError` if it cannot be read."""
    from allot.dashboard.cluster_source import FixedCluster, LiveSource
    from allot.dashboard.recorded_cluster import RecordedCluster
    from allot.questions.recording.detection import is_recording
    from allot.questions.recording.reader import Recording

    if cluster.is_offline or cluster.at is not None:
        title = ", ".join((*cluster.files, *cluster.hardware)) or cluster.title
        observed = await asyncio.to_thread(cluster.load, AGENT)
        first = Path(cluster.files[0]) if len(cluster.files) == 1 else None
        if first is not None and cluster.at is None and is_recording(first):
            return RecordedCluster(title, observed, Recording.open(first))
        return FixedCluster(title, observed)
    observed, client = await cluster.connect(AGENT)
    return LiveSource(cluster.title, observed, client, cluster.namespace)
