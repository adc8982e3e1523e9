"""`allot nodes`: simulated nodes and their devices, against any Kubernetes API server."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allot.cli.completers import complete_hardware
from allot.cli.components import (
    Component,
    EndpointAddress,
    component_runner,
    endpoint_options,
    run_until_stopped,
    set_up_logging,
    verbose_option,
)
from allot.cli.driver_options import driver_options, driver_options_of
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.which_cluster import chosen_kubeconfig, cluster_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from allot.driver.hardware import Hardware
    from allot.kubelet.settings import KubeletSettings
    from allot.simulation import SimulatedHardware


@click.command()
@cluster_options()
@click.option(
    "--hardware",
    multiple=True,
    metavar="FILE[=N]",
    shell_complete=complete_hardware,
    help="Create these nodes, N of them, with their devices: a file, or a profile (see --profiles).",
)
@click.option(
    "--driver-kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Publish the devices as the user of this file. Default: as that of --kubeconfig.",
)
@click.option(
    "--profiles",
    "lists_profiles",
    is_flag=True,
    help="List the profiles with their nodes and devices, and end.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the nodes, ResourceSlices and DeviceClasses of --hardware as YAML, and end. Needs no cluster.",
)
@click.option(
    "--all",
    "all_nodes",
    is_flag=True,
    help="Serve every node, not only those labelled allot.dev/simulated=true. Never in a cluster with real nodes.",
)
@click.option(
    "--run-seconds",
    type=click.FloatRange(min=0),
    help="How long containers without the annotation run. Default: until they are stopped.",
)
@click.option(
    "--job-run-seconds",
    type=click.FloatRange(min=0),
    help="The same for pods of Jobs. Default: as all others.",
)
@click.option(
    "--start-seconds",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="How long pods without the annotation take to start.",
)
@click.option(
    "--complete-annotation",
    default="",
    metavar="NAME",
    help='Pods with this annotation and the value "true" succeed as soon as they start.',
)
@driver_options
@endpoint_options(0, "/healthz, /readyz and /metrics")
@verbose_option
def nodes(
    kubeconfig: Path | None,
    context: str | None,
    hardware: tuple[str, ...],
    driver_kubeconfig: Path | None,
    lists_profiles: bool,
    dry_run: bool,
    all_nodes: bool,
    run_seconds: float | None,
    job_run_seconds: float | None,
    start_seconds: float,
    complete_annotation: str,
    plugin_dir: Path | None,
    unregistered_drivers: str | None,
    driver_grace_seconds: float,
    bind_address: str,
    port: int,
    verbose: int,
) -> int:
    """Simulate nodes: pods bound to them run, end and are deleted, without containers.

    Serves nodes with the label allot.dev/simulated=true, whichever client creates them and when. Ctrl-C stops it;
    the next start continues. Annotations of pods control them: docs/nodes.md has them.
    """
    set_up_logging(verbose)
    if lists_profiles:
        _list_profiles()
        return EXIT_OK
    from allot.kubelet.settings import KubeletSettings

    drivers = driver_options_of(plugin_dir, unregistered_drivers, driver_grace_seconds)
    settings = KubeletSettings(
        all_nodes=all_nodes,
        run_seconds=run_seconds,
        job_run_seconds=job_run_seconds,
        start_seconds=start_seconds,
        complete_annotation=complete_annotation,
        plugin_dir=drivers.plugin_dir,
        unregistered_drivers=drivers.unregistered_drivers,
        slice_wipe_seconds=drivers.driver_grace_seconds,
    )
    described = load_all(hardware)
    if dry_run:
        _print_objects(described)
        return EXIT_OK
    with component_runner() as runner:
        address = EndpointAddress(bind_address, port)
        runner.run(_run(kubeconfig, context, driver_kubeconfig, settings, described, address))
    return EXIT_OK


def _list_profiles() -> None:
    from allot.driver.loading import load_hardware, profiles

    width = max(map(len, profiles()))
    for name in profiles():
        hardware = load_hardware(name)
        counts = _devices_by_driver(hardware)
        of_each = ", ".join(f"{count} of {driver}" for driver, count in counts.items())
        echo_text(f"{name:{width}} {len(hardware.nodes)} node(s): {', '.join(counts)}")
        echo_text(f"{'':{width}} {counts.total()} device(s): {of_each}")
        echo_text(f"{'':{width}} {hardware.description}")


def _devices_by_driver(hardware: Hardware) -> Counter[str]:
    counts: Counter[str] = Counter()
    for key in sorted(hardware.sources):
        counts[key.driver] += sum(len(each.devices or ()) for each in hardware.slices(key))
    return counts


def _print_objects(described: Sequence[Hardware]) -> None:
    """The nodes, slices and classes as YAML, as they would be created."""
    from allot.cli.hardware_output import documents_of, print_yaml

    kinds: Counter[str] = Counter()
    for hardware in described:
        for document in documents_of(hardware):
            kinds[document["kind"]] += 1
            print_yaml(document)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "no --hardware"
    click.echo(f"dry run, nothing was created: {counted}", err=True)


def load_all(references: Sequence[str]) -> list[Hardware]:
    """The hardware of these references; `CommandError` if two of them overlap."""
    from allot.driver.errors import HardwareError
    from allot.driver.loading import load_hardware

    try:
        found = [load_hardware(reference) for reference in references]
    except HardwareError as error:
        raise CommandError(str(error)) from error
    owners: dict[object, str] = {}
    for reference, hardware in zip(references, found, strict=True):
        things = {f"hardware {hardware.name}", *(f"node {node.name}" for node in hardware.nodes)}
        things |= {f"pool {key.pool} of {key.driver}" for key in hardware.sources}
        for thing in sorted(things):
            if thing in owners:
                raise CommandError(
                    f"--hardware {reference}: {thing} is in {owners[thing]} already; "
                    "give one of them another name"
                )
            owners[thing] = reference
    return found


async def _run(
    kubeconfig: Path | None,
    context: str | None,
    driver_kubeconfig: Path | None,
    settings: KubeletSettings,
    described: Sequence[Hardware],
    address: EndpointAddress,
) -> None:
    from allot.client.connection import connect
    from allot.client.errors import ClientError
    from allot.endpoints import ComponentEndpoints
    from allot.simulation import SimulatedHardware

    try:
        client = connect(chosen_kubeconfig(kubeconfig, context), context, user_agent="allot-nodes")
        drivers = client
        if driver_kubeconfig is not None:
            drivers = connect(driver_kubeconfig, user_agent="allot-driver")
    except ClientError as error:
        raise CommandError(str(error)) from error
    click.echo(f"allot nodes: {'all nodes' if settings.all_nodes else settings.node_selector}")
    for hardware in described:
        nodes, pools = len(hardware.nodes), len(hardware.sources)
        echo_text(f"  {hardware.name}: {nodes} node(s), {pools} pool(s)")
    simulation = SimulatedHardware(client, settings, described, drivers)
    pages = ComponentEndpoints(lambda: simulation.is_ready, lambda: simulation.registry)
    component = Component(client, lambda: _simulate(simulation), lambda: simulation.is_ready, pages)
    await run_until_stopped(component, None, address)


async def _simulate(simulation: SimulatedHardware) -> None:
    from allot.client.errors import ClientError
    from allot.driver.publisher import NoSlicesServedError
    from allot.kubelet.registration import ForeignNodeError

    try:
        await simulation.create_nodes()
        await simulation.run()
    except* (ClientError, ForeignNodeError, NoSlicesServedError) as errors:
        raise CommandError(_first_message(errors)) from errors


def _first_message(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)
