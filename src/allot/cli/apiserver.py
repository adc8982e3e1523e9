"""`allot apiserver`: the Kubernetes-compatible API server on its own."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click

from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.lint import gates_from_option
from allot.features import FeatureGates


class Options(NamedTuple):
    """What the command line asked for."""

    storage: str
    data_dir: Path
    bind_address: str
    port: int
    gates: FeatureGates
    token_file: Path | None
    kubeconfig: Path


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
    help="The address to listen on. Beyond loopback, everybody who reaches it can try to get in.",
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
@click.option(
    "--feature-gates", default="", metavar="A=true,B=false", help="Override feature gates."
)
@click.option("-v", "--verbose", count=True, help="Say more (twice: much more).")
def apiserver(
    storage: str,
    data_dir: Path,
    port: int,
    bind_address: str,
    kubeconfig: Path | None,
    token_auth_file: Path | None,
    feature_gates: str,
    verbose: int,
) -> int:
    """Run the API server: kubectl, client libraries, drivers and controllers can use it.

    It speaks TLS only and lets in its own admin, whose kubeconfig it writes, and those named in
    --token-auth-file. Ctrl-C stops it; what was written stays.
    """
    set_up_logging(verbose)
    options = Options(
        storage,
        data_dir,
        bind_address,
        port,
        gates_from_option(feature_gates),
        token_auth_file,
        kubeconfig or data_dir / "kubeconfig",
    )
    _run(options)
    return EXIT_OK


def set_up_logging(verbose: int) -> None:
    level = [logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)]
    logging.basicConfig(level=level, format="%(asctime)s %(levelname).1s %(name)s: %(message)s")


def _run(options: Options) -> None:
    from allot.apiserver.authentication import TokenFileError
    from allot.apiserver.credentials import CredentialError
    from allot.storage.interface import StorageError

    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(options))
    except (CredentialError, StorageError, TokenFileError) as error:
        raise CommandError(str(error)) from error


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster event loop, where there is one."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop


async def _serve(options: Options) -> None:
    from allot.apiserver import authentication
    from allot.apiserver.composition import ApiServer, now
    from allot.apiserver.credentials import prepare_credentials, write_kubeconfig
    from allot.apiserver.service_accounts import ServiceAccountTokens
    from allot.apiserver.serving import Server, listen
    from allot.storage.opening import open_store

    users = authentication.read_token_file(options.token_file) if options.token_file else {}
    try:
        credentials = prepare_credentials(options.data_dir / "pki", [options.bind_address], now())
        listener = listen(options.bind_address, options.port)
    except OSError as error:
        where = error.filename or f"{options.bind_address}:{options.port}"
        raise CommandError(f"{where}: {error.strerror or error}") from error
    host = f"[{options.bind_address}]" if ":" in options.bind_address else options.bind_address
    address = f"{host}:{listener.getsockname()[1]}"
    admin = authentication.User(
        "allot-admin", groups=(authentication.MASTERS, authentication.AUTHENTICATED)
    )
    with listener:
        store = await open_store(options.storage, options.data_dir)
        try:
            server = ApiServer(
                store,
                options.gates,
                [
                    authentication.CertificateAuthenticator(),
                    authentication.StaticTokens({**users, credentials.admin_token: admin}),
                ],
                ServiceAccountTokens(credentials.signing_key),
                address=lambda: address,
            )
            await server.start()
            web = Server(server.app, credentials)

            def stop() -> None:
                server.begin_shutdown()
                web.stop()

            loop = asyncio.get_running_loop()
            for name in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(name, stop)
            write_kubeconfig(options.kubeconfig, f"https://{address}", credentials)
            click.echo(f"allot API server: https://{address}, storage {options.storage}")
            click.echo(f"  kubectl --kubeconfig {options.kubeconfig} get namespaces")
            await web.serve(sockets=[listener])
            await server.close()
        finally:
            await store.close()
