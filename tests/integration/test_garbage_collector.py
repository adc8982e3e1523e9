"""The garbage collector against the API server in this process."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from allot.client.client import Client
from allot.client.event_recorder import EventRecorder
from allot.client.informer import InformerFactory
from allot.client.served_kinds import ServedKinds
from allot.controllers.controller import ControllerContext
from allot.controllers.garbage_collector import GarbageCollector
from allot.testing.servers import TOKEN
from tests.integration.housekeeping_cluster import Cluster, owned_by, play
from tests.unit.client.test_served_kinds import Selective

CM = "ConfigMap"
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def test_background_foreground_and_orphans() -> None:
    async def story(cluster: Cluster) -> None:
        async with cluster.running(GarbageCollector):
            await dependents_follow_in_the_background(cluster)
            await the_foreground_waits(cluster)
            await orphans_stay(cluster)

    play(story)


async def dependents_follow_in_the_background(cluster: Cluster) -> None:
    owner = await cluster.create(CM, "o1")
    other = await cluster.create(CM, "o2")
    middle = await cluster.create(CM, "d1", ownerReferences=owned_by(owner))
    await cluster.create(CM, "d2", ownerReferences=owned_by(middle))
    await cluster.create(CM, "shared", ownerReferences=owned_by(owner, other))
    await cluster.delete(CM, "o1")
    await cluster.until_gone(CM, "d1")
    await cluster.until_gone(CM, "d2")

    async def has_one_owner() -> Any:
        shared = await cluster.get(CM, "shared")
        assert shared
        return shared["metadata"]["ownerReferences"] == owned_by(other)

    await cluster.until(has_one_owner)


async def the_foreground_waits(cluster: Cluster) -> None:
    owner = await cluster.create(CM, "o3")
    await cluster.create(
        CM, "held", ownerReferences=owned_by(owner, block=True), finalizers=["test.dev/hold"]
    )
    await cluster.create(CM, "free", ownerReferences=owned_by(owner))
    await cluster.delete(CM, "o3", "Foreground")
    await cluster.until_gone(CM, "free")

    async def is_marked() -> Any:
        held = await cluster.get(CM, "held")
        assert held
        return "deletionTimestamp" in held["metadata"]

    await cluster.until(is_marked)
    kept = await cluster.get(CM, "o3")
    assert kept
    assert kept["metadata"]["finalizers"] == ["foregroundDeletion"]
    await cluster.patch(CM, "held", {"metadata": {"finalizers": None}})
    await cluster.until_gone(CM, "o3")


async def orphans_stay(cluster: Cluster) -> None:
    owner = await cluster.create(CM, "o4")
    await cluster.create(CM, "d4", ownerReferences=owned_by(owner, block=True))
    await cluster.delete(CM, "o4", "Orphan")
    await cluster.until_gone(CM, "o4")
    orphan = await cluster.get(CM, "d4")
    assert orphan
    assert "ownerReferences" not in orphan["metadata"]


def test_owners_that_never_were() -> None:
    async def story(cluster: Cluster) -> None:
        node = await cluster.create("Node", "n")
        owner = await cluster.create(CM, "owner")
        elsewhere = await cluster.create("Namespace", "elsewhere")
        assert elsewhere
        async with cluster.running(GarbageCollector):
            for name, owners, space in (
                ("wrong-uid", owned_by(owner, uid="0000"), "default"),
                ("other-space", owned_by(owner), "elsewhere"),
                ("cluster-owner", owned_by(node), "default"),
                ("unknown-kind", owned_by(owner, kind="Nothing"), "default"),
            ):
                await cluster.create(CM, name, space, ownerReferences=owners)
            await cluster.create("Node", "of-a-config-map", ownerReferences=owned_by(owner))
            await cluster.until_gone(CM, "wrong-uid")
            await cluster.until_gone(CM, "other-space", "elsewhere")
            await asyncio.sleep(0.05)
            for kind, name in (
                (CM, "cluster-owner"),
                (CM, "unknown-kind"),
                ("Node", "of-a-config-map"),
            ):
                assert await cluster.get(kind, name)
            await cluster.delete("Node", "n")
            await cluster.until_gone(CM, "cluster-owner")

    play(story)


def test_objects_deleted_while_the_controller_was_down() -> None:
    """Two collectors at once find the same, and do it once."""

    async def story(cluster: Cluster) -> None:
        owner = await cluster.create(CM, "gone")
        await cluster.create(CM, "d", ownerReferences=owned_by(owner))
        await cluster.delete(CM, "gone")
        left = await cluster.create(CM, "left")
        await cluster.create(CM, "orphan", ownerReferences=owned_by(left))
        await cluster.delete(CM, "left", "Orphan")
        circle = await cluster.create(CM, "a")
        second = await cluster.create(CM, "b", ownerReferences=owned_by(circle, block=True))
        refs = {"metadata": {"ownerReferences": owned_by(second, block=True)}}
        await cluster.patch(CM, "a", refs)
        await cluster.delete(CM, "a", "Foreground")
        async with cluster.running(GarbageCollector), cluster.running(GarbageCollector):
            for name in ("d", "left", "a", "b"):
                await cluster.until_gone(CM, name)
            assert await cluster.get(CM, "orphan")

    play(story)


def test_an_owner_of_a_kind_that_vanished_may_still_be_there() -> None:
    async def story(cluster: Cluster) -> None:
        spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
        owner = await cluster.create("apps/v1/ReplicaSet", "owner", spec=spec)
        dependent = await cluster.create(CM, "d", ownerReferences=owned_by(owner))
        transport = Selective(cluster.server.server.app, TOKEN)
        client = Client(transport)
        async with running_collector(client) as (collector, kinds):
            await cluster.until(partial(known, collector, dependent["metadata"]["uid"]))
            transport.hidden = frozenset({"apps"})
            await kinds.refresh()
            marker = await cluster.create(CM, "marker", ownerReferences=owned_by(owner, uid="0"))
            await cluster.until(partial(known, collector, marker["metadata"]["uid"]))
            await asyncio.sleep(0.05)
            assert await cluster.get(CM, "d")
            assert await cluster.get(CM, "marker")
            transport.hidden = frozenset()
            await kinds.refresh()
            await cluster.until(partial(known, collector, owner["metadata"]["uid"]))
            await cluster.delete("apps/v1/ReplicaSet", "owner")
            await cluster.until_gone(CM, "d")

    play(story)


def test_whatever_is_deleted_only_the_owned_remain() -> None:
    """Owners are deleted at random while collectors come and go."""

    async def story(cluster: Cluster) -> None:
        chance = random.Random(7)  # noqa: S311
        made: dict[str, dict[str, Any]] = {}
        owners_by_name: dict[str, list[str]] = {}
        for number in range(40):
            owners = chance.sample(sorted(made), min(len(made), chance.choice([0, 1, 1, 2])))
            name = f"c{number}"
            refs = owned_by(*map(made.get, owners), block=chance.random() < 0.5)  # type: ignore[arg-type]
            made[name] = await cluster.create(CM, name, ownerReferences=refs)
            owners_by_name[name] = owners
        deleted = chance.sample(sorted(made), 12)
        for round_ in range(3):
            async with cluster.running(GarbageCollector), cluster.running(GarbageCollector):
                for name in deleted[round_::3]:
                    if await cluster.get(CM, name):
                        await cluster.delete(CM, name, chance.choice(["Background", "Foreground"]))
                if round_ == 2:
                    left = remaining(owners_by_name, set(deleted))
                    await cluster.until(partial(there_are_only, cluster, left))

    play(story)


def remaining(owners_by_name: dict[str, list[str]], deleted: set[str]) -> set[str]:
    """What is not deleted, and has never been owned, or is owned by something that remains."""
    left: set[str] = set()
    for name, owners in owners_by_name.items():  # owners come before what they own
        if name not in deleted and (not owners or not left.isdisjoint(owners)):
            left.add(name)
    return left


async def there_are_only(cluster: Cluster, names: set[str]) -> bool:
    found = await cluster.server.get("/api/v1/namespaces/default/configmaps")
    there = {item["metadata"]["name"] for item in found["items"]}
    assert there >= names
    return there == names


async def known(collector: GarbageCollector, uid: str) -> bool:
    return collector.graph.get(uid) is not None


@contextlib.asynccontextmanager
async def running_collector(
    client: Client,
) -> AsyncIterator[tuple[GarbageCollector, ServedKinds]]:
    informers = InformerFactory(client)
    context = ControllerContext(client, informers, EventRecorder(client, "test", "test"))
    collector = GarbageCollector(context)
    informers.start()
    task = asyncio.create_task(collector.run())
    try:
        yield collector, informers.companion(ServedKinds)
    finally:
        task.cancel()
        await asyncio.wait((task,))
        await informers.stop()
