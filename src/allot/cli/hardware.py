"""`allot hardware`: the included hardware profiles, and profiles of running clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import RenderableType
from rich.text import Text

from allot.allocation.explain.amounts import counted
from allot.cli.completers import complete_drivers, complete_hardware, complete_nodes
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.hardware_output import (
    as_yaml,
    documents_of,
    example_documents,
    plain,
    print_yaml,
)
from allot.cli.snapshots import SnapshotSource, take
from allot.cli.tables import Column, output_options, print_blocks, print_document, table
from allot.cli.which_cluster import cluster_options

if TYPE_CHECKING:
    from allot.api.slices import DeviceAttribute, ResourceSliceSpec
    from allot.client.snapshot import Snapshot
    from allot.driver.hardware import Hardware

_AGENT: Final = "allot-hardware"
_CAPTURED: Final = "captured"


@click.group()
def hardware() -> None:
    """Show the hardware profiles of allot, or make one of a cluster.

    A profile describes nodes and devices as their drivers publish them. Every --hardware option takes its name, with =N for
    N nodes: allot up --hardware h100-server=4.
    """


# --- list ---


@hardware.command("list")
@output_options
def list_profiles(output: str, width: int | None) -> int:
    """List the profiles."""
    from allot.driver.loading import profiles

    found = [_summary(_load(name)) for name in profiles()]
    if output != "table":
        print_document(found, output)
        return EXIT_OK
    print_blocks([table(_PROFILE_COLUMNS, found)], width)
    return EXIT_OK


_PROFILE_COLUMNS: Final = (
    Column("NAME", lambda row: row["name"], keeps_whole=True),
    Column("NODES", lambda row: str(row["nodes"]), is_number=True),
    Column("DEVICES", lambda row: str(sum(row["devices"].values())), is_number=True),
    Column("CONTENT", lambda row: row["description"]),
)


def _summary(described: Hardware) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for key in sorted(described.sources):
        counts[key.driver] += sum(len(each.devices or ()) for each in described.slices(key))
    return {
        "name": described.name,
        "nodes": len(described.nodes),
        "devices": dict(counts),
        "description": described.description,
        "basedOn": list(described.based_on),
    }


# --- show ---


@hardware.command("show")
@click.argument("name", metavar="NAME[=N]", shell_complete=complete_hardware)
@output_options
def show(name: str, output: str, width: int | None) -> int:
    """Show what is in a profile or a file: nodes, pools, a device of each kind, classes, an example claim.

    \b
    allot hardware show h100-server
    allot hardware show rack.yaml -o json
    """
    described = _load(name)
    if output != "table":
        print_document(_details(described), output)
        return EXIT_OK
    print_blocks(_blocks(described), width)
    return EXIT_OK


def _details(described: Hardware) -> dict[str, Any]:
    claim = described.example_claim
    return {
        **_summary(described),
        "pools": [
            {
                "driver": key.driver,
                "name": key.pool,
                "slices": len(slices),
                "devices": sum(len(each.devices or ()) for each in slices),
            }
            for key in described.sources
            for slices in [described.slices(key)]
        ],
        "deviceClasses": [each.metadata.name for each in described.classes],
        "exampleClaim": plain(claim) if claim is not None else None,
    }


def _blocks(described: Hardware) -> Iterator[RenderableType]:
    yield Text(f"{described.name}: {described.description}".rstrip(": "))
    for source in described.based_on:
        yield Text(f"as published by {source}")
    yield Text("")
    yield Text(f"{counted(len(described.nodes), 'node')}: {_first_and_last(described)}")
    yield Text("")
    rows = list(_pool_rows(described))
    yield table(_POOL_COLUMNS, rows)
    for row in rows:
        if row["example"]:
            yield Text("")
            yield Text(f"{row['driver']} {row['example'][0]}:")
            yield table(_ATTRIBUTE_COLUMNS, row["example"][1])
    yield Text("")
    yield Text(f"device classes: {', '.join(each.metadata.name for each in described.classes)}")
    if described.example_claim is not None:
        yield Text("")
        yield Text("example claim:")
        yield from map(Text, as_yaml(plain(described.example_claim)).splitlines())


def _first_and_last(described: Hardware) -> str:
    names = [node.name for node in described.nodes]
    return ", ".join(names) if len(names) <= 2 else f"{names[0]} … {names[-1]}"


_POOL_COLUMNS: Final = (
    Column("DRIVER", lambda row: row["driver"], keeps_whole=True),
    Column("POOL", lambda row: row["pool"]),
    Column("POOLS", lambda row: str(row["pools"]), is_number=True),
    Column("DEVICES", lambda row: str(row["devices"]), is_number=True),
    Column("COUNTER SETS", lambda row: str(row["counters"] or ""), is_number=True),
    Column("NAMES", lambda row: row["names"]),
)
_ATTRIBUTE_COLUMNS: Final = (
    Column("", lambda row: f"  {row[0]}", keeps_whole=True),
    Column("", lambda row: row[1]),
)


def _pool_rows(described: Hardware) -> Iterator[dict[str, Any]]:
    """One row for each template, with the figures of one of its pools."""
    places: dict[str, list[Any]] = {}
    for key, source in described.sources.items():
        places.setdefault(source.place, []).append(key)
    for keys in places.values():
        first = keys[0]
        slices = described.slices(first)
        devices = [device for each in slices for device in each.devices or ()]
        node = described.sources[first].node
        yield {
            "driver": first.driver,
            "pool": first.pool if node is None else "of each node",
            "pools": len(keys),
            "devices": len(devices),
            "counters": sum(len(each.shared_counters or ()) for each in slices),
            "names": " … ".join(dict.fromkeys([devices[0].name, devices[-1].name]))
            if devices
            else "",
            "example": (devices[0].name, list(_facts(slices))) if devices else None,
        }


def _facts(slices: Iterable[ResourceSliceSpec]) -> Iterator[tuple[str, str]]:
    """Attributes, capacity and the like of the first device."""
    device = next(device for each in slices for device in each.devices or ())
    for name, attribute in device.attributes.items():
        yield name, _value(attribute)
    for name, amount in device.capacity.items():
        yield f"{name} (capacity)", str(amount.value)
    for consumed in device.consumes_counters:
        amounts = ", ".join(f"{name} {each.value}" for name, each in consumed.counters.items())
        yield f"consumes {consumed.counter_set}", amounts
    for taint in device.taints:
        yield "taint", f"{taint.key}={taint.value or ''}:{taint.effect}"
    if device.allow_multiple_allocations:
        yield "allowMultipleAllocations", "true"
    for label, conditions in (
        ("bindingConditions", device.binding_conditions),
        ("bindingFailureConditions", device.binding_failure_conditions),
    ):
        if conditions:
            yield label, ", ".join(conditions)


def _value(attribute: DeviceAttribute) -> str:
    ((_, value),) = plain(attribute).items()
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- render ---


@hardware.command("render")
@click.argument("name", metavar="NAME[=N]", shell_complete=complete_hardware)
@click.option(
    "--example", "with_example", is_flag=True, help="Add the example claim, and a pod that uses it."
)
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True
)
def render(name: str, with_example: bool, output: str) -> int:
    """Print the nodes, ResourceSlices and DeviceClasses of a profile or a file.

    \b
    allot hardware render h100-server=1
    allot hardware render h100-mig --example | allot simulate -f -
    """
    described = _load(name)
    items = list(documents_of(described))
    if with_example:
        if described.example_claim is None:
            raise CommandError(f"{name} has no exampleClaim")
        items += example_documents(described)
    if output == "json":
        print_document({"apiVersion": "v1", "kind": "List", "items": items}, output)
        return EXIT_OK
    for document in items:
        print_yaml(document)
    return EXIT_OK


# --- capture ---


@hardware.command("capture")
@cluster_options()
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    metavar="FILE",
    help="Files with what kubectl get -o yaml prints, or - for standard input, instead of a cluster.",
)
@click.option("--name", default=_CAPTURED, show_default=True, help="The name of the profile.")
@click.option(
    "--node",
    "node_names",
    multiple=True,
    shell_complete=complete_nodes,
    help="Only this node and its pools, and pools that nodes share. A profile of one node can be used with =N.",
)
@click.option(
    "--driver",
    "drivers",
    multiple=True,
    shell_complete=complete_drivers,
    help="Only the devices of this driver.",
)
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="The file to write. Default: standard output.",
)
def capture(
    kubeconfig: Path | None,
    context: str | None,
    files: tuple[str, ...],
    name: str,
    node_names: tuple[str, ...],
    drivers: tuple[str, ...],
    output: str,
) -> int:
    """Write a profile of the nodes and ResourceSlices of a cluster, or of files.

    Rendering the profile gives the same slices: devices, their order, and how pools are cut. The right to list nodes,
    ResourceSlices and DeviceClasses is enough. Annotations are not read.

    \b
    allot hardware capture --context prod -o prod.yaml
    allot hardware capture --node gpu-7 --name gpu-node -o gpu-node.yaml
    allot up --hardware gpu-node.yaml=16
    """
    from allot.client import resources
    from allot.driver.capture import capture_hardware
    from allot.driver.errors import HardwareError
    from allot.driver.reading import read_hardware

    wanted = (resources.NODES, resources.RESOURCE_SLICES, resources.DEVICE_CLASSES)
    snapshot = take(SnapshotSource(files, kubeconfig, context), wanted, _AGENT)
    slices, nodes = _selected(snapshot, node_names, drivers)
    if not slices and not nodes:
        raise CommandError("nothing to capture: no nodes and no ResourceSlices found")
    found = capture_hardware(slices, nodes, snapshot.of(resources.DEVICE_CLASSES), name=name)
    try:
        described = read_hardware(found.document, output, name)
    except HardwareError as error:
        raise CommandError(
            f"the slices cannot be described: {error.field}: {error.problem}"
        ) from None
    text = as_yaml(found.document)
    if output == "-":
        click.echo(text, nl=False)
    else:
        try:
            Path(output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{output}: {error.strerror}") from error
    for note in found.notes:
        echo_text(f"note: {note}", err=True)
    counts = sum(_summary(described)["devices"].values())
    click.echo(
        f"{counted(len(described.nodes), 'node')}, {counted(len(described.sources), 'pool')},"
        f" {counted(counts, 'device')}",
        err=True,
    )
    return EXIT_OK


def _selected(
    snapshot: Snapshot, node_names: tuple[str, ...], drivers: tuple[str, ...]
) -> tuple[list[Any], list[Any]]:
    from allot.api.similar_names import did_you_mean, similar_names
    from allot.client import resources

    nodes = list(snapshot.of(resources.NODES))
    slices = list(snapshot.of(resources.RESOURCE_SLICES))
    published = {each.spec.driver for each in slices}
    known = {node.metadata.name for node in nodes} | {
        each.spec.node_name for each in slices if each.spec.node_name
    }
    for kind, asked, available in (("node", node_names, known), ("driver", drivers, published)):
        for each in asked:
            if each not in available:
                similar = did_you_mean(similar_names(each, available))
                raise CommandError(f"no {kind} {each} found{similar}")
    if drivers:
        slices = [each for each in slices if each.spec.driver in drivers]
    if node_names:
        nodes = [node for node in nodes if node.metadata.name in node_names]
        slices = [each for each in slices if (each.spec.node_name or node_names[0]) in node_names]
    return slices, nodes


def _load(reference: str) -> Hardware:
    from allot.driver.errors import HardwareError
    from allot.driver.loading import load_hardware

    try:
        return load_hardware(reference)
    except HardwareError as error:
        raise CommandError(str(error)) from None
