"""`allot controller-manager`: the controllers on their own, against any Kubernetes API server."""

from __future__ import annotations

from pathlib import Path

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
from allot.cli.which_cluster import chosen_kubeconfig, cluster_options
from allot.features import FeatureGates
from allot.rules import RuleSet


@click.command("controller-manager")
@cluster_options()
@click.option(
    "--controllers",
    default="*",
    show_default=True,
    metavar="*,NAME,-NAME",
    help="Which ones run: * the usual ones, NAME this one, -NAME not this one.",
)
@click.option(
    "--use-service-account-credentials",
    is_flag=True,
    help="Let each controller use a service account of its own in kube-system, whose tokens the user of the kubeconfig asks for.",
)
@gate_options()
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Of several replicas, let one work.",
)
@click.option("--leader-elect-resource-namespace", default="kube-system", show_default=True)
@click.option("--leader-elect-resource-name", default="allot-controller-manager", show_default=True)
@endpoint_options(10257, "/healthz, /readyz and /metrics")
@verbose_option
def controller_manager(
    kubeconfig: Path | None,
    context: str | None,
    controllers: str,
    use_service_account_credentials: bool,
    feature_gates: str,
    rules: RuleSet | None,
    leader_elect: bool,
    leader_elect_resource_namespace: str,
    leader_elect_resource_name: str,
    bind_address: str,
    port: int,
    verbose: int,
) -> int:
    """Run the cluster's controllers.

    Claims from templates and their reservations, pool status, evictions, garbage, namespaces, quotas,
    workloads. Works with `allot apiserver` and, with those that Kubernetes lacks, next to its own manager.
    Ctrl-C stops it; what is half done is finished at the next start.
    """
    set_up_logging(verbose)
    lease = None
    if leader_elect:
        lease = leader_elect_resource_namespace, leader_elect_resource_name
    gates = gates_from_option(feature_gates, rules)
    with component_runner() as runner:
        runner.run(
            _run(
                kubeconfig,
                context,
                controllers,
                use_service_account_credentials,
                gates,
                lease,
                EndpointAddress(bind_address, port),
            )
        )
    return EXIT_OK


async def _run(
    kubeconfig: Path | None,
    context: str | None,
    controllers: str,
    has_accounts: bool,
    gates: FeatureGates,
    lease: tuple[str, str] | None,
    address: EndpointAddress,
) -> None:
    from allot.client.client import Client
    from allot.client.component_users import ACCOUNT_NAMESPACE, controller_account
    from allot.client.connection import connect
    from allot.client.errors import ClientError
    from allot.client.leader_election import ElectionTimes
    from allot.client.rate_limits import RequestLimit
    from allot.controllers.manager import ControllerManager
    from allot.controllers.registry import UnknownControllerError, select_controllers
    from allot.endpoints import ComponentEndpoints

    kubeconfig = chosen_kubeconfig(kubeconfig, context)
    try:
        factories = select_controllers(
            text.strip() for text in controllers.split(",") if text.strip()
        )
        client = connect(
            kubeconfig, context, limit=RequestLimit(), user_agent="allot-controller-manager"
        )
    except (UnknownControllerError, ClientError) as error:
        raise CommandError(str(error)) from error

    def controller_client(controller: str) -> Client:
        return connect(
            kubeconfig,
            context,
            limit=RequestLimit(),
            user_agent=f"allot-controller-manager/{controller}",
            service_account=(ACCOUNT_NAMESPACE, controller_account(controller)),
        )

    own = controller_client if has_accounts else None
    manager = ControllerManager(client, factories, gates, own)
    election = Election(*lease, ElectionTimes()) if lease else None
    click.echo(f"allot controller-manager: {len(factories)} controllers")
    pages = ComponentEndpoints(lambda: not manager.is_starting, lambda: manager.registry)
    component = Component(client, manager.run, lambda: manager.is_ready, pages)
    await run_until_stopped(component, election, address)
