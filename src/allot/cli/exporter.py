"""`allot exporter`: metrics of the devices and pending pods of a cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
from allot.cli.live_clusters import follow
from allot.cli.question_options import ClusterArguments
from allot.cli.source_options import OF_A_CLUSTER, scheduler_config_option
from allot.cli.which_cluster import cluster_options

if TYPE_CHECKING:
    from allot.questions.cluster_metrics import MetricsDetail

_AGENT: Final = "allot-exporter"
_PORT: Final = 9475


@click.command()
@cluster_options()
@endpoint_options(_PORT, "metrics and health")
@click.option(
    "--interval",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Compute metrics at most once in so many seconds.",
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
@scheduler_config_option
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

    Of any cluster, whatever scheduler it has; the right to list and watch is enough. The cluster is followed: a
    scrape shows it as it is now, and costs nothing while it does not change. `allot up` serves the same at
    /metrics/devices of its API server. deploy/ has a Grafana dashboard and alerts.

    \b
    allot exporter --context prod --bind-address 0.0.0.0
    allot exporter --once | grep allot_pending_pods
    """
    from allot.questions.cluster_metrics import MetricsDetail
    from allot.questions.observed_cluster import UnreadableError
    from allot.rules import RuleSet

    set_up_logging(verbose)
    asked = RuleSet(rules) if rules is not None else None
    cluster = ClusterArguments(
        kubeconfig=kubeconfig, context=context, scheduler_config=scheduler_config, rules=asked
    )
    detail = MetricsDetail(not no_nodes, not no_pools, max_series)
    if once:
        _print(cluster, detail)
        return EXIT_OK
    try:
        with component_runner() as runner:
            serving = _serve(cluster, detail, interval, EndpointAddress(bind_address, port))
            runner.run(serving)
    except UnreadableError as error:
        raise CommandError(str(error)) from None
    return EXIT_OK


def _print(cluster: ClusterArguments, detail: MetricsDetail) -> None:
    """The metrics of the cluster as it is now."""
    from prometheus_client import CollectorRegistry, generate_latest

    from allot.questions.cluster_metrics import ClusterMetrics, compute_figures

    registry = CollectorRegistry()
    metrics = ClusterMetrics(registry)
    began = time.monotonic()
    observed = cluster.load(_AGENT)
    figures = compute_figures(observed, detail)
    metrics.update(observed, figures, time.monotonic() - began)
    click.echo(generate_latest(registry).decode(), nl=False)


def _serve(
    cluster: ClusterArguments, detail: MetricsDetail, interval: float, address: EndpointAddress
) -> Coroutine[Any, Any, None]:
    """Follow the cluster, and serve its metrics, until stopped; `CommandError` if it does not answer now."""
    from allot.cli.cluster_exporter import ClusterExporter, ExporterEndpoints, FollowedCluster
    from allot.client.supervision import wait_until_ready
    from allot.questions.cluster_metrics import Waits
    from allot.questions.observed_cluster import KINDS

    waits = Waits()
    followed = follow(cluster, _AGENT, KINDS, waits.change)
    made = ClusterExporter(FollowedCluster(followed), detail, interval, waits)

    async def work() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(followed.run())
            await wait_until_ready(lambda: not followed.is_loading)
            await made.refresh()  # says what is wrong

    click.echo(f"allot exporter: http://{address.host}:{address.port}/metrics")
    pages = ExporterEndpoints(made)
    return run_until_stopped(Component(None, work, lambda: made.has_figures, pages), None, address)
