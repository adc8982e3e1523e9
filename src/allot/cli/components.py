"""What the commands that run a component have in common: options, signals, election, endpoints."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from allot.api.printable_text import printable, printable_lines
from allot.cli.errors import CommandError
from allot.cli.garbage_collection import PeriodicCollector
from allot.cli.signals import stopped_by_signals
from allot.task_cancellation import cancel_and_wait

if TYPE_CHECKING:
    from allot.client.client import Client
    from allot.client.leader_election import ElectionTimes
    from allot.endpoints import ComponentEndpoints

SWITCH_SECONDS: Final = 0.001
"""How long a thread that works on something large keeps the event loop waiting."""
READY: Final = "ready"
"""What a component prints when it works."""

F = TypeVar("F", bound=Callable[..., Any])
Work = Callable[[], Coroutine[Any, Any, None]]


def set_up_logging(verbose: int) -> None:
    """Log warnings; with one -v also what components do, with two why. Of libraries, only warnings."""
    level = [logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)]
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter("%(asctime)s %(levelname).1s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("allot").setLevel(level)


class PrintableFormatter(logging.Formatter):
    """Shows control characters of objects' names and messages instead of sending them to the terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of the base class
        return printable(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))  # with the lines of a traceback


def component_runner() -> asyncio.Runner:
    """Runs a component: with the faster event loop, if it is installed, and short garbage collections."""
    sys.setswitchinterval(SWITCH_SECONDS)
    return asyncio.Runner(loop_factory=_new_event_loop)


def _new_event_loop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop
    try:
        import uvloop
    except ModuleNotFoundError:
        loop = asyncio.new_event_loop()
    else:
        loop = uvloop.new_event_loop()
    PeriodicCollector(loop).start()
    return loop


def verbose_option(command: F) -> F:
    """`-v`, for `set_up_logging`; the function gets `verbose`."""
    return click.option("-v", "--verbose", count=True, help="Log what it does; twice: also why.")(
        command
    )


def endpoint_options(port: int, served: str) -> Callable[[F], F]:
    """`--bind-address` and `--port`."""

    def decorate(command: F) -> F:
        command = click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=port,
            show_default=True,
            help=f"For {served}; 0 serves none.",
        )(command)
        return click.option(
            "--bind-address",
            default="127.0.0.1",
            show_default=True,
            help="The address to listen on.",
        )(command)

    return decorate


class EndpointAddress(NamedTuple):
    """Where a component serves its endpoints; port 0: nowhere."""

    host: str
    port: int


class Election(NamedTuple):
    """The Lease that decides which of several works."""

    namespace: str
    name: str
    times: ElectionTimes


class Component(NamedTuple):
    """What a command runs."""

    client: Client | None
    """For the election; closed in the end."""
    work: Work
    is_ready: Callable[[], bool]
    pages: ComponentEndpoints | None = None


async def run_until_stopped(
    component: Component, election: Election | None, address: EndpointAddress
) -> None:
    """Run until SIGINT or SIGTERM, with an election only while leading, and serve health and metrics endpoints.

    It prints `ready` when it is. The client is closed in the end.
    """
    from allot.client.errors import ClientError

    client, work, is_ready, pages = component
    serving = _serve(pages, address) if pages is not None else None
    working = asyncio.ensure_future(_work_if_elected(client, work, election))
    printing = asyncio.create_task(print_when_ready(is_ready))
    try:
        with (
            stopped_by_signals(working.cancel),
            contextlib.suppress(asyncio.CancelledError),
        ):
            await working
    except ClientError as error:
        raise CommandError(str(error)) from error
    finally:
        await cancel_and_wait(printing, serving, ignore_errors=True)
        if client is not None:
            await client.close()


async def print_when_ready(is_ready: Callable[[], bool]) -> None:
    from allot.client.supervision import wait_until_ready

    await wait_until_ready(is_ready)
    click.echo(READY)


async def _work_if_elected(client: Client | None, work: Work, election: Election | None) -> None:
    from allot.api.identities import ObjectKey
    from allot.client.leader_election import LeaderElector

    if election is None:
        await work()
        return
    assert client is not None, "an election needs a client"
    identity = f"{socket.gethostname()}_{os.getpid()}"
    key = ObjectKey(election.namespace, election.name)
    await LeaderElector(client, key, identity, election.times).run(work)


def _serve(pages: ComponentEndpoints, address: EndpointAddress) -> asyncio.Task[None] | None:
    from allot.endpoints import serve

    if not address.port:
        return None
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise CommandError(
            f"{address.host}:{address.port}: {error.strerror}; choose another --port"
        ) from error
    return asyncio.create_task(serve(pages, listener))
