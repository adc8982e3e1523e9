"""A whole cluster under load while controller managers die, come back and work twice at once.

Deployments, Jobs, pods with claims and whole namespaces come and go, in virtual time. Whatever becomes of the managers
and of their requests, no claim is taken from who needs it, nothing is counted or answered twice, and in the end
everything is as it should be and nothing is left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from allot import features
from allot.cluster import Cluster
from allot.components import ClusterParts, ClusterTime
from allot.kubelet.settings import KubeletSettings as NodeSettings
from allot.scheduler.configuration import SchedulerConfiguration
from allot.testing.servers import TOKEN, LocalServer
from allot.testing.virtual_time import VirtualClock, run_in_virtual_time
from tests.integration.busy_users import Users
from tests.integration.cluster_history import (
    CLAIMS,
    orphans,
    overshot_jobs,
    unsettled,
    wrongs,
)
from tests.integration.unruly_managers import Managers

SETTLE_SECONDS = 1800.0
LOOK_SECONDS = 5.0
HISTORY = 1_000_000


@asynccontextmanager
async def cluster_without_controllers(
    clock: VirtualClock,
) -> AsyncIterator[LocalServer]:
    """API server, scheduler and nodes, which all do what they should."""
    server = LocalServer(window=HISTORY, clock=clock.whole_seconds)
    async with server:
        parts = ClusterParts(SchedulerConfiguration(), (), NodeSettings(all_nodes=True))
        time = ClusterTime(clock, clock.now, clock.whole_seconds)
        cluster = Cluster(server.server, TOKEN, parts, features.DEFAULTS, time)
        await cluster.start()
        try:
            yield server
        finally:
            await cluster.stop()


def live_through(seed: int, *, deeds: int, at_once: int = 2) -> Managers:
    async def story() -> Managers:
        clock = VirtualClock()
        async with cluster_without_controllers(clock) as server:
            start = (await server.get(CLAIMS))["metadata"]["resourceVersion"]
            users = Users(server, seed)
            await users.furnish()
            managers = Managers(server.server, clock, seed, at_once)
            async with managers.running():
                for number in range(deeds):
                    await users.do_something()
                    if number % 10 == 0:
                        managers.cut_watches()
                await users.go_home()
                managers.make_peace()
                await until_settled(server, clock)
            assert await wrongs(server, start) == []
            assert await orphans(server) == []
            if at_once == 1:
                assert await overshot_jobs(server, start) == []
            return managers

    return run_in_virtual_time(story())


async def until_settled(server: LocalServer, clock: VirtualClock) -> None:
    end = clock.now() + SETTLE_SECONDS
    while left := await unsettled(server):
        assert clock.now() < end, left
        await asyncio.sleep(LOOK_SECONDS)


def test_managers_come_and_go_and_nothing_is_lost_or_done_twice() -> None:
    managers = live_through(1, deeds=20)

    assert managers.deaths >= 5
    assert managers.faults > 100


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_managers_come_and_go_for_a_long_time(seed: int, at_once: int) -> None:
    managers = live_through(seed, deeds=200, at_once=at_once)

    assert managers.deaths > 50
