"""`allot status`: how many devices are free, and where."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

import click
import msgspec
import yaml
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from allot.api.claims import ResourceClaim
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.decoding import DecodeError, to_builtin
from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.pool_status import PoolStatus
from allot.api.resource import GROUP
from allot.api.scheme import UnknownKindError, decode_object
from allot.api.slices import ResourceSlice
from allot.cli.availability import (
    COUNTED,
    Availability,
    ClusterObjects,
    DriverRow,
    Wanted,
    availability,
)
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.lint import gates_from_option
from allot.cli.manifests import Manifest, Unreadable, read_manifests

if TYPE_CHECKING:
    from allot.client.client import Client

T = TypeVar("T")

PARTS: Final = ("driver", "pool", "node", "class")
_KINDS: Final = {
    "ResourceSlice": ResourceSlice,
    "ResourceClaim": ResourceClaim,
    "DeviceClass": DeviceClass,
    "DeviceTaintRule": DeviceTaintRule,
}


@click.command()
@click.option(
    "-f",
    "--filename",
    "sources",
    multiple=True,
    metavar="FILE",
    help="Count what is in files, directories, or - for standard input, instead of a cluster.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="How to reach the cluster. Default: as kubectl.",
)
@click.option("--context", help="The context in the kubeconfig.")
@click.option(
    "--by",
    "parts",
    multiple=True,
    type=click.Choice(PARTS),
    help="What to show; can be given several times. Default: pools and classes, in JSON and YAML everything.",
)
@click.option("--driver", help="Only pools of this driver.")
@click.option("--pool", help="Only pools of this name.")
@click.option("--node", help="Only pools with devices on this node.")
@click.option(
    "--partition-type-attribute",
    metavar="DOMAIN/NAME",
    help="The attribute that tells types of partitions, in pools that do not say.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
)
@click.option(
    "--feature-gates", default="", metavar="A=true,B=false", help="Override feature gates."
)
def status(
    sources: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    parts: tuple[str, ...],
    driver: str | None,
    pool: str | None,
    node: str | None,
    partition_type_attribute: str | None,
    output: str,
    feature_gates: str,
) -> int:
    """Show how many devices are free: by driver, pool, node and class.

    Of ResourceSlices, ResourceClaims, DeviceClasses and DeviceTaintRules, in a cluster or in files such as
    `kubectl get resourceslices,resourceclaims,deviceclasses -A -o yaml` prints. The figures are those that a
    ResourcePoolStatusRequest gets.
    """
    gates = gates_from_option(feature_gates)
    if sources and (kubeconfig or context):
        raise CommandError(
            "files or a cluster, not both: leave out -f, or --kubeconfig and --context"
        )
    objects = _from_files(sources) if sources else asyncio.run(_from_cluster(kubeconfig, context))
    wanted = Wanted(driver, pool, node, partition_type_attribute)
    found = availability(objects, wanted, gates)
    if output == "table":
        _print_tables(found, parts or ("pool", "class"))
    else:
        _print_document(found, parts or PARTS, output)
    return EXIT_OK


# --- reading ---


def _from_files(sources: Iterable[str]) -> ClusterObjects:
    now = datetime.now(UTC)
    found: dict[str, dict[tuple[str, str], Any]] = {kind: {} for kind in _KINDS}
    for manifest in read_manifests(sources):
        if isinstance(manifest, Unreadable):
            raise CommandError(f"{manifest.source}:{manifest.line}: {manifest.problem}")
        group_version = GroupVersion.parse(manifest.api_version)
        if group_version.group != GROUP or manifest.kind not in _KINDS:
            continue
        objects = found[manifest.kind]
        decoded = _decoded(manifest, GroupVersionKind(*group_version, manifest.kind), now)
        # An object that is there twice, as in two dumps, counts as it was seen last.
        name = decoded.metadata.name or f"#{len(objects)}"
        objects[decoded.metadata.namespace, name] = decoded
    if not found["ResourceSlice"]:
        raise CommandError("there is no ResourceSlice in these files, so there are no devices")
    return ClusterObjects(*(tuple(found[kind].values()) for kind in _KINDS))


def _decoded(manifest: Manifest, gvk: GroupVersionKind, now: datetime) -> Any:
    try:
        return decode_object(manifest.body, gvk, now)
    except (DecodeError, UnknownKindError) as error:
        place = f"{manifest.source}:{manifest.place.line}"
        raise CommandError(f"{place}: {manifest.kind}/{manifest.name}: {error}") from None


async def _from_cluster(kubeconfig: Path | None, context: str | None) -> ClusterObjects:
    from allot.client.client import Client
    from allot.client.connecting import connect
    from allot.client.errors import ClientError
    from allot.client.retrying import RetryPolicy

    client: Client | None = None
    try:
        client = connect(kubeconfig, context, user_agent="allot-status")
        # Somebody is waiting: a server that is not there had better be known soon.
        return await read_cluster(Client(client.transport, retry=RetryPolicy(max_attempts=3)))
    except ClientError as error:
        raise CommandError(str(error)) from error
    finally:
        if client is not None:
            await client.close()


async def read_cluster(client: Client) -> ClusterObjects:
    """What an API server has, in whichever version it has it."""
    from allot.client import resources
    from allot.client.discovery import served

    async def all_of(resource: resources.Resource[T]) -> Sequence[T]:
        best = await served(client, resource)
        return (await client.list(best)).items if best is not None else ()

    return ClusterObjects(
        slices=await all_of(resources.RESOURCE_SLICES),
        claims=await all_of(resources.RESOURCE_CLAIMS),
        classes=await all_of(resources.DEVICE_CLASSES),
        rules=await all_of(resources.DEVICE_TAINT_RULES),
    )


# --- output ---


class Column(NamedTuple):
    """A heading, and what stands below it."""

    heading: str
    text: Callable[[Any], str | Text]
    is_number: bool = False


def _number(name: str, row: object) -> str:
    value = getattr(row, name)
    return "-" if value is None else str(value)


def _trouble(text: str | None) -> Text:
    return Text(text or "", "red")


def _faulty(row: DriverRow) -> Text:
    return _trouble(f"{row.faulty_pools} with errors" if row.faulty_pools else "")


def _pool_details(pool: PoolStatus) -> Text:
    """What is left of shared capacity, how many more partitions of each type, and what is wrong."""
    parts = []
    if pool.shareable_summary is not None:
        parts += [
            Text(f"{capacity.name} {capacity.available}/{capacity.total}")
            for capacity in pool.shareable_summary.capacity
        ]
    parts += [
        Text(f"{entry.type} {entry.allocatable}/{entry.total}") for entry in pool.partition_summary
    ]
    if pool.validation_error:
        parts.append(_trouble(pool.validation_error))
    return Text(", ").join(parts)


_COUNTS: Final = tuple(
    Column(name.removesuffix("_devices").upper(), partial(_number, name), is_number=True)
    for name in COUNTED
)
_DRIVERS: Final = (
    Column("DRIVER", lambda row: row.name),
    Column("POOLS", lambda row: str(row.pools), is_number=True),
    *_COUNTS,
    Column("DETAILS", _faulty),
)
_POOLS: Final = (
    Column("DRIVER", lambda row: row.driver),
    Column("POOL", lambda row: row.pool_name),
    Column("NODE", lambda row: row.node_name or "-"),
    *_COUNTS,
    Column("DETAILS", _pool_details),
)
_NODES: Final = (Column("NODE", lambda row: row.name or "-"), *_COUNTS)
_CLASSES: Final = (
    Column("CLASS", lambda row: row.name),
    *_COUNTS,
    Column("DETAILS", lambda row: _trouble(row.error)),
)


COLUMNS: Final = {"driver": _DRIVERS, "pool": _POOLS, "node": _NODES, "class": _CLASSES}
_SHORT: Final = {"ALLOCATED": "ALLOC", "AVAILABLE": "AVAIL", "UNAVAILABLE": "UNAVAIL"}
_UNLIMITED: Final = Console(highlight=False, width=10_000)
_KEYS: Final = {"driver": "drivers", "pool": "pools", "node": "nodes", "class": "classes"}


def _print_tables(found: Availability, parts: Iterable[str]) -> None:
    if not found.pools:
        click.echo("No pools found.", err=True)
        return
    # Where nobody looks, no line is too long: another program reads them.
    console = Console(highlight=False) if sys.stdout.isatty() else _UNLIMITED
    blocks: list[RenderableType] = []
    for part in PARTS:
        if part in parts and getattr(found, _KEYS[part]):
            blocks += table_blocks(console, COLUMNS[part], getattr(found, _KEYS[part]))
    for number, block in enumerate(blocks):
        if number:
            click.echo()
        with console.capture() as capture:
            console.print(block)
        for line in capture.get().splitlines():
            click.echo(line.rstrip())


def table_blocks(
    console: Console, columns: Sequence[Column], rows: Sequence[Any]
) -> Iterator[RenderableType]:
    """A table; in a terminal that is too narrow for it a smaller one for each driver, and the details below."""
    if columns[-1].heading == "DETAILS" and not any(columns[-1].text(row) for row in rows):
        columns = columns[:-1]
    table = _table([(column, column.heading) for column in columns], rows)
    if _UNLIMITED.measure(table).maximum <= console.width:
        yield table
        return
    details = columns[-1] if columns[-1].heading == "DETAILS" else None
    for driver, group in groupby(rows, lambda row: getattr(row, "driver", "")):
        members = list(group)
        kept = columns[1:] if driver else columns
        small = [
            (column, _SHORT.get(column.heading, column.heading))
            for column in kept
            if column is not details
        ]
        parts: list[RenderableType] = [Text(driver, "bold")] if driver else []
        parts.append(_table(small, members))
        if details is not None:
            parts += [
                Text.assemble(kept[0].text(row), ": ", text)
                for row in members
                if (text := details.text(row))
            ]
        yield Group(*parts)


def _table(columns: Sequence[tuple[Column, str]], rows: Sequence[object]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column, heading in columns:
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=column.is_number)
    for row in rows:
        cells = (column.text(row) for column, _ in columns)
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))
    return table


def _print_document(found: Availability, parts: Iterable[str], output: str) -> None:
    document = {_KEYS[part]: getattr(found, _KEYS[part]) for part in PARTS if part in parts}
    encoded = msgspec.json.encode(document, enc_hook=to_builtin)
    if output == "json":
        click.echo(msgspec.json.format(encoded, indent=2).decode())
    else:
        plain = msgspec.json.decode(encoded)
        click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), nl=False)
