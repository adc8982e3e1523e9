"""The options of `allot explain`."""

from __future__ import annotations

from typing import Any

import click

from allot._lazy import load_when_used
from allot.cli.completers import complete_namespaces, complete_targets
from allot.cli.gate_options import gate_options
from allot.cli.source_options import OF_A_CLUSTER, scheduler_config_option, source_options


@click.command()
@click.argument(
    "what",
    nargs=-1,
    metavar="pod/NAME | claim/NAME | deployment/NAME …",
    shell_complete=complete_targets,
)
@click.option(
    "-n",
    "--namespace",
    shell_complete=complete_namespaces,
    help="The namespace. Default: that of the context, or default.",
)
@click.option(
    "--all-pending",
    is_flag=True,
    help="Explain all pending pods of the namespace, grouped by cause.",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="With --all-pending: of all namespaces.")
@click.option(
    "-l", "--selector", default="", help="With --all-pending: only pods with these labels."
)
@source_options("Explain")
@click.option(
    "--scheduler-name",
    default="",
    help="Explain as this scheduler would decide. Default: the pod's own.",
)
@scheduler_config_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Show all nodes, reasons and proposals, and devices of other classes, too.",
)
@click.option(
    "--width",
    type=click.IntRange(min=40),
    metavar="COLUMNS",
    help="Wrap text to so many columns. Default: those of the terminal; not at all without one.",
)
@gate_options(OF_A_CLUSTER)
def explain(**options: Any) -> int:
    """Say why a pod or a claim is pending, and what would help.

    First the verdict: which requests and constraints cannot be satisfied together on the nearest node. Then changes
    after which it would fit; each of them was tried. Then for each node, request and device the reason, with values.
    Of what is not pending it says where it is, and with which devices.

    Of a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job, and with --all-pending, pending pods are grouped by
    cause, one line each, with what would help most of them.

    \b
    allot explain pod/trainer
    allot explain --all-pending -A
    allot explain deployment/web -n shop

    Reads a cluster, for which the right to list is enough, or files such as
    `kubectl get pods,nodes,resourceclaims,resourceclaimtemplates,resourceslices,deviceclasses -A -o yaml` prints.
    """
    # Plugins of the scheduler wait with it; here none of them does, unless a cluster is read.
    load_when_used("asyncio")
    from allot.cli.explain import explain_object

    return explain_object(**options)
