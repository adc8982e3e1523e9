"""`allot up`: a whole cluster on this machine."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import click

from allot.cli.apply import StartObjects
from allot.cli.at_option import Moment, MomentType
from allot.cli.audit_options import AuditArguments, audit_options
from allot.cli.cluster_options import ClusterOptions
from allot.cli.cluster_waiting import WAIT_SECONDS
from allot.cli.completers import complete_hardware
from allot.cli.components import verbose_option
from allot.cli.dashboard_address import DEFAULT_PORT
from allot.cli.data_directory import data_dir_option
from allot.cli.detached import Terminal, run_detached
from allot.cli.driver_options import driver_options, driver_options_of
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.gate_options import gate_options
from allot.cli.last_start import (
    EXAMPLE_HARDWARE,
    default_hardware,
    with_absolute_paths,
)
from allot.cli.moments import FORMS
from allot.cli.nodes import load_all
from allot.cli.running_cluster import DashboardRequest, UpRequest, run_cluster
from allot.rules import RuleSet


@click.command()
@data_dir_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6443,
    show_default=True,
    help="The API server's port; 0 takes a free one.",
)
@click.option(
    "--storage",
    default="sqlite",
    metavar="sqlite:PATH|etcd:URL[,URL…]|memory",
    help="Where objects are kept. Default: sqlite, in the data directory.",
)
@click.option(
    "--hardware",
    multiple=True,
    metavar="FILE[=N]",
    shell_complete=complete_hardware,
    help="Simulated nodes with their devices: a file or a profile (`allot nodes --profiles`), N nodes. "
    f"Default: as at the last start; in a new data directory {', '.join(EXAMPLE_HARDWARE)}.",
)
@click.option("--empty", is_flag=True, help="Start without hardware: no nodes, no device classes.")
@click.option(
    "-f",
    "--filename",
    "manifests",
    multiple=True,
    type=click.Path(allow_dash=True),
    metavar="FILE|DIR",
    help="Apply these manifests when the cluster is ready. What kubectl get -o yaml prints is restored with its "
    "status. With Nodes or ResourceSlices among them, no other hardware is the default.",
)
@click.option(
    "--from",
    "clone",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Start as the cluster that `allot clone` or `allot record` wrote to this file: its nodes, devices and claims, "
    "and its pods where they ran. No other hardware is the default.",
)
@click.option(
    "--at",
    type=MomentType(),
    metavar="TIME",
    help=f"With --from and a recording: the cluster at this time. Default: its end. {FORMS}.",
)
@click.option(
    "-d", "--detach", is_flag=True, help="Return when it is ready; `allot down` stops it."
)
@click.option(
    "--wait",
    is_flag=True,
    help=f"As --detach, and return when nodes are ready and pods run, or after {WAIT_SECONDS:g} s.",
)
@click.option(
    "--merge-kubeconfig",
    is_flag=True,
    help="Add the cluster to your kubeconfig, as its current context `allot`.",
)
@click.option(
    "--scheduler-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A KubeSchedulerConfiguration file.",
)
@gate_options("as the scheduler's configuration says, or seeds")
@click.option("--no-scheduler", is_flag=True, help="Leave scheduling to another scheduler.")
@click.option("--no-controllers", is_flag=True, help="Run no controllers.")
@click.option(
    "--controllers",
    default="*",
    show_default=True,
    metavar="*,NAME,-NAME",
    help="Which controllers run: * the usual ones, NAME this one, -NAME not this one.",
)
@click.option("--no-nodes", is_flag=True, help="Simulate no nodes, and have no hardware.")
@click.option(
    "--all-nodes",
    is_flag=True,
    help="Simulate every node, not only those labelled allot.dev/simulated=true. No hardware is the default then.",
)
@click.option(
    "--complete-annotation",
    default="",
    metavar="NAME",
    help='Pods with this annotation and the value "true" succeed as soon as they start.',
)
@driver_options
@audit_options
@click.option(
    "--dashboard-port",
    type=click.IntRange(0, 65535),
    help=f"The port of the dashboard; 0 takes a free one. Default: {DEFAULT_PORT}, or a free one.",
)
@click.option("--no-dashboard", is_flag=True, help="Serve no dashboard.")
@click.option("--separate", is_flag=True, help="Run every component in a separate process.")
@verbose_option
def up(
    data_dir: Path,
    port: int,
    storage: str,
    hardware: tuple[str, ...],
    empty: bool,
    manifests: tuple[str, ...],
    clone: str | None,
    at: Moment | None,
    detach: bool,
    wait: bool,
    merge_kubeconfig: bool,
    scheduler_config: Path | None,
    feature_gates: str,
    rules: RuleSet | None,
    no_scheduler: bool,
    no_controllers: bool,
    controllers: str,
    no_nodes: bool,
    all_nodes: bool,
    complete_annotation: str,
    plugin_dir: Path | None,
    unregistered_drivers: str | None,
    driver_grace_seconds: float,
    audit_policy_file: str | None,
    audit_log_path: str | None,
    audit_log_maxage: int,
    audit_log_maxbackup: int,
    audit_log_maxsize: int,
    dashboard_port: int | None,
    no_dashboard: bool,
    separate: bool,
    verbose: int,
) -> int:
    """Start a cluster with example hardware: API server, scheduler, controllers, simulated nodes.

    allot's commands find it from the same directory; for kubectl and any other client the command prints what to
    type. Ctrl-C stops it. The state stays, unless it is in memory, and the next start continues with it.

    \b
    allot up
    allot up --hardware gpu-server=4 -f manifests/ --wait
    allot up --from prod.allot
    """
    started = time.monotonic()
    if hardware and (no_nodes or empty):
        option = "--no-nodes" if no_nodes else "--empty"
        raise CommandError(f"--hardware needs simulated nodes: leave out {option}")
    objects = StartObjects.read(manifests, clone, at)
    feature_gates, rules = _of_clone(objects, feature_gates, rules)
    asked = ClusterOptions(
        data_dir=data_dir,
        port=port,
        storage=storage,
        hardware=_hardware(
            data_dir, hardware, manifests, has_default=not (empty or no_nodes or all_nodes or clone)
        ),
        scheduler_config=scheduler_config,
        feature_gates=feature_gates,
        rules=_rules(scheduler_config, rules),
        controllers="" if no_controllers else controllers,
        has_scheduler=not no_scheduler,
        has_nodes=not no_nodes,
        all_nodes=all_nodes,
        complete_annotation=complete_annotation,
        drivers=driver_options_of(plugin_dir, unregistered_drivers, driver_grace_seconds),
        verbose=verbose,
        audit=AuditArguments(
            audit_policy_file,
            audit_log_path,
            audit_log_maxage,
            audit_log_maxbackup,
            audit_log_maxsize,
        ),
    )
    asked.audit.options()  # says what is missing
    if plugin_dir is not None and no_nodes:
        raise CommandError("--plugin-dir needs simulated nodes: leave out --no-nodes")
    if asked.hardware != EXAMPLE_HARDWARE:
        load_all(hardware or asked.hardware)  # says what is wrong, with the names as given
    page = DashboardRequest(dashboard_port, is_wanted=not no_dashboard)
    request = UpRequest(
        asked, objects, separate, merge_kubeconfig, detach or wait, wait, started, page
    )
    if request.detach:
        return run_detached(data_dir, partial(run_cluster, request))
    run_cluster(request, Terminal())
    return EXIT_OK


def _of_clone(
    objects: StartObjects, feature_gates: str, rules: RuleSet | None
) -> tuple[str, RuleSet | None]:
    """Feature gates and rules: those of the command line, or of the cloned cluster."""
    manifest = objects.configuration
    if manifest is None:
        return feature_gates, rules
    from allot.cli.snapshots import clone_configuration
    from allot.client.cluster_gates import rules_of_cluster
    from allot.client.snapshot import Snapshot
    from allot.features import GATES, Stage

    cluster = Snapshot()
    cluster.server_version, cluster.gates = clone_configuration(manifest)
    states = {
        name: state
        for name, state in cluster.gates.states.items()
        if name in GATES and GATES[name].stage is not Stage.GA
    }
    known = ",".join(f"{name}={str(state).lower()}" for name, state in states.items())
    return feature_gates or known, rules_of_cluster(cluster, rules)


def _rules(scheduler_config: Path | None, rules: RuleSet | None) -> RuleSet:
    """The rules of the command line, or of the scheduler's configuration; `CommandError` if that is invalid."""
    if scheduler_config is None:
        return rules or RuleSet.SEEDS
    from allot.cli.scheduler_configuration import load_configuration

    return load_configuration(scheduler_config, rules).rules or RuleSet.SEEDS


def _hardware(
    data_dir: Path, named: tuple[str, ...], manifests: tuple[str, ...], *, has_default: bool
) -> tuple[str, ...]:
    if named:
        return with_absolute_paths(named)
    if not has_default:
        return ()
    hardware = default_hardware(data_dir)
    return () if hardware and _have_hardware(manifests) else hardware


def _have_hardware(manifests: tuple[str, ...]) -> bool:
    """Whether nodes or devices are among the manifests. Standard input can be read only once, and is not looked at."""
    files = [source for source in manifests if source != "-"]
    if not files:
        return False
    from allot.cli.manifests import read_all

    return any(manifest.kind in ("Node", "ResourceSlice") for manifest in read_all(files))
