"""`allot status`: how many devices are free, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal

import click
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from allot.api.messages import no_slice_of_driver
from allot.cli.at_option import Moment
from allot.cli.availability import (
    COUNTED,
    Availability,
    ClusterObjects,
    DriverRow,
    NodeRow,
    PoolRow,
    Wanted,
    availability,
)
from allot.cli.cluster_gates import gates_of_cluster
from allot.cli.commands.status import PARTS
from allot.cli.console import PrintableConsole
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.snapshots import SnapshotSource, take
from allot.cli.tables import UNLIMITED_WIDTH, Column, cell_text, console_for, print_document
from allot.client import resources
from allot.client.server_gates import API_SERVER, SCHEDULER
from allot.client.snapshot import Snapshot
from allot.questions.class_names import UnknownClassError
from allot.rules import RuleSet

RESOURCES: Final = (
    resources.RESOURCE_SLICES,
    resources.RESOURCE_CLAIMS,
    resources.DEVICE_CLASSES,
    resources.DEVICE_TAINT_RULES,
)
"""What is counted, and what decides how."""


def show_status(
    *,
    sources: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    at: Moment | None,
    parts: tuple[str, ...],
    driver: str | None,
    pool: str | None,
    node: str | None,
    class_name: str | None,
    partition_type_attribute: str | None,
    output: str,
    feature_gates: str,
    rules: RuleSet | None,
) -> int:
    """The command `allot status`: prints what the options select."""
    source = SnapshotSource(sources, kubeconfig, context, at)
    snapshot = take(source, RESOURCES, "allot-status", gate_pages=(SCHEDULER, API_SERVER))
    known = gates_of_cluster(snapshot, source, feature_gates, rules)
    gates, in_force = known.gates, known.rules
    if known.assumption:
        echo_text(f"warning: {known.assumption}", err=True)
    for note in snapshot.notes:
        echo_text(f"note: {note}", err=True)
    if sources and not snapshot.of(resources.RESOURCE_SLICES):
        raise CommandError("no ResourceSlice in these files, so no devices")
    objects = objects_in(snapshot)
    wanted = Wanted(driver, pool, node, partition_type_attribute, class_name)
    try:
        found = availability(objects, wanted, gates)
    except UnknownClassError as error:
        raise CommandError(str(error)) from None
    _warn_about(wanted, found, objects)
    if output == "table":
        _print_tables(found, parts or ("pool", "class"))
        if in_force is RuleSet.V1_38:
            click.echo("counted as Kubernetes v1.38 does; --rules seeds as allot does", err=True)
    else:
        _print_document(found, parts or PARTS, output, in_force)
    return EXIT_OK


# --- reading ---


def objects_in(snapshot: Snapshot) -> ClusterObjects:
    """The objects to count; `CommandError` if slices cannot be read."""
    for resource, why in snapshot.unread.items():
        if resource is resources.RESOURCE_SLICES:
            raise CommandError(f"{resource.plural} cannot be read: {why}")
        if resource is not resources.DEVICE_TAINT_RULES:  # which most clusters do not have
            echo_text(f"warning: {resource.plural} cannot be read: {why}", err=True)
    return ClusterObjects(
        slices=snapshot.of(resources.RESOURCE_SLICES),
        claims=snapshot.of(resources.RESOURCE_CLAIMS),
        classes=snapshot.of(resources.DEVICE_CLASSES),
        rules=snapshot.of(resources.DEVICE_TAINT_RULES),
    )


def _warn_about(wanted: Wanted, found: Availability, objects: ClusterObjects) -> None:
    """A driver that nothing is of is rather misspelled than without devices."""
    if wanted.driver is not None and not found.pools:
        drivers = {slice_.spec.driver for slice_ in objects.slices}
        if wanted.driver not in drivers:
            echo_text(f"warning: {no_slice_of_driver(wanted.driver, drivers)}", err=True)


# --- output ---


def _number(name: str, row: object) -> str:
    value = getattr(row, name)
    return "-" if value is None else str(value)


def _trouble(text: str | None) -> Text:
    return Text(text or "", "red")


def _faulty(row: DriverRow) -> Text:
    return _trouble(f"{row.faulty_pools} with errors" if row.faulty_pools else "")


def _pool_details(pool: PoolRow) -> Text:
    """What is left of shared capacity, how many more partitions of each type, and what is wrong."""
    parts = []
    if pool.free_devices is not None and pool.free_devices != pool.available_devices:
        parts.append(Text(f"{pool.free_devices} free, {pool.available_devices} at once"))
    if pool.attaching_devices:
        parts.append(Text(f"{pool.attaching_devices} being attached"))
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
    Column("NODE", lambda row: row.node_name or ("-" if row.pool_name else "")),
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
_LONG: Final[Mapping[str, str]] = {}
_SHORT: Final[Mapping[str, str]] = {
    "ALLOCATED": "ALLOC",
    "AVAILABLE": "AVAIL",
    "UNAVAILABLE": "UNAVAIL",
}
_UNLIMITED: Final = PrintableConsole(width=UNLIMITED_WIDTH)
_KEYS: Final = {"driver": "drivers", "pool": "pools", "node": "nodes", "class": "classes"}


def _print_tables(found: Availability, parts: Iterable[str]) -> None:
    if not found.pools:
        click.echo("No pools found.", err=True)
        return
    # Without a terminal lines are not wrapped: another program reads them.
    console = console_for(None)
    blocks: list[RenderableType] = []
    for part in PARTS:
        rows = getattr(found, _KEYS[part])
        if part in parts and rows:
            total = _total_row(part, found) if len(rows) > 1 else None
            blocks += table_blocks(console, COLUMNS[part], [*rows, *([total] if total else [])])
    for number, block in enumerate(blocks):
        if number:
            click.echo()
        for line in console.lines(block):
            click.echo(line)


def _total_row(part: str, found: Availability) -> object | None:
    """All rows together. Classes may select the same devices, so that they do not add up."""
    total = found.total
    counts = {name: getattr(total, name) for name in COUNTED}
    match part:
        case "driver":
            return DriverRow("total", pools=total.pools, faulty_pools=total.faulty_pools, **counts)
        case "pool":
            return PoolRow("total", free_devices=total.available_devices, **counts)
        case "node":
            return NodeRow("total", **counts)
    return None


def table_blocks(
    console: Console, columns: Sequence[Column], rows: Sequence[Any]
) -> Iterator[RenderableType]:
    """A table; in a terminal that is too narrow for it with the details below, or a smaller one for each driver."""
    if columns[-1].heading == "DETAILS" and not any(columns[-1].text(row) for row in rows):
        columns = columns[:-1]
    table = _table(columns, rows)
    if _fits(table, console):
        yield table
        return
    details = columns[-1] if columns[-1].heading == "DETAILS" else None
    if details is not None:
        columns = columns[:-1]
    for headings in (_LONG, _SHORT):
        table = _table(columns, rows, headings)
        if _fits(table, console):
            has_pools = len(columns) > 1 and columns[1].heading == "POOL"
            yield Group(table, *_detail_lines(details, columns[1 if has_pools else 0], rows))
            return
    for driver, group in groupby(rows, lambda row: getattr(row, "driver", "")):
        members = list(group)
        kept = columns[1:] if driver else columns
        # The total has neither pool nor node.
        small = [column for column in kept if any(column.text(row) for row in members)]
        parts: list[RenderableType] = [Text(driver, "bold")] if driver else []
        parts.append(_table(small, members, _SHORT))
        yield Group(*parts, *_detail_lines(details, kept[0], members))


def _fits(table: Table, console: Console) -> bool:
    return _UNLIMITED.measure(table).maximum <= console.width


def _detail_lines(details: Column | None, name: Column, rows: Sequence[Any]) -> Iterator[Text]:
    if details is not None:
        for row in rows:
            if text := details.text(row):
                yield Text.assemble(name.text(row), ": ", text)


def _table(
    columns: Sequence[Column], rows: Sequence[object], headings: Mapping[str, str] = _LONG
) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        heading = headings.get(column.heading, column.heading)
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=column.is_number)
    for row in rows:
        table.add_row(*(cell_text(column.text(row)) for column in columns))
    return table


def _print_document(found: Availability, parts: Iterable[str], output: str, rules: RuleSet) -> None:
    document = {"rules": rules, "total": found.total} | {
        _KEYS[part]: getattr(found, _KEYS[part]) for part in PARTS if part in parts
    }
    print_document(document, output)
