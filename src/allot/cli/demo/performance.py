"""Plays stories on a terminal: commentary, commands with their output, and questions to the user."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.text import Text

from allot.cli.demo.runner import Runner
from allot.cli.demo.steps import Scene, Story
from allot.cli.demo.stories import NAMESPACE
from allot.cli.examples import examples_directory

if TYPE_CHECKING:
    from rich.console import Console

    from allot.client.client import Client

_STDIN: Final = 0
_SHOWN_OBSTACLES: Final = 3


class Performance:
    """One run of the demo."""

    def __init__(self, client: Client, console: Console, *, fast: bool) -> None:
        self._console = console
        self._fast = fast
        self._runner = Runner(client, examples_directory(), self._show)
        self._played = 0
        self._skipped: list[str] = []

    async def play(self, stories: Sequence[Story], kubeconfig: Path | None) -> int:
        """Play the stories, and remove everything they created, however it ends; how many scenes were played."""
        self._say_where_to_type(kubeconfig)
        is_interrupted = True
        try:
            await self._runner.set_up()
            for story in stories:
                await self._play_story(story)
            is_interrupted = False
        except asyncio.CancelledError:
            raise
        except Exception:
            is_interrupted = False
            raise
        finally:
            interrupted = "interrupted; " if is_interrupted else ""
            self._say(f"{interrupted}cleaning up the namespace {NAMESPACE} ...")
            await self._runner.clean_up()
        for line in self._skipped:
            self._say(f"Skipped: {line}")
        self._say("That was it. docs/ and examples/ have more of each.")
        return self._played

    def _say_where_to_type(self, kubeconfig: Path | None) -> None:
        commands = []
        if self._runner.directory != Path.cwd():
            commands.append(f"cd {shlex.quote(str(self._runner.directory))}")
        if kubeconfig is not None:
            commands.append(f"export KUBECONFIG={shlex.quote(str(kubeconfig.absolute()))}")
        if commands:
            self._say("To try the commands in another terminal:")
            for command in commands:
                self._console.print(Text(f"    {command}"), soft_wrap=True)

    async def _play_story(self, story: Story) -> None:
        self._console.print()
        self._console.rule(Text(f"KEP-{story.kep}: {story.title}", "bold"), align="left")
        for number, scene in enumerate(story.scenes, 1):
            found = await self._obstacles(scene)
            if found:
                # Later scenes go on with what this one creates.
                self._skipped.append(f"KEP-{story.kep} from scene {number} on; {found[0]}")
                return
            await self._play_scene(scene)
            self._played += 1

    async def _obstacles(self, scene: Scene) -> list[str]:
        """What keeps the scene from being played, unless the user has removed it meanwhile."""
        while scene.needs is not None and (found := await self._runner.obstacles(scene.needs)):
            drivers = " and ".join(scene.needs.drivers)
            self._say(f"The next scene needs devices of {drivers} that are in use:")
            for line in found[:_SHOWN_OBSTACLES]:
                self._show(line)
            if len(found) > _SHOWN_OBSTACLES:
                self._show(f"and {len(found) - _SHOWN_OBSTACLES} more")
            if self._fast or not sys.stdin.isatty():
                return found
            answer = await self._ask("[Enter to skip it; r and Enter to look again]")
            if not answer.strip().lower().startswith("r"):
                return found
        return []

    async def _play_scene(self, scene: Scene) -> None:
        self._say(scene.before)
        for step in scene.steps:
            await self._runner.step(step)
        self._say(scene.after)
        if not self._fast:
            await self._ask("[Enter to go on, Ctrl-C to end]")
        await self._runner.end(scene)

    # --- the terminal ---

    def _show(self, text: str) -> None:
        is_command = text.startswith("$ ")
        if is_command:
            self._console.print()
        for line in text.splitlines():
            shown = Text(f"    {line}", "bold cyan" if is_command else "")
            self._console.print(shown, soft_wrap=True)

    def _say(self, text: str) -> None:
        self._console.print(Text(f"\n{text}"))

    async def _ask(self, prompt: str) -> str:
        """The line that the user types; empty without a terminal or another program that could send one."""
        loop = asyncio.get_running_loop()
        typed: asyncio.Future[bytes] = loop.create_future()
        self._console.print(Text(f"\n{prompt}", "dim"), end=" ")

        def read() -> None:
            data = os.read(_STDIN, 4096)
            if not typed.done():
                typed.set_result(data)

        try:
            loop.add_reader(_STDIN, read)
        except OSError:  # not something that can be waited for, such as /dev/null
            self._console.print()
            return ""
        try:
            return (await typed).decode(errors="replace")
        finally:
            loop.remove_reader(_STDIN)
            if not sys.stdin.isatty():
                self._console.print()
