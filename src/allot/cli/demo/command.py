"""The command: options, the terminal, Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from allot.cli.demo.steps import Story
from allot.cli.demo.stories import NAMESPACE, START, STORIES
from allot.cli.errors import EXIT_FINDINGS, EXIT_INTERRUPTED, EXIT_OK, CommandError
from allot.cli.signals import stopped_by_signals
from allot.cli.which_cluster import chosen_kubeconfig, cluster_error, cluster_options

if TYPE_CHECKING:
    from rich.console import Console

    from allot.client.client import Client

_BY_KEP: Final = {story.kep: story for story in STORIES}
_CLEAN_UP_SECONDS: Final = 30.0


@click.command()
@click.argument("keps", nargs=-1, metavar="[KEP]...", type=click.Choice(tuple(_BY_KEP)))
@cluster_options("The cluster to play in, by its kubeconfig.")
@click.option("--fast", is_flag=True, help="Do not wait for Enter between scenes.")
def demo(keps: tuple[str, ...], kubeconfig: Path | None, context: str | None, fast: bool) -> int:
    """Play the stories of the KEPs in a running cluster, with commentary.

    All of them, or those you name: 4816, 5075, 5007, 5677, 6080. The commands shown can be typed in another
    terminal. Everything happens in the namespace allot-demo and is removed at the end, and on Ctrl-C. Scenes whose
    devices are held by others are skipped; the demo says which claim holds them.
    """
    logging.getLogger("allot").setLevel(logging.ERROR)  # the commentary says what happens
    stories = [_BY_KEP[kep] for kep in keps] if keps else STORIES
    try:
        with asyncio.Runner() as runner:
            played = runner.run(_run(kubeconfig, context, stories, fast))
    except asyncio.CancelledError:
        return EXIT_INTERRUPTED
    return EXIT_OK if played else EXIT_FINDINGS


async def _run(
    kubeconfig: Path | None, context: str | None, stories: Sequence[Story], fast: bool
) -> int:
    from allot.client.connection import connect
    from allot.client.errors import ClientError, TransportError

    playing = asyncio.current_task()
    assert playing is not None
    chosen = chosen_kubeconfig(kubeconfig, context)
    with stopped_by_signals(playing.cancel, seconds=_CLEAN_UP_SECONDS):
        client = connect(chosen, context, user_agent="allot-demo")
        try:
            await _check(client, kubeconfig, context)
            return await play(client, stories, kubeconfig=chosen, fast=fast)
        except TransportError as error:
            raise CommandError(
                f"the cluster no longer answers; objects left in the namespace {NAMESPACE} are removed "
                "when the demo runs again"
            ) from error
        except ClientError as error:
            raise CommandError(str(error)) from error
        finally:
            await client.close()


async def _check(client: Client, kubeconfig: Path | None, context: str | None) -> None:
    from allot.client.client import without_retries
    from allot.client.errors import ClientError

    try:
        await without_retries(client).request("GET", "/version")
    except ClientError as error:
        raise cluster_error(error, kubeconfig, context) from error


async def play(
    client: Client,
    stories: Sequence[Story],
    *,
    kubeconfig: Path | None,
    fast: bool = True,
    console: Console | None = None,
) -> int:
    """Play the stories, and remove everything they created, however it ends; how many scenes were played."""
    from rich.console import Console

    from allot.cli.demo.performance import Performance

    performance = Performance(client, console or Console(highlight=False, emoji=False), fast=fast)
    return await performance.play(stories, kubeconfig)


__all__ = ["START", "demo", "play"]
