"""The options of `allot cel`."""

from __future__ import annotations

from typing import Any

import click

from allot.cli.completers import complete_devices, complete_drivers, complete_pools
from allot.cli.gate_options import gate_options
from allot.cli.source_options import source_options


@click.command()
@click.argument("expression", required=False)
@source_options("Try it on the ResourceSlices,")
@click.option("--driver", shell_complete=complete_drivers, help="Only devices of this driver.")
@click.option("--pool", shell_complete=complete_pools, help="Only devices of this pool.")
@click.option("--device", shell_complete=complete_devices, help="Only devices of this name.")
@click.option("--derived", is_flag=True, help="The expression derives an attribute.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
)
@gate_options("seeds, with --jsonl v1.38")
@click.option("--jsonl", is_flag=True, help="Answer test vectors: JSON lines in, JSON lines out.")
def cel(**options: Any) -> int:
    """Try a CEL expression on every published device, in a cluster or in files.

    Shows the value, its type and what it cost; with --derived also the groups of devices that a
    matchAttribute constraint would see. Exits 1 if the expression does not compile, costs too much, or
    fails on a device: a claim with such a selector would be refused, or not be scheduled.

    \b
    allot cel 'device.attributes["gpu.example.com"].model == "H100"'
    allot cel 'device.driver' -f slices.yaml
    """
    from allot.cli.cel import try_expression

    return try_expression(**options)
