"""`allot record`: keeps what happens in a cluster, with only what scheduling reads."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from allot.cli.components import component_runner, set_up_logging, verbose_option
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.moments import read_duration
from allot.cli.signals import stopped_by_signals
from allot.cli.which_cluster import chosen_kubeconfig, cluster_error, cluster_options

if TYPE_CHECKING:
    from allot.client.client import Client
    from allot.questions.recording.writer import Limits

_AGENT: Final = "allot-record"
_SALT_BYTES: Final = 16
_DEFAULT: Final = "cluster.rec"
_SMALLEST: Final = timedelta(minutes=1)


class _Duration(click.ParamType[timedelta]):
    """A click type: `timedelta`s."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, timedelta):
            return value
        try:
            found = read_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if found < _SMALLEST:
            self.fail(f"{value}: at least 1m", param, ctx)
        return found


@click.command()
@cluster_options()
@click.option(
    "-o",
    "--output",
    default=_DEFAULT,
    show_default=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The recording, readable by you only. If it exists, it is continued.",
)
@click.option(
    "--keep",
    type=_Duration(),
    default="24h",
    show_default=True,
    metavar="DURATION",
    help="How long changes are kept; older ones become part of the snapshot at the beginning.",
)
@click.option(
    "--max-size",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    metavar="MIB",
    help="How much changes may take beside the snapshot. The older half becomes part of it then.",
)
@click.option(
    "--anonymize",
    is_flag=True,
    help="Rename namespaces, nodes, pods, claims, workloads and pools, consistently.",
)
@verbose_option
def record(
    kubeconfig: Path | None,
    context: str | None,
    output: Path,
    keep: timedelta,
    max_size: int,
    anonymize: bool,
    verbose: int,
) -> int:
    """Record what happens in a cluster, until Ctrl-C or SIGTERM.

    The same fields as `allot clone` writes: no environment, arguments, commands, images, annotations or contents of
    volumes; parameters of drivers only as a hash. The rights to list and watch are enough. `allot replay` plays it, and
    commands that read files ask about any time in it with -f FILE --at TIME.

    \b
    allot record --context prod -o prod.rec
    allot devices -f prod.rec --at 14:05
    allot replay prod.rec --speed 10
    """
    from allot.client.errors import ClientError
    from allot.questions.observed_cluster import UnreadableError
    from allot.questions.recording.lines import RecordingError
    from allot.questions.recording.writer import Limits
    from allot.storage.file_lock import FileLock
    from allot.storage.interface import StorageError

    set_up_logging(verbose)
    try:
        lock = FileLock(output)
        try:
            with component_runner() as runner:
                runner.run(
                    _record(kubeconfig, context, output, Limits(keep, max_size << 20), anonymize)
                )
        finally:
            lock.release()
    except (StorageError, RecordingError, UnreadableError) as error:
        raise CommandError(str(error)) from None
    except ClientError as error:
        raise cluster_error(error, kubeconfig, context) from error
    except OSError as error:
        raise CommandError(f"{error.filename or output}: {error.strerror}") from error
    return EXIT_OK


async def _record(
    kubeconfig: Path | None, context: str | None, output: Path, limits: Limits, anonymize: bool
) -> None:
    from allot.client.connection import connect

    client = connect(chosen_kubeconfig(kubeconfig, context), context, user_agent=_AGENT)
    try:
        working = asyncio.ensure_future(_follow(client, output, limits, anonymize))
        with stopped_by_signals(working.cancel), suppress(asyncio.CancelledError):
            await working
    finally:
        await client.close()


async def _follow(client: Client, output: Path, limits: Limits, anonymize: bool) -> None:
    from allot.client.server_gates import API_SERVER, SCHEDULER
    from allot.client.wall_clock import utc_now
    from allot.public.cluster_reading import Reading, read_objects
    from allot.questions.observed_cluster import KINDS, ObservedCluster
    from allot.questions.recording.recorder import Recorder, observed, open_log

    snapshot = await read_objects(client, Reading(KINDS, gate_pages=(SCHEDULER, API_SERVER)))
    for note in ObservedCluster(snapshot).checked().notes:
        echo_text(f"note: {note}", err=True)
    about = observed(snapshot, KINDS, anonymized=anonymize)
    log = open_log(output, about, limits, secrets.token_bytes(_SALT_BYTES))
    if log.repaired_bytes:
        click.echo(
            f"note: the last line of {output} was not complete, and is removed"
            f" ({log.repaired_bytes} bytes)",
            err=True,
        )
    continued = log.writer is not None
    recorder = Recorder(client, log, about.readable, utc_now)
    printing = asyncio.create_task(_print_when_begun(recorder.begun, output, continued))
    try:
        await recorder.run()
    finally:
        printing.cancel()
        if log.writer is not None:
            click.echo(f"{len(log.writer.bodies)} objects at the end of {output}", err=True)


async def _print_when_begun(begun: asyncio.Event, output: Path, continued: bool) -> None:
    await begun.wait()
    what = "continuing" if continued else "recording to"
    click.echo(f"{what} {output}; Ctrl-C stops")
