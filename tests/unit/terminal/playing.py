"""The application on clusters that are values, without a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from textual.pilot import Pilot

from allot.questions.live_devices import LiveDevices
from allot.questions.observed_cluster import ObservedCluster
from allot.terminal.app import TopApp
from allot.terminal.state_symbols import BLOCKS, SymbolSet
from allot.testing.observed_clusters import observed

MAX_SECONDS = 60.0
Scenario = Callable[["Shown"], Awaitable[None]]


class ChangingSource:
    """A cluster that tests change."""

    title = "test cluster"
    is_live = True

    def __init__(self, cluster: ObservedCluster) -> None:
        self.revision = 0
        self.is_loading = False
        self.failure = ""
        self.devices = LiveDevices(cluster.gates)
        self.set(cluster)

    def set(self, cluster: ObservedCluster) -> None:
        """Take another state of the cluster."""
        self._cluster = cluster
        self.devices = LiveDevices.of(cluster)
        self.devices.version = self.revision = self.revision + 1

    def observed(self) -> ObservedCluster:
        return self._cluster

    async def run(self) -> None:
        return


class Shown:
    """The application, its keys and its screen."""

    def __init__(self, app: TopApp, pilot: Pilot[int], source: ChangingSource) -> None:
        self.app, self.pilot, self.source = app, pilot, source

    @property
    def lines(self) -> list[str]:
        """What is on the screen."""
        return [
            "".join(segment.text for segment in strip).rstrip()
            for strip in self.app.screen._compositor.render_strips()
        ]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def until(self, text: str, *, gone: bool = False) -> None:
        """Wait until a string is on the screen, or is no longer."""
        deadline = asyncio.get_running_loop().time() + MAX_SECONDS
        while (text in self.text) is gone:
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"{text!r} {'still' if gone else 'not'} on:\n{self.text}")
            await self.pilot.pause(0.05)


def play(
    scenario: Scenario,
    *objects: Any,
    size: tuple[int, int] = (80, 24),
    symbols: SymbolSet = BLOCKS,
    cluster: ObservedCluster | None = None,
) -> TopApp:
    """Run the application on a cluster of these objects; it is returned after its end."""
    source = ChangingSource(cluster or observed(*objects))
    app = TopApp(source, symbols)

    async def main() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await scenario(Shown(app, pilot, source))

    asyncio.run(main())
    return app
