"""Runs an API server with its store, credentials, socket and kubeconfig."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from allot.apiserver.admission.creation_limits import CreationLimit
from allot.apiserver.assembly import ApiServer
from allot.apiserver.audit.auditor import Auditor
from allot.apiserver.audit.log_file import LogFile, Rotation
from allot.apiserver.audit.policy import read_policy
from allot.apiserver.auth import authentication
from allot.apiserver.auth.credentials import (
    Credentials,
    exposed_files,
    prepare_credentials,
    write_kubeconfig,
)
from allot.apiserver.auth.service_account_tokens import ServiceAccountTokens
from allot.apiserver.http.component_health import PROCESSES_FILE
from allot.apiserver.http.connections import ConnectionLimits
from allot.apiserver.http.flow_control import FlowLimits
from allot.apiserver.http.http_exchange import TransferLimits
from allot.apiserver.http.serving import Server, connections_for, listen, raise_file_limit
from allot.apiserver.registry.event_expiry import DEFAULT_TTL
from allot.apiserver.watch_cache.codecs import prepare_for_pods
from allot.client.component_users import CONTROLLER_MANAGER, DRIVERS, NODES, SCHEDULER
from allot.client.wall_clock import utc_now, wall_clock
from allot.features import FeatureGates
from allot.storage.opening import open_store

log = logging.getLogger(__name__)

COMPONENT_KUBECONFIGS: Final = {
    "scheduler.kubeconfig": SCHEDULER,
    "controller-manager.kubeconfig": CONTROLLER_MANAGER,
    "nodes.kubeconfig": NODES,
    "driver.kubeconfig": DRIVERS,
}
"""In the data directory, for components that run as processes of their own: allot's or Kubernetes'."""
ADMIN: Final = authentication.User(
    "allot-admin", groups=(authentication.MASTERS, authentication.AUTHENTICATED)
)


class AddressError(Exception):
    """The server cannot listen there; the message says why."""


class AuditOptions(NamedTuple):
    """Where the audit log goes, and what it has."""

    policy_file: Path
    log_path: Path
    rotation: Rotation = Rotation()


class ServerOptions(NamedTuple):
    """The options of a server: data directory, storage, address, credentials and limits."""

    data_dir: Path
    gates: FeatureGates
    storage: str = "sqlite"
    bind_address: str = "127.0.0.1"
    port: int = 6443
    token_file: Path | None = None
    kubeconfig: Path | None = None
    """Where the admin's goes; in the data directory by default."""
    pool_status_limit: CreationLimit = CreationLimit()
    """How many ResourcePoolStatusRequests one user may create."""
    flow_limits: FlowLimits = FlowLimits()
    connection_limits: ConnectionLimits | None = None
    """As many connections as file descriptors allow by default."""
    transfer_limits: TransferLimits = TransferLimits()
    event_ttl: timedelta = DEFAULT_TTL
    """How long events are kept after they were last written; zero: for ever."""
    audit: AuditOptions | None = None
    shows_pending_writes: bool = False
    """Whether linked components see writes while they are committed."""


@dataclass(frozen=True)
class RunningServer:
    """A running server."""

    server: ApiServer
    credentials: Credentials
    url: str
    kubeconfig: Path
    serving: asyncio.Task[None]
    """Ends when the server does."""
    _web: Server

    def stop(self) -> None:
        """Finish requests in flight; watches end."""
        self.server.begin_shutdown()
        self._web.stop()


@asynccontextmanager
async def running_server(options: ServerOptions) -> AsyncIterator[RunningServer]:
    """A server that answers until the end of the block, or until it is stopped.

    Raises `AddressError`, `AuditPolicyError`, `CredentialError`, `StorageError` or `TokenFileError`, each with a sentence for users.
    """
    users = authentication.read_token_file(options.token_file) if options.token_file else {}
    auditor = _auditor(options.audit) if options.audit is not None else None
    limits = options.connection_limits or ConnectionLimits(connections_for(raise_file_limit()))
    pki = options.data_dir / "pki"
    try:
        options.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        credentials = prepare_credentials(pki, [options.bind_address], wall_clock())
        listener = listen(options.bind_address, options.port)
    except OSError as error:
        where = error.filename or f"{options.bind_address}:{options.port}"
        raise AddressError(f"{where}: {error.strerror or error}") from error
    host = f"[{options.bind_address}]" if ":" in options.bind_address else options.bind_address
    address = f"{host}:{listener.getsockname()[1]}"
    kubeconfig = options.kubeconfig or options.data_dir / "kubeconfig"
    with listener:
        store = await open_store(
            options.storage,
            options.data_dir,
            shows_pending_writes=options.shows_pending_writes,
        )
        try:
            server = ApiServer(
                store,
                options.gates,
                [
                    authentication.CertificateAuthenticator(),
                    authentication.StaticTokens(
                        {**users, **_component_users(credentials), credentials.admin_token: ADMIN}
                    ),
                ],
                ServiceAccountTokens(credentials.signing_key),
                event_ttl=options.event_ttl,
                address=lambda: address,
                pool_status_limit=options.pool_status_limit,
                flow_limits=options.flow_limits,
                transfer_limits=options.transfer_limits,
                auditor=auditor,
                client_ca=credentials.ca_file.read_text(),
                protects_volumes=True,
            )
            server.component_checks.register_processes(options.data_dir / PROCESSES_FILE)
            await server.start()
            web = Server(server.app, credentials, limits, server.metrics)
            owners = {
                options.data_dir / name: user.name for name, user in COMPONENT_KUBECONFIGS.items()
            }
            tokens = {path: credentials.component_token(name) for path, name in owners.items()}
            owners[kubeconfig], tokens[kubeconfig] = ADMIN.name, credentials.admin_token
            for path, name in owners.items():
                url = f"https://{address}"
                write_kubeconfig(path, url, credentials.ca_file, name, tokens[path])
            _warn_of_exposed_files(pki, *owners, options.token_file)
            serving = asyncio.create_task(web.serve(sockets=[listener]))
            # While the other components start, there is nothing else to do.
            asyncio.get_running_loop().call_soon(prepare_for_pods)
            running = RunningServer(
                server, credentials, f"https://{address}", kubeconfig, serving, web
            )
            try:
                yield running
            finally:
                running.stop()
                await serving
                await server.close()
        finally:
            await store.close()
            if auditor is not None:
                auditor.close()


def _auditor(options: AuditOptions) -> Auditor:
    policy = read_policy(options.policy_file)
    try:
        log_file = LogFile(options.log_path, options.rotation, utc_now)
    except OSError as error:
        raise AddressError(f"{options.log_path}: {error.strerror or error}") from error
    return Auditor(policy, log_file, utc_now)


def _component_users(credentials: Credentials) -> dict[str, authentication.User]:
    """The users of components by their tokens."""
    return {
        credentials.component_token(user.name): authentication.User(user.name, groups=user.groups)
        for user in COMPONENT_KUBECONFIGS.values()
    }


def _warn_of_exposed_files(pki: Path, *others: Path | None) -> None:
    for path, mode in exposed_files(pki, *(path for path in others if path is not None)):
        log.warning(
            "%s can be read or written by others (mode %04o): chmod 600 %s", path, mode, path
        )
