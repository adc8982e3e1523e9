"""How `allot up` stops."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.cli.running_cluster import _stop_together


def test_components_stop_while_requests_end() -> None:
    """One after the other, both would need the time that the program has."""
    told: list[str] = []

    async def run() -> None:
        requests_end = asyncio.Event()

        class Components:
            async def stop(self) -> None:
                told.append("components")
                await requests_end.wait()

        class Server:
            def stop(self) -> None:
                told.append("server")
                requests_end.set()

        components: Any = Components()
        server: Any = Server()
        async with asyncio.timeout(60):
            await _stop_together(components, server)

    asyncio.run(run())
    assert told == ["components", "server"]
