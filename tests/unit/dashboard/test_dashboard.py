"""The dashboard of one cluster: other tasks run while much is computed, and history begins when all devices are known."""

from __future__ import annotations

import asyncio
from typing import Any

from allot.client import resources
from allot.dashboard.cluster_source import FixedCluster
from allot.dashboard.dashboard import DEVICES_AT_ONCE, Dashboard
from allot.testing.builders import a_claim, a_device, a_slice, an_allocation
from allot.testing.observed_clusters import observed

NODES = 40


def a_large_cluster() -> FixedCluster:
    devices = tuple(a_device(f"gpu-{number}") for number in range(DEVICES_AT_ONCE // 10))
    slices = (a_slice(*devices, name=f"s{number}", node=f"n{number}") for number in range(NODES))
    return FixedCluster("test", observed(*slices))


async def counted_turns(work: Any) -> int:
    """How often another task ran during the work."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await asyncio.sleep(0)
    turns = 0
    await work
    task.cancel()
    return turns


def test_other_tasks_run_while_the_first_floor_plan_is_computed() -> None:
    async def story() -> None:
        dashboard = Dashboard(a_large_cluster())
        turns = await counted_turns(dashboard.start())
        assert turns >= NODES // 10 - 1
        assert len(list(dashboard.floor.plans())) == NODES
        await dashboard.stop()

    asyncio.run(story())


def test_what_exists_at_the_start_is_no_history() -> None:
    async def story() -> None:
        source = a_large_cluster()
        dashboard = Dashboard(source)
        await dashboard.start()
        begins = dashboard.history.begins_at
        assert not dashboard.history.floor_at(begins - 1)

        claim = a_claim(allocation=an_allocation("gpu-0", pool="n0"))
        source.objects.put(resources.RESOURCE_CLAIMS, claim)
        source._changed(resources.RESOURCE_CLAIMS, None, claim)
        await dashboard.refresh()

        assert len(dashboard.history.floor_at(begins - 1).cells) == 1
        assert dashboard._figures.now().held == 1
        await dashboard.stop()

    asyncio.run(story())
