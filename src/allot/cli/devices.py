"""`allot devices`: every device, where it is, and who holds it."""

from __future__ import annotations

import time
from typing import Final

import click
from rich.text import Text

from allot.cli.completers import (
    complete_classes,
    complete_drivers,
    complete_nodes,
    complete_pools,
)
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.question_options import ClusterArguments, cluster_options
from allot.cli.tables import Column, notes, output_options, print_blocks, print_document, table
from allot.questions.device_text import details_text, holders_text
from allot.questions.devices import (
    DeviceFilter,
    DeviceList,
    DeviceRow,
    DeviceUse,
    UnknownClassError,
    list_devices,
)

_AGENT: Final = "allot-devices"
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
@click.option("--node", shell_complete=complete_nodes, help="Only devices on this node.")
@click.option(
    "--class",
    "class_name",
    metavar="NAME",
    shell_complete=complete_classes,
    help="Only devices that this DeviceClass selects.",
)
@click.option(
    "--pool", shell_complete=complete_pools, help="Only devices of the pool of this name."
)
@click.option("--driver", shell_complete=complete_drivers, help="Only devices of this driver.")
@click.option("-w", "--watch", is_flag=True, help="Go on, and print devices that change.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    help="Seconds between two readings of --watch.",
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
    found = _read(cluster, wanted)
    _print(found, output, width)
    known = {row.id: row for row in found.devices}
    while watch:
        time.sleep(interval)
        found = _read(cluster, wanted)
        now = {row.id: row for row in found.devices}
        changed = tuple(row for id_, row in now.items() if known.get(id_) != row)
        known = now
        if changed:
            _print(DeviceList(changed), output, width)
    return EXIT_OK


def _read(cluster: ClusterArguments, wanted: DeviceFilter) -> DeviceList:
    try:
        return list_devices(cluster.load(_AGENT), wanted)
    except UnknownClassError as error:
        raise CommandError(str(error)) from None


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
