"""`allot binding-controller`: makes devices ready for claims, or simulates it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import yaml

from allot.cli.components import (
    Component,
    Election,
    EndpointAddress,
    component_runner,
    endpoint_options,
    run_until_stopped,
    set_up_logging,
    verbose_option,
)
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.which_cluster import chosen_kubeconfig, cluster_options

if TYPE_CHECKING:
    from allot.client.client import Client
    from allot.controllers.binding import Attacher


class Options(NamedTuple):
    """The options of the command."""

    kubeconfig: Path | None
    context: str | None
    driver: str
    attempt_seconds: float
    max_attempts: int | None
    taint: bool
    taint_seconds: float
    hang_seconds: float
    leader_elect: bool
    lease: str
    bind_address: str
    port: int


@click.command("binding-controller")
@cluster_options()
@click.option("--driver", required=True, help="The driver whose devices are made ready.")
@click.option(
    "--script",
    default="",
    metavar="TEXT",
    help="What simulated devices do, such as 'gpu-0: hang; gpu-1: fail LinkDown after 2s; ready after 3s'.",
)
@click.option(
    "--script-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The same as YAML, with more choice.",
)
@click.option(
    "--attacher",
    metavar="FILE.py:NAME",
    help="Your own instead of a simulated one: a class in a file, or in a module (MODULE:NAME).",
)
@click.option(
    "--attempt-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    help="How long one attempt to attach may take.",
)
@click.option(
    "--max-attempts",
    type=click.IntRange(min=1),
    help="Report failure after so many. Default: try until the scheduler gives up.",
)
@click.option(
    "--taint/--no-taint", default=True, help="Taint devices that failed, so that none gets them."
)
@click.option(
    "--taint-seconds",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    help="How long they stay tainted; 0: until the DeviceTaintRule is deleted.",
)
@click.option(
    "--hang-seconds",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="A device that the scheduler gives up after so long has failed, too; 0: it may be picked again.",
)
@click.option("--leader-elect", is_flag=True, help="Of several replicas, let one work.")
@click.option(
    "--lease",
    metavar="NAMESPACE/NAME",
    default="",
    help="The Lease to agree on. Default: kube-system/DRIVER-binding.",
)
@endpoint_options(0, "/healthz, /readyz and /metrics")
@verbose_option
def binding_controller(
    kubeconfig: Path | None,
    context: str | None,
    driver: str,
    script: str,
    script_file: Path | None,
    attacher: str | None,
    attempt_seconds: float,
    max_attempts: int | None,
    taint: bool,
    taint_seconds: float,
    hang_seconds: float,
    leader_elect: bool,
    lease: str,
    bind_address: str,
    port: int,
    verbose: int,
) -> int:
    """Make devices ready that claims wait for (binding conditions).

    Without --attacher nothing is attached: conditions are set as the script says, at once if it does not
    say. Ctrl-C stops it; what was begun is continued at the next start.
    """
    set_up_logging(verbose)
    options = Options(
        kubeconfig,
        context,
        driver,
        attempt_seconds,
        max_attempts,
        taint,
        taint_seconds,
        hang_seconds,
        leader_elect,
        lease or f"kube-system/{driver.lower()}-binding",
        bind_address,
        port,
    )
    if "/" not in options.lease:
        raise CommandError(f"--lease {lease}: write NAMESPACE/NAME")
    works = _own(attacher) if attacher else _simulated(script, script_file)
    with component_runner() as runner:
        runner.run(_run(options, works))
    return EXIT_OK


def _simulated(script: str, script_file: Path | None) -> Attacher:
    from allot.controllers.binding.simulation import (
        ScriptError,
        SimulatedAttacher,
        parse_script,
        read_script,
    )

    try:
        behaviours = parse_script(script)
    except ScriptError as error:
        raise CommandError(f"--script: {error}") from None
    if script_file is not None:
        try:
            behaviours += read_script(yaml.safe_load(script_file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError, yaml.YAMLError, ScriptError) as error:
            raise CommandError(f"{script_file}: {error}") from None
    return SimulatedAttacher(behaviours, report=echo_text)


def _own(source: str) -> Attacher:
    """The user's attacher, constructed without arguments."""
    from allot.controllers.binding import Attacher

    place, _, name = source.rpartition(":")
    try:
        if place.endswith(".py"):
            module_name = Path(place).stem
            spec = importlib.util.spec_from_file_location(module_name, place)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[module_name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
        made = getattr(module, name)()
    except Exception as error:
        raise CommandError(f"--attacher {source}: {type(error).__name__}: {error}") from error
    if not isinstance(made, Attacher):
        raise CommandError(f"--attacher {source}: not a subclass of Attacher")
    return made


async def _run(options: Options, attacher: Attacher) -> None:
    from allot.client.connection import connect
    from allot.client.errors import ClientError
    from allot.client.leader_election import ElectionTimes
    from allot.controllers.binding import (
        AttemptLimits,
        BindingController,
        BindingMetrics,
        BindingSettings,
        Quarantine,
        TaintRules,
    )
    from allot.endpoints import ComponentEndpoints

    try:
        kubeconfig = chosen_kubeconfig(options.kubeconfig, options.context)
        client = connect(kubeconfig, options.context, user_agent="allot-binding-controller")
    except ClientError as error:
        raise CommandError(str(error)) from error
    limits = AttemptLimits(
        attach_seconds=options.attempt_seconds, max_attempts=options.max_attempts
    )
    quarantine = Quarantine()
    if options.taint:
        seconds = options.taint_seconds or None
        quarantine = TaintRules(client, options.driver, seconds=seconds)
    metrics = BindingMetrics()
    settings = BindingSettings(limits, hang_seconds=options.hang_seconds or None)
    controller = BindingController(
        client, options.driver, attacher, settings, quarantine=quarantine, observer=metrics
    )
    click.echo(f"allot binding-controller: {options.driver}")
    await warn_about_driver(client, options.driver)
    election = None
    if options.leader_elect:
        namespace, _, name = options.lease.partition("/")
        election = Election(namespace, name, ElectionTimes())
    pages = ComponentEndpoints(lambda: not controller.is_starting, lambda: metrics.registry)
    component = Component(client, controller.run, lambda: controller.is_ready, pages)
    await run_until_stopped(
        component, election, EndpointAddress(options.bind_address, options.port)
    )


async def warn_about_driver(client: Client, driver: str) -> None:
    """A driver without slices may come later. It may as well be misspelled."""
    from allot.api.messages import no_slice_of_driver
    from allot.client.errors import ClientError
    from allot.client.options import Scope
    from allot.client.resources import RESOURCE_SLICES

    try:
        scope = Scope(field_selector=f"spec.driver={driver}")
        if (await client.list_page(RESOURCE_SLICES, scope, limit=1)).items:
            return
        others = await client.list(RESOURCE_SLICES)
    except ClientError:
        return  # the controller reports what it cannot read
    text = no_slice_of_driver(driver, {slice_.spec.driver for slice_ in others.items})
    click.echo(f"warning: {text}", err=True)
