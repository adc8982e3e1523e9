"""Work for pods that may take long."""

from __future__ import annotations

import asyncio

from allot.api.identities import ObjectKey
from allot.client.clock import LoopClock
from allot.kubelet.dra.pod_work import PENDING, PodWork

POD = ObjectKey("default", "p")


def test_work_that_is_cancelled_before_it_begins_is_never_made() -> None:
    made: list[str] = []

    async def prepare() -> None:
        made.append("begun")

    def run() -> asyncio.Future[None]:
        made.append("made")
        return asyncio.ensure_future(prepare())

    async def cancelled() -> None:
        work = PodWork(LoopClock(), ValueError, lambda _: None)
        assert work.advance("uid", POD, run) is PENDING  # type: ignore[arg-type]
        work.cancel("uid")
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(cancelled())
    assert made == []
