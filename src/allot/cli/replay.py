"""`allot replay`: a recording as a simulated cluster."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allot.cli.at_option import Moment, MomentType
from allot.cli.components import READY, component_runner, set_up_logging, verbose_option
from allot.cli.data_directory import data_dir_option, occupied
from allot.cli.errors import EXIT_OK, CommandError, address_error
from allot.cli.signals import stopped_by_signals

if TYPE_CHECKING:
    from allot.apiserver.running import ServerOptions
    from allot.questions.recording.reader import Recording


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="How many times as fast as it happened; 0 stays at the beginning.",
)
@click.option("--from", "begin", type=MomentType(), metavar="TIME", help="Begin at this time.")
@click.option("--to", "end", type=MomentType(), metavar="TIME", help="Stay at this time.")
@click.option("--exit", "exits", is_flag=True, help="Stop when it is over, instead of staying.")
@data_dir_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6443,
    show_default=True,
    help="The API server's port; 0 takes a free one.",
)
@verbose_option
def replay(
    file: Path,
    speed: float,
    begin: Moment | None,
    end: Moment | None,
    exits: bool,
    data_dir: Path,
    port: int,
    verbose: int,
) -> int:
    """Play a recording: an API server whose objects change as they did in the cluster.

    kubectl and allot's commands see it as a cluster. Nothing is scheduled and no controller runs; what you change is
    overwritten by what was recorded. Times are RFC 3339, HH:MM[:SS], or -10m before the end of the recording.

    \b
    allot replay prod.rec --speed 10
    allot replay prod.rec --from 14:00 --to 14:30 --speed 60
    allot status        # from the same directory
    """
    from allot.apiserver.running import AddressError, ServerOptions
    from allot.client.cluster_gates import gates_of_cluster
    from allot.questions.recording.lines import RecordingError
    from allot.questions.recording.reader import Recording

    set_up_logging(verbose)
    try:
        with Recording.open(file) as recording:
            first = recording.begins if begin is None else begin.in_recording(recording)
            last = recording.ends if end is None else end.in_recording(recording)
            if last < first:
                raise CommandError("--to is before --from")
            gates = gates_of_cluster(recording.snapshot_at(first), {}, None).gates
            recording.snapshot_at(last)
            options = ServerOptions(data_dir, gates, "memory", port=port)
            with occupied(data_dir), component_runner() as runner:
                runner.run(_play(recording, first, last, speed, exits, options))
    except RecordingError as error:
        raise CommandError(str(error)) from None
    except AddressError as error:
        raise address_error(error) from error
    return EXIT_OK


async def _play(
    recording: Recording,
    first: datetime,
    last: datetime,
    speed: float,
    exits: bool,
    options: ServerOptions,
) -> None:
    from allot.api.times import written_time
    from allot.apiserver.running import running_server
    from allot.questions.recording.replay import Replay

    async with running_server(options) as running:
        shown = Replay(recording, running.server.store, running.server.caches)
        playing: asyncio.Task[None] | None = None

        def stop() -> None:
            if playing is not None:
                playing.cancel()
            running.stop()

        async def play() -> None:
            count = await shown.show(first)
            click.echo(f"allot replay: {running.url}, {count} objects as of {written_time(first)}")
            click.echo(f"  kubectl --kubeconfig {running.kubeconfig} get pods -A")
            click.echo(READY)
            if not speed:
                return
            changes = await shown.play(first, last, speed)
            click.echo(f"{changes} changes played, up to {written_time(last)}")
            if exits:
                running.stop()
            else:
                click.echo("Ctrl-C stops")

        with stopped_by_signals(stop):
            playing = asyncio.create_task(play())
            done, _ = await asyncio.wait(
                {playing, running.serving}, return_when=asyncio.FIRST_COMPLETED
            )
            if playing in done:
                await playing  # says what is wrong
            with suppress(asyncio.CancelledError):
                await running.serving
