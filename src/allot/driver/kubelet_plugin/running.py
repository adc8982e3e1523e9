"""A driver as a program: options, logging, metrics, and an end by signal."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from allot.client.client import Client
from allot.client.connection import connect
from allot.client.errors import ClientError
from allot.driver.kubelet_plugin.device_metadata import VERSIONS
from allot.driver.kubelet_plugin.driver import Driver
from allot.driver.kubelet_plugin.paths import CDI_DIRECTORY, KUBELET_DIRECTORY, SocketPathError
from allot.driver.kubelet_plugin.plugin import KubeletPlugin, MissingExtraError, PluginOptions
from allot.driver.slice_reconciler import REPAIR_SECONDS
from allot.endpoints import ComponentEndpoints, serve
from allot.task_cancellation import cancel_and_wait

_PATH = click.Path(path_type=Path)


def driver_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of `run_driver` to a click command, which passes them on to `run_with_options`."""
    for option in reversed(
        (
            click.option("--kubeconfig", type=_PATH, help="Default: as kubectl, or the pod's own."),
            click.option(
                "--node-name", envvar="NODE_NAME", required=True, help="The node it runs on."
            ),
            click.option(
                "--kubelet-dir",
                type=_PATH,
                default=KUBELET_DIRECTORY,
                show_default=True,
                help="The kubelet's directory. With `allot up --plugin-dir DIR`: DIR/NODE.",
            ),
            click.option(
                "--cdi-dir",
                type=_PATH,
                default=CDI_DIRECTORY,
                show_default=True,
                help="For CDI specifications. With `allot up --plugin-dir DIR`: DIR/NODE/cdi.",
            ),
            click.option(
                "--instance",
                envvar="POD_UID",
                default="",
                help="The UID of the driver's pod, for rolling updates with two pods on a node.",
            ),
            click.option(
                "--repair-seconds",
                type=click.FloatRange(min=0),
                default=REPAIR_SECONDS,
                show_default=True,
                help="Delay before changes of slices by others are reverted.",
            ),
            click.option(
                "--device-metadata",
                multiple=True,
                type=click.Choice(VERSIONS),
                help="Give containers the attributes of their devices as files, in these versions.",
            ),
            click.option(
                "--metrics-address", default="", metavar="HOST:PORT", help="Serve /metrics there."
            ),
            click.option("-v", "--verbose", is_flag=True, help="Log calls."),
        )
    ):
        command = option(command)
    return command


def run_driver(driver: Driver, arguments: Sequence[str] | None = None) -> None:
    """Run a driver with the options of the command line, until SIGINT or SIGTERM. Does not return."""

    @click.command(driver.name)
    @driver_options
    def command(**options: Any) -> None:
        run_with_options(driver, **options)

    command(list(sys.argv[1:] if arguments is None else arguments))


def run_with_options(
    driver: Driver,
    kubeconfig: Path | None,
    node_name: str,
    kubelet_dir: Path,
    cdi_dir: Path,
    instance: str,
    repair_seconds: float,
    device_metadata: tuple[str, ...],
    metrics_address: str,
    verbose: bool,
) -> None:
    """For commands with `driver_options`."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    for noisy in ("asyncio", "grpc"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    options = PluginOptions(
        kubelet_directory=kubelet_dir,
        cdi_directory=cdi_dir,
        instance=instance,
        repair_seconds=repair_seconds,
        device_metadata=device_metadata,
    )
    try:
        client = connect(kubeconfig, user_agent=driver.name)
        plugin = KubeletPlugin(driver, client, node_name, options)
        asyncio.run(_serve(plugin, client, metrics_address))
    except (ClientError, MissingExtraError, SocketPathError, OSError) as error:
        raise click.ClickException(str(error)) from error


async def _serve(plugin: KubeletPlugin, client: Client, metrics_address: str) -> None:
    serving = _serve_metrics(plugin, metrics_address) if metrics_address else None
    running = asyncio.ensure_future(plugin.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await running
    finally:
        await cancel_and_wait(serving, ignore_errors=True)
        await client.close()


def _serve_metrics(plugin: KubeletPlugin, address: str) -> asyncio.Task[None]:
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise click.UsageError(f"--metrics-address {address}: write HOST:PORT")
    listener = socket.create_server((host or "127.0.0.1", int(port)))
    pages = ComponentEndpoints(lambda: plugin.is_ready, lambda: plugin.metrics.registry)
    return asyncio.create_task(serve(pages, listener))
