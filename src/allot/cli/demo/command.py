"""The command: options, the terminal, Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.text import Text

from allot.cli.data_directory import DEFAULT, KUBECONFIG
from allot.cli.demo.steps import Story
from allot.cli.demo.stories import NAMESPACE, START, STORIES
from allot.cli.errors import EXIT_INTERRUPTED, EXIT_OK, CommandError
from allot.cli.examples import examples_directory

if TYPE_CHECKING:
    from allot.client.client import Client

_BY_KEP: Final = {story.kep: story for story in STORIES}
_STDIN: Final = 0


@click.command()
@click.argument("keps", nargs=-1, metavar="[KEP]...", type=click.Choice(tuple(_BY_KEP)))
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT / KUBECONFIG,
    show_default=True,
    help="The cluster to play in.",
)
@click.option("--fast", is_flag=True, help="Do not wait for Enter between scenes.")
def demo(keps: tuple[str, ...], kubeconfig: Path, fast: bool) -> int:
    """Play the stories of the KEPs in a running cluster, with commentary.

    All of them, or those you name: 4816, 5075, 5007, 5677, 6080. The commands shown can be typed in another
    terminal. Everything happens in the namespace allot-demo and is removed at the end, and on Ctrl-C.
    """
    if not kubeconfig.exists():
        raise CommandError(f"{kubeconfig}: no such file; start a cluster with {START}")
    logging.getLogger("allot").setLevel(logging.ERROR)  # the commentary says what happens
    stories = [_BY_KEP[kep] for kep in keps] if keps else STORIES
    try:
        with asyncio.Runner() as runner:
            runner.run(_run(kubeconfig, stories, fast))
    except asyncio.CancelledError:  # by SIGTERM
        return EXIT_INTERRUPTED
    return EXIT_OK


async def _run(kubeconfig: Path, stories: Sequence[Story], fast: bool) -> None:
    from allot.client.connection import connect
    from allot.client.errors import ClientError, TransportError

    playing = asyncio.current_task()
    assert playing is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, playing.cancel)
    client = connect(kubeconfig, user_agent="allot-demo")
    try:
        await _check(client, kubeconfig)
        await play(client, stories, kubeconfig=kubeconfig, fast=fast)
    except TransportError as error:
        raise CommandError(
            f"the cluster no longer answers; objects left in the namespace {NAMESPACE} are removed "
            "when the demo runs again"
        ) from error
    except ClientError as error:
        raise CommandError(str(error)) from error
    finally:
        await client.close()


async def _check(client: Client, kubeconfig: Path) -> None:
    from allot.client.client import without_retries
    from allot.client.errors import ClientError, ConfigError, TransportError

    try:
        await without_retries(client).request("GET", "/version")
    except TransportError as error:
        raise CommandError(
            f"no cluster answers at the address in {kubeconfig}; start it with {START}"
        ) from error
    except ConfigError as error:
        raise CommandError(f"{kubeconfig}: {' '.join(str(error).split())}") from error
    except ClientError as error:
        raise CommandError(f"{kubeconfig}: the cluster says: {error}") from error


async def play(
    client: Client,
    stories: Sequence[Story],
    *,
    kubeconfig: Path,
    fast: bool = True,
    console: Console | None = None,
) -> None:
    """Play the stories, and remove everything they created, however it ends."""
    from allot.cli.demo.runner import Runner

    console = console or Console(highlight=False, emoji=False)

    def show(text: str) -> None:
        is_command = text.startswith("$ ")
        if is_command:
            console.print()
        for line in text.splitlines():
            shown = Text(f"    {line}", "bold cyan" if is_command else "")
            console.print(shown, soft_wrap=True)

    def say(text: str) -> None:
        console.print(Text(f"\n{text}"))

    say(f"To try the commands in another terminal: export KUBECONFIG={kubeconfig.absolute()}")
    runner = Runner(client, examples_directory(), show)
    try:
        await runner.set_up()
        for story in stories:
            console.print()
            console.rule(Text(f"KEP-{story.kep}: {story.title}", "bold"), align="left")
            for scene in story.scenes:
                say(scene.before)
                for step in scene.steps:
                    await runner.step(step)
                say(scene.after)
                if not fast:
                    await _enter(console)
                await runner.end(scene)
    finally:
        say(f"Cleaning up the namespace {NAMESPACE} ...")
        await runner.clean_up()
    say("That was it. docs/ and examples/ have more of each.")


async def _enter(console: Console) -> None:
    """Wait for Enter; without a terminal that could send it, go on."""
    loop = asyncio.get_running_loop()
    pressed = asyncio.Event()
    console.print(Text("\n[Enter to go on, Ctrl-C to end]", "dim"), end=" ")

    def read() -> None:
        os.read(_STDIN, 4096)
        pressed.set()

    try:
        loop.add_reader(_STDIN, read)
    except OSError:  # not something that can be waited for, such as /dev/null
        console.print()
        return
    try:
        await pressed.wait()
    finally:
        loop.remove_reader(_STDIN)
    if not sys.stdin.isatty():
        console.print()
