"""`allot scheduler`: the scheduler on its own, against any Kubernetes API server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

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
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.gate_options import gate_options, gates_from_option
from allot.cli.scheduler_configuration import load_configuration
from allot.cli.which_cluster import chosen_kubeconfig, cluster_options
from allot.features import FeatureGates
from allot.rules import RuleSet

if TYPE_CHECKING:
    from allot.scheduler.configuration import SchedulerConfiguration
    from allot.scheduler.framework.deadlines import DecisionLimits


@click.command()
@cluster_options()
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A KubeSchedulerConfiguration file.",
)
@gate_options("as the configuration says, or seeds")
@click.option(
    "--leader-elect/--no-leader-elect",
    default=None,
    help="Of several replicas, let one schedule. Default: as the configuration says.",
)
@endpoint_options(10259, "/healthz, /readyz, /metrics and /debug/explain/NAMESPACE/POD")
@click.option(
    "--debug-token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Requests with the token in this file may read /debug; without a file no request may.",
)
@click.option(
    "--decision-timeout",
    default="30s",
    show_default=True,
    metavar="DURATION",
    help="How long a decision about one pod may take, all nodes together. DynamicResourcesArgs.filterTimeout limits each node.",
)
@verbose_option
def scheduler(
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
    feature_gates: str,
    rules: RuleSet | None,
    leader_elect: bool | None,
    bind_address: str,
    port: int,
    debug_token_file: Path | None,
    decision_timeout: str,
    verbose: int,
) -> int:
    """Schedule pods, and allocate devices to their claims.

    Works with `allot apiserver` and with Kubernetes. Ctrl-C stops it; decisions that were not
    written are made again at the next start.
    """
    set_up_logging(verbose)
    pages = PageOptions(EndpointAddress(bind_address, port), _token(debug_token_file))
    configuration = load_configuration(config, rules)
    gates = gates_from_option(feature_gates, configuration.rules)
    with component_runner() as runner:
        limits = decision_limits(decision_timeout)
        runner.run(_run(kubeconfig, context, configuration, gates, leader_elect, pages, limits))
    return EXIT_OK


class PageOptions(NamedTuple):
    """The address of the scheduler's endpoints, and the token for /debug."""

    address: EndpointAddress
    debug_token: str


def _token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {error}") from error


async def _run(
    kubeconfig: Path | None,
    context: str | None,
    configuration: SchedulerConfiguration,
    gates: FeatureGates,
    leader_elect: bool | None,
    pages: PageOptions,
    limits: DecisionLimits,
) -> None:
    from allot.client.connection import connect
    from allot.client.errors import ClientError
    from allot.client.leader_election import ElectionTimes
    from allot.client.rate_limits import RequestLimit
    from allot.scheduler.assembly import SchedulerProcess
    from allot.scheduler.configuration import ConfigurationError
    from allot.scheduler.endpoints import SchedulerEndpoints

    try:
        configured = Path(configuration.kubeconfig) if configuration.kubeconfig else None
        source = chosen_kubeconfig(kubeconfig or configured, context)
        client = connect(source, context, limit=RequestLimit(), user_agent="allot-scheduler")
        process = SchedulerProcess(client, configuration, gates, limits=limits)
    except (ConfigurationError, ClientError) as error:
        raise CommandError(str(error)) from error
    wanted = configuration.leader_election
    election = None
    if wanted.enabled if leader_elect is None else leader_elect:
        times = ElectionTimes(int(wanted.lease_seconds), wanted.renew_seconds, wanted.retry_seconds)
        election = Election(wanted.namespace, wanted.name, times)
    rules = configuration.rules or RuleSet.SEEDS
    click.echo(f"allot scheduler: {', '.join(process.profiles)}, rules {rules}")
    component = Component(
        client,
        process.run,
        lambda: process.informers.has_synced,
        SchedulerEndpoints(process, pages.debug_token),
    )
    await run_until_stopped(component, election, pages.address)


def decision_limits(timeout: str) -> DecisionLimits:
    """The limits of decisions, from the command line; `CommandError` for an invalid duration."""
    from allot.scheduler.configuration import ConfigurationError, duration_seconds
    from allot.scheduler.framework.deadlines import DecisionLimits

    try:
        seconds = duration_seconds(timeout, "--decision-timeout")
    except ConfigurationError as error:
        raise CommandError(str(error)) from error
    if seconds <= 0:
        raise CommandError(f"--decision-timeout: {timeout} is not a positive duration")
    return DecisionLimits(seconds)
