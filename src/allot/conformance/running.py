"""A conformance run: an API server, the driver, the checks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from allot.apiserver.running import ServerOptions, running_server
from allot.client.connection import connect
from allot.conformance.harness import FIRST, SECOND, Harness
from allot.conformance.limits import Limits
from allot.conformance.registry import Check
from allot.conformance.results import CheckResult, Report
from allot.conformance.suite import prepare_cluster, run_checks
from allot.conformance.under_test import DriverProcess, DriverUnderTest, RunningDriver
from allot.features import DEFAULTS
from allot.kubelet.dra.paths import NodePaths


@dataclass(frozen=True)
class RunOptions:
    """What to run the checks on."""

    directory: Path
    """For the API server's data, the sockets and the driver's output. Its path must be short."""
    command: Sequence[str] = ()
    """The driver's command line with placeholders. Empty: it runs already."""
    kubeconfig: Path | None = None
    """An API server that runs already. Default: one for this run."""
    node: str = "conformance-node"
    driver_name: str = ""
    registration_socket: str = ""
    cdi_directory: Path | None = None
    limits: Limits = field(default_factory=Limits)


@asynccontextmanager
async def api_server(options: RunOptions) -> AsyncIterator[Path]:
    """The kubeconfig of the API server."""
    if options.kubeconfig is not None:
        yield options.kubeconfig
        return
    server = ServerOptions(options.directory / "api", DEFAULTS, "memory", port=0)
    async with running_server(server) as running:
        yield running.kubeconfig


async def run_conformance(
    options: RunOptions, checks: Sequence[Check], on_result: Callable[[CheckResult], None]
) -> Report:
    """Start the driver, run the checks, and end the driver."""
    paths = NodePaths(options.directory / "kubelet")
    paths.create()
    if options.driver_name:
        (paths.plugins / options.driver_name).mkdir(exist_ok=True)
    async with AsyncExitStack() as stack:
        kubeconfig = await stack.enter_async_context(api_server(options))
        client = connect(kubeconfig, user_agent="allot-conformance")
        stack.push_async_callback(client.close)
        values = {
            "kubeconfig": str(kubeconfig),
            "node": options.node,
            "kubelet": str(paths.root),
            "registry": str(paths.registry),
            "plugins": str(paths.plugins),
            "cdi": str(paths.cdi),
        }
        driver: DriverUnderTest = RunningDriver()
        if options.command:
            driver = DriverProcess(options.command, values, options.directory / "driver.log")
        harness = Harness(
            client,
            driver,
            paths,
            options.node,
            driver_name=options.driver_name,
            registration_socket=options.registration_socket,
            limits=options.limits,
            cdi_directory=options.cdi_directory,
        )
        for instance in (FIRST, SECOND):
            stack.push_async_callback(driver.stop, instance)
        await prepare_cluster(harness)
        await driver.start(FIRST)
        return await run_checks(harness, checks, on_result)
