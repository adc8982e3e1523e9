"""`allot apiserver`: the Kubernetes-compatible API server on its own."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allot.cli.audit_options import AuditArguments, audit_options
from allot.cli.components import READY, component_runner, set_up_logging, verbose_option
from allot.cli.errors import EXIT_OK, CommandError, address_error, storage_error
from allot.cli.gate_options import gate_options, gates_from_option
from allot.cli.signals import stopped_by_signals
from allot.rules import RuleSet

if TYPE_CHECKING:
    from allot.apiserver.running import ServerOptions


@click.command()
@click.option(
    "--storage",
    default="sqlite",
    metavar="sqlite:PATH|etcd:URL[,URL…]|memory",
    help="Where objects are kept. Default: sqlite, in the data directory.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".allot"),
    show_default=True,
    help="Where credentials, the kubeconfig and the SQLite file live.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6443,
    show_default=True,
    help="0 takes a free one.",
)
@click.option(
    "--bind-address",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. Beyond loopback, the API is exposed to the network.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the admin's kubeconfig. Default: DATA_DIR/kubeconfig.",
)
@click.option(
    "--token-auth-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='More users: lines of token,user,uid,"group1,group2". system:masters may do everything.',
)
@gate_options()
@click.option(
    "--pool-status-limit",
    nargs=2,
    type=(click.FloatRange(0), click.IntRange(1)),
    default=(5.0, 50),
    show_default=True,
    metavar="PER_SECOND BURST",
    help="How many ResourcePoolStatusRequests one user may create; 0 1 for no limit.",
)
@click.option(
    "--max-requests-inflight",
    type=click.IntRange(1),
    default=400,
    show_default=True,
    help="Reading requests that are answered at once; more wait, and are rejected with 429.",
)
@click.option(
    "--max-mutating-requests-inflight",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="Writing requests that are answered at once.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(1),
    help="Open connections. Default: 4096, or what the limit of file descriptors allows.",
)
@click.option(
    "--event-ttl",
    type=click.FloatRange(0),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long events are kept after they were last written. 0 keeps them for ever.",
)
@audit_options
@verbose_option
def apiserver(
    storage: str,
    data_dir: Path,
    port: int,
    bind_address: str,
    kubeconfig: Path | None,
    token_auth_file: Path | None,
    feature_gates: str,
    rules: RuleSet | None,
    pool_status_limit: tuple[float, int],
    max_requests_inflight: int,
    max_mutating_requests_inflight: int,
    max_connections: int | None,
    event_ttl: float,
    audit_policy_file: str | None,
    audit_log_path: str | None,
    audit_log_maxage: int,
    audit_log_maxbackup: int,
    audit_log_maxsize: int,
    verbose: int,
) -> int:
    """Run the API server: kubectl, client libraries, drivers and controllers can use it.

    It speaks TLS only and lets in its own admin, whose kubeconfig it writes, and those named in
    --token-auth-file. Ctrl-C stops it; what was written stays.
    """
    set_up_logging(verbose)
    from allot.apiserver.admission.creation_limits import CreationLimit
    from allot.apiserver.http.connections import ConnectionLimits
    from allot.apiserver.http.flow_control import FlowLimits
    from allot.apiserver.running import ServerOptions

    options = ServerOptions(
        data_dir,
        gates_from_option(feature_gates, rules),
        storage,
        bind_address,
        port,
        token_auth_file,
        kubeconfig,
        CreationLimit(*pool_status_limit),
        flow_limits=FlowLimits(max_requests_inflight, max_mutating_requests_inflight),
        connection_limits=ConnectionLimits(max_connections) if max_connections else None,
        event_ttl=timedelta(seconds=event_ttl),
        audit=AuditArguments(
            audit_policy_file,
            audit_log_path,
            audit_log_maxage,
            audit_log_maxbackup,
            audit_log_maxsize,
        ).options(),
    )
    _run(options)
    return EXIT_OK


def _run(options: ServerOptions) -> None:
    from allot.apiserver.audit.policy import AuditPolicyError
    from allot.apiserver.auth.authentication import TokenFileError
    from allot.apiserver.auth.credentials import CredentialError
    from allot.apiserver.running import AddressError
    from allot.storage.interface import StorageError

    try:
        with component_runner() as runner:
            runner.run(_serve(options))
    except StorageError as error:
        raise storage_error(error) from error
    except AddressError as error:
        raise address_error(error) from error
    except (AuditPolicyError, CredentialError, TokenFileError) as error:
        raise CommandError(str(error)) from error


async def _serve(options: ServerOptions) -> None:
    from allot.apiserver.running import running_server

    async with running_server(options) as running:
        with stopped_by_signals(running.stop):
            click.echo(f"allot API server: {running.url}, storage {options.storage}")
            click.echo(f"  kubectl --kubeconfig {running.kubeconfig} get namespaces")
            click.echo(READY)
            await running.serving
