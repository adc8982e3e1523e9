"""`allot exporter`: metrics of the devices and pending pods of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from allot.cli.components import (
    Component,
    EndpointAddress,
    component_runner,
    endpoint_options,
    run_until_stopped,
    set_up_logging,
    verbose_option,
)
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.gate_options import rules_option
from allot.cli.scheduler_configuration import load_configuration
from allot.cli.source_options import OF_A_CLUSTER
from allot.cli.which_cluster import chosen_kubeconfig, cluster_error, cluster_options

if TYPE_CHECKING:
    from allot.cli.cluster_exporter import ClusterExporter

_AGENT: Final = "allot-exporter"
_PORT: Final = 9475


@click.command()
@cluster_options()
@endpoint_options(_PORT, "metrics and health")
@click.option(
    "--interval",
    type=click.FloatRange(min=1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the cluster is read.",
)
@click.option("--no-nodes", is_flag=True, help="No series per node.")
@click.option("--no-pools", is_flag=True, help="No series per pool.")
@click.option(
    "--max-series",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    help="Leave out series per node, or per pool, if there are more.",
)
@click.option(
    "--scheduler-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The KubeSchedulerConfiguration of the scheduler. Default: Kubernetes' default.",
)
@rules_option(OF_A_CLUSTER)
@click.option("--once", is_flag=True, help="Print the metrics once, and serve nothing.")
@verbose_option
def exporter(
    kubeconfig: Path | None,
    context: str | None,
    bind_address: str,
    port: int,
    interval: float,
    no_nodes: bool,
    no_pools: bool,
    max_series: int,
    scheduler_config: Path | None,
    rules: str | None,
    once: bool,
    verbose: int,
) -> int:
    """Serve metrics of a cluster for Prometheus: devices, capacity, what still fits, pending pods.

    Of any cluster, whatever scheduler it has; the right to list is enough. `allot up` serves the same at
    /metrics/devices of its API server. deploy/ has a Grafana dashboard and alerts.

    \b
    allot exporter --context prod --bind-address 0.0.0.0
    allot exporter --once | grep allot_pending_pods
    """
    from allot.cli.cluster_exporter import ClusterExporter
    from allot.client.connection import connect
    from allot.client.errors import ClientError
    from allot.questions.cluster_metrics import MetricsDetail
    from allot.questions.observed_cluster import UnreadableError
    from allot.rules import RuleSet

    set_up_logging(verbose)
    asked = RuleSet(rules) if rules is not None else None
    configuration = load_configuration(scheduler_config, asked)
    detail = MetricsDetail(not no_nodes, not no_pools, max_series)
    try:
        with component_runner() as runner:

            async def run() -> None:
                client = connect(chosen_kubeconfig(kubeconfig, context), context, user_agent=_AGENT)
                made = ClusterExporter(client, detail, configuration, configuration.rules)
                if once:
                    await _print(made)
                    await client.close()
                else:
                    await _serve(made, interval, EndpointAddress(bind_address, port))

            runner.run(run())
    except UnreadableError as error:
        raise CommandError(str(error)) from None
    except ClientError as error:
        raise cluster_error(error, kubeconfig, context) from error
    return EXIT_OK


async def _print(made: ClusterExporter) -> None:
    await made.update()
    page = await made.page("")
    click.echo(page.body.decode(), nl=False)


async def _serve(made: ClusterExporter, interval: float, address: EndpointAddress) -> None:
    from allot.endpoints import ComponentEndpoints

    await made.update()  # says what is wrong
    pages = ComponentEndpoints(lambda: made.has_figures, lambda: made.registry)
    click.echo(f"allot exporter: http://{address.host}:{address.port}/metrics")

    async def work() -> None:
        await made.run(interval)

    await run_until_stopped(
        Component(made.client, work, lambda: made.has_figures, pages), None, address
    )
