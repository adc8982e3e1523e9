"""`allot conformance`: does a driver keep its contract with the kubelet and the API?"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allot.cli.driver_options import check_driver_packages
from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_FINDINGS, EXIT_OK, CommandError

if TYPE_CHECKING:
    from allot.conformance.results import CheckResult


@click.group()
def conformance() -> None:
    """Check programs against their contract with Kubernetes."""


@conformance.command("driver")
@click.argument("command", nargs=-1, metavar="[-- COMMAND...]")
@click.option(
    "--driver-name",
    default="",
    metavar="NAME",
    help="Such as gpu.example.com. Default: the one that registers.",
)
@click.option(
    "--node",
    default="conformance-node",
    show_default=True,
    help="The node's name. It is created if it does not exist.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="CHECK",
    help="A check, a group or a pattern such as 'prepare/*'. Repeatable.",
)
@click.option("--skip", multiple=True, metavar="CHECK", help="The same, for checks to leave out.")
@click.option("--list", "lists", is_flag=True, help="List all checks, and run none.")
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the results as JUnit XML.",
)
@click.option(
    "--socket",
    type=click.Path(path_type=Path),
    help="The registration socket of a driver that runs already, instead of a command.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --socket: of the driver's API server, as an admin.",
)
@click.option(
    "--cdi-dir",
    type=click.Path(path_type=Path),
    help="With --socket: where the driver writes CDI specifications.",
)
@click.option(
    "--start-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="How long a start may take.",
)
@click.option(
    "--repair-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=90.0,
    show_default=True,
    help="How long it may take until deleted or changed slices are repaired.",
)
@click.option(
    "--log",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the driver's output in this file.",
)
def driver(
    command: tuple[str, ...],
    driver_name: str,
    node: str,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    lists: bool,
    junit: Path | None,
    socket: Path | None,
    kubeconfig: Path | None,
    cdi_dir: Path | None,
    start_seconds: float,
    repair_seconds: float,
    log: Path | None,
) -> int:
    """Run a DRA driver, in any language, through its contract with the kubelet and the API.

    COMMAND starts the driver. In its words {kubeconfig}, {node}, {kubelet}, {registry}, {plugins}, {cdi} and
    {instance} are replaced; NODE_NAME and KUBECONFIG are set. It is started, killed and stopped several times.

    No node is needed: an API server runs in this process, which also plays the kubelet. The exit code is 1 if the
    driver breaks a rule that it must keep.
    """
    check_driver_packages("allot conformance")
    from allot.conformance.limits import Limits
    from allot.conformance.running import RunOptions, run_conformance
    from allot.conformance.suite import UnknownCheckError, chosen_checks

    try:
        checks = chosen_checks(only, skip)
    except UnknownCheckError as error:
        raise CommandError(str(error)) from None
    if lists:
        for check in checks:
            click.echo(f"{check.name:28} {check.level.value:6} {check.title}")
        return EXIT_OK
    if bool(command) == bool(socket):
        raise CommandError("give the command line of the driver after --, or --socket")
    if socket is not None and (kubeconfig is None or cdi_dir is None):
        raise CommandError("--socket needs --kubeconfig and --cdi-dir of the running driver")
    if command and kubeconfig is not None:
        raise CommandError("--kubeconfig needs --socket: a command gets an API server of its own")
    directory = Path(tempfile.mkdtemp(prefix="allot-"))  # short: sockets are in it
    options = RunOptions(
        directory,
        command,
        kubeconfig,
        node,
        driver_name,
        str(socket.absolute()) if socket is not None else "",
        cdi_dir,
        Limits(start=start_seconds, repair=repair_seconds),
    )
    try:
        report = asyncio.run(run_conformance(options, checks, _print_result))
        if log is not None and (directory / "driver.log").exists():
            shutil.copy(directory / "driver.log", log)
    except OSError as error:
        raise CommandError(f"{error.filename or command[:1]}: {error.strerror}") from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if junit is not None:
        junit.write_bytes(report.junit())
    echo_text(report.summary())
    return EXIT_OK if report.is_conformant else EXIT_FINDINGS


def _print_result(result: CheckResult) -> None:
    words = f"{result.outcome.value:8} {result.name:28} {result.seconds:6.1f} s"
    echo_text(f"{words}  {result.message}" if result.message else words)
