"""`allot devices`: every device, where it is, and who holds it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click
from rich.text import Text

from allot.api.classes import DeviceClass
from allot.api.identities import ObjectKey
from allot.cli.device_options import device_options
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.live_clusters import follow
from allot.cli.question_options import ClusterArguments, cluster_options
from allot.cli.tables import Column, notes, output_options, print_blocks, print_document, table
from allot.client import resources
from allot.questions.class_names import UnknownClassError
from allot.questions.device_text import details_text, holders_text
from allot.questions.device_watch import DeviceWatch
from allot.questions.devices import (
    DeviceFilter,
    DeviceList,
    DeviceRow,
    DeviceUse,
    known_class,
    list_devices,
)
from allot.questions.live_pools import POOL_KINDS
from allot.questions.observed_cluster import UnreadableError
from allot.task_cancellation import cancel_and_wait

if TYPE_CHECKING:
    from allot.questions.reconnecting_cluster import ReconnectingCluster

_AGENT: Final = "allot-devices"
_WATCHED_KINDS: Final = (*POOL_KINDS, resources.DEVICE_CLASSES)
_POLL_SECONDS: Final = 0.02
"""While the first lists are read."""
_COLORS: Final = {
    DeviceUse.FREE: "green",
    DeviceUse.TAINTED: "yellow",
    DeviceUse.WAITING: "yellow",
    DeviceUse.BLOCKED: "yellow",
    DeviceUse.UNUSABLE: "red",
    DeviceUse.UNPUBLISHED: "red",
}


@click.command()
@cluster_options(
    "-f",
    "--filename",
    does="List what is in files, directories, or - for standard input, instead of a cluster.",
)
@click.option("--free", is_flag=True, help="Only devices that are free, or of which a share is.")
@click.option("--held", is_flag=True, help="Only devices that claims hold.")
@device_options
@click.option("-w", "--watch", is_flag=True, help="Go on, and print devices that change.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=0.5,
    show_default=True,
    help="--watch prints changes at most this often, in seconds.",
)
@output_options
def devices(
    cluster: ClusterArguments,
    free: bool,
    held: bool,
    node: str | None,
    class_name: str | None,
    pool: str | None,
    driver: str | None,
    watch: bool,
    interval: float,
    output: str,
    width: int | None,
) -> int:
    """List every device with its node, pool, model and state.

    A device is free, held (by which claim, for which pod), shared (and what is left of it), tainted, waiting for its
    binding conditions, blocked by other partitions, unusable because of its pool, or held but no longer published.

    \b
    allot devices --held --node node-1
    allot devices --free --class gpu.example.com
    allot devices -f dump.yaml -o json
    """
    if watch and cluster.is_offline:
        raise CommandError("--watch follows a cluster; files and hardware do not change")
    if watch and cluster.at is not None:
        raise CommandError("--watch follows what happens now: leave out --at, or --watch")
    wanted = DeviceFilter(driver, pool, node, class_name, free, held)
    try:
        if watch:
            source = follow(cluster, _AGENT, _WATCHED_KINDS)
            asyncio.run(_watch(source, wanted, interval, output, width))
        else:
            _print(list_devices(cluster.load(_AGENT), wanted), output, width)
    except (UnknownClassError, UnreadableError) as error:
        raise CommandError(str(error)) from None
    return EXIT_OK


async def _watch(
    source: ReconnectingCluster,
    wanted: DeviceFilter,
    interval: float,
    output: str,
    width: int | None,
) -> None:
    """Print all devices, then those that change, until cancelled."""
    following = asyncio.create_task(source.run())
    watched = DeviceWatch(wanted)
    revision: int | None = None
    failure = ""
    try:
        while True:
            if source.failure != failure:
                failure = source.failure
                state = f"does not answer: {failure}" if failure else "answers again"
                echo_text(f"note: the cluster {state}", err=True)
            if not source.is_loading and source.revision != revision:
                is_first, revision = revision is None, source.revision
                changed = watched.changed(source.devices, _class(source, wanted, is_first=is_first))
                if is_first:
                    _print(DeviceList.of(changed, source.observed().notes), output, width)
                elif changed:
                    _print(DeviceList(changed), output, width)
            pause = _POLL_SECONDS if source.is_loading else interval
            await asyncio.wait({following}, timeout=pause)
            if following.done():
                following.result()
    finally:
        await cancel_and_wait(following)


def _class(
    source: ReconnectingCluster, wanted: DeviceFilter, *, is_first: bool
) -> DeviceClass | None:
    """The class of the filter; None without one, or if it was deleted meanwhile."""
    cluster = source.observed()
    if is_first:
        cluster.checked()
    if wanted.class_name is None:
        return None
    if is_first:
        return known_class(cluster, wanted.class_name)
    return cluster.objects.get(resources.DEVICE_CLASSES, ObjectKey("", wanted.class_name))


def _print(found: DeviceList, output: str, width: int | None) -> None:
    if output != "table":
        print_document(found, output)
        return
    if not found.devices:
        click.echo("No devices found.", err=True)
    else:
        print_blocks([table(_COLUMNS, found.devices)], width)
    if found.states:
        counts = ", ".join(f"{number} {state}" for state, number in found.states.items())
        print_blocks([Text(""), Text(counts)], width)
    print_blocks(notes(found.notes), width)


def _state(row: DeviceRow) -> Text:
    return Text(row.state, _COLORS.get(row.state, ""))


_COLUMNS: Final = (
    Column("NODE", lambda row: row.node or "-"),
    Column("POOL", lambda row: row.pool if row.pool != row.node else "-"),
    Column("DEVICE", lambda row: row.device, keeps_whole=True),
    Column("MODEL", lambda row: row.model),
    Column("STATE", _state, keeps_whole=True),
    Column("HELD BY", holders_text),
    Column("DETAILS", details_text),
)
