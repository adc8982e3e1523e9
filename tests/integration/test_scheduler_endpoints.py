"""The scheduler's pages in the course of its life."""

from __future__ import annotations

import asyncio

from allot.client.client import Client
from allot.client.in_process import InProcessTransport
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.endpoints import SchedulerEndpoints
from allot.testing.servers import TOKEN, LocalServer


def test_ready_while_it_waits_to_be_elected_and_when_it_works_but_not_in_between() -> None:
    async def main() -> list[int]:
        async with LocalServer() as server:
            process = SchedulerProcess(Client(InProcessTransport(server.server.app, TOKEN)))
            pages = SchedulerEndpoints(process)
            seen = [pages.answer("GET", "/readyz").code]
            running = asyncio.create_task(process.run())
            await asyncio.sleep(0)
            seen.append(pages.answer("GET", "/readyz").code)
            async with asyncio.timeout(120):
                await process.informers.wait_synced()
            seen.append(pages.answer("GET", "/readyz").code)
            metrics = (await pages.respond("GET", "/metrics")).body
            assert b"scheduler_schedule_attempts_total" in metrics
            assert pages.answer("GET", "/debug/explain/default/p").code == 403
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            return seen

    assert asyncio.run(main()) == [200, 500, 200]
