"""A cluster that is followed: what is read, what may not be, and when the server does not answer."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from allot.client import resources
from allot.client.client import Client
from allot.client.errors import TransportError
from allot.client.retries import NEVER
from allot.client.snapshot import Snapshot
from allot.questions.live_cluster import LiveCluster
from allot.questions.observed_cluster import ObservedCluster
from tests.unit.client.fakes import LOST, REFUSED, FakeApi, FakeClock, answer, settle, status
from tests.unit.client.test_snapshot import Paths, listed

NOW = datetime(2026, 1, 2, tzinfo=UTC)
BASE = ObservedCluster(Snapshot(), notes=("assumed",))
POD = {"metadata": {"name": "p", "namespace": "default", "uid": "1", "resourceVersion": "1"}}
FORBIDDEN = answer(403, status(403, "Forbidden"))


def live(transport: Any, *kinds: resources.Resource[Any], namespace: str = "") -> LiveCluster:
    client = Client(transport, retry=NEVER, clock=FakeClock(hasty=True))
    return LiveCluster(client, BASE, kinds, namespace)


def test_objects_come_change_and_go() -> None:
    async def main() -> None:
        api = FakeApi()
        api.put("a")
        cluster = live(api, resources.CONFIG_MAPS)
        seen: list[tuple[bool, bool]] = []
        cluster.add_handler(lambda _, old, new: seen.append((old is not None, new is not None)))
        numbers: list[int] = []
        cluster.add_handler(lambda kind, *_: numbers.append(len(cluster.objects.of(kind))))
        synced = [cluster.has_synced]
        await cluster.start()
        await cluster.wait_synced()
        assert [*synced, cluster.has_synced] == [False, True]
        revision = cluster.revision
        api.put("a")
        api.put("b")
        api.delete("a")
        await settle()

        found = cluster.observed(NOW)
        assert [each.metadata.name for each in found.objects.of(resources.CONFIG_MAPS)] == ["b"]
        assert found.now == NOW
        assert cluster.revision == revision + 3
        assert seen == [(False, True), (True, True), (False, True), (True, False)]
        assert numbers == [1, 1, 2, 1]  # handlers see the change in the objects
        api.put("c")
        await settle()
        assert len(found.objects.of(resources.CONFIG_MAPS)) == 1  # what was observed stays
        await cluster.stop()

    asyncio.run(main())


def test_what_may_not_be_listed_is_noted() -> None:
    async def main() -> None:
        paths = Paths(
            {
                "/api/v1/pods": FORBIDDEN,
                "/api/v1/namespaces/mine/pods": listed(POD),
                "/api/v1/nodes": FORBIDDEN,
            }
        )
        wanted = (resources.PODS, resources.NODES, resources.DEVICE_CLASSES)
        cluster = live(paths, *wanted, namespace="mine")
        await cluster.start()
        notes = cluster.observed(NOW).notes
        await cluster.stop()

        assert notes[0] == "assumed"
        assert notes[1].startswith("pods could not be read: only those in namespace mine: ")
        assert notes[2].startswith("nodes could not be read: ")
        assert notes[3] == "deviceclasses could not be read: the server does not have them"

    asyncio.run(main())


def test_a_server_that_does_not_answer_at_the_start() -> None:
    async def main() -> None:
        cluster = live(Paths({"/api/v1/pods": REFUSED}), resources.PODS)
        with pytest.raises(TransportError):
            await cluster.start()
        assert cluster.failure == str(REFUSED)
        await cluster.stop()

    asyncio.run(main())


def test_a_server_that_is_gone_and_back() -> None:
    """The last known objects stay."""

    async def main() -> None:
        api = FakeApi()
        api.put("a")
        clock = FakeClock()
        cluster = LiveCluster(Client(api, retry=NEVER, clock=clock), BASE, (resources.CONFIG_MAPS,))
        await cluster.start()
        await settle()
        assert cluster.failure == ""

        api.trouble = [REFUSED] * 50
        api.cut()
        await settle()
        assert cluster.failure == str(LOST)
        await clock.advance(1)
        assert cluster.failure == str(REFUSED)
        assert len(cluster.observed(NOW).objects.of(resources.CONFIG_MAPS)) == 1

        api.trouble = []
        api.put("b")
        await clock.advance(30)
        await settle()
        assert cluster.failure == ""
        assert len(cluster.observed(NOW).objects.of(resources.CONFIG_MAPS)) == 2
        await cluster.stop()

    asyncio.run(main())


def test_nothing_may_be_listed() -> None:
    """All that may be read was read: views say so, and do not wait."""

    async def main() -> None:
        cluster = live(Paths({"/api/v1/nodes": FORBIDDEN}), resources.NODES)
        await cluster.start()
        await cluster.wait_synced()
        assert cluster.has_synced
        assert resources.NODES in cluster.observed(NOW).objects.unread
        await cluster.stop()

    asyncio.run(main())
