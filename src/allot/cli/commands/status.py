"""The options of `allot status`."""

from __future__ import annotations

from typing import Any, Final

import click

from allot.cli.device_options import device_options
from allot.cli.gate_options import gate_options
from allot.cli.source_options import OF_A_CLUSTER, source_options

PARTS: Final = ("driver", "pool", "node", "class")


@click.command()
@source_options("Count")
@click.option(
    "--by",
    "parts",
    multiple=True,
    type=click.Choice(PARTS),
    help="What to show; can be given several times. Default: pools and classes, in JSON and YAML everything.",
)
@device_options
@click.option(
    "--partition-type-attribute",
    metavar="DOMAIN/NAME",
    help="The attribute with the type of a partition, for pools that name none.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
)
@gate_options(OF_A_CLUSTER)
def status(**options: Any) -> int:
    """Show how many devices are free: by driver, pool, node and class.

    Of ResourceSlices, ResourceClaims, DeviceClasses and DeviceTaintRules, in a cluster or in files such as
    `kubectl get resourceslices,resourceclaims,deviceclasses -A -o yaml` prints. The figures are those that a
    ResourcePoolStatusRequest gets, but available are only as many partitions as can be had at the same time.

    \b
    allot status
    allot status --class gpu.example.com --by node
    allot status -f prod.rec --at 14:05
    """
    from allot.cli.status import show_status

    return show_status(**options)
