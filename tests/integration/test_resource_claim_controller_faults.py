"""Two ResourceClaim controllers at once that die between any two writes, while pods come, run and go."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

import pytest

from tests.integration.claim_history import history_of, is_done
from tests.integration.resource_claims_cluster import (
    CLAIMS,
    FINALIZER,
    PODS,
    Cluster,
    Json,
    Running,
    allocation_for,
    claims_of,
    consumer,
    has_its_claims,
    is_allocated,
    reserved_for,
    run,
    told,
    until,
)

SHARED = ("shared-0", "shared-1")


class Mortals:
    """Two controllers. One that dies is replaced at once."""

    def __init__(self, cluster: Cluster, chance: random.Random, deaths: int) -> None:
        self._cluster = cluster
        self._chance = chance
        self.deaths_left = deaths
        self.deaths = 0

    async def keep_one_running(self) -> None:
        while True:
            running = self._start()
            await running.transport.dead.wait()
            self.deaths += 1
            await running.stop()

    def _start(self) -> Running:
        running = self._cluster.start()
        if self.deaths_left > 0:
            self.deaths_left -= 1
            running.transport.writes_left = self._chance.randint(1, 6)
            running.transport.dies_before = self._chance.random() < 0.5
        running.watches.chance = self._chance
        return running


class Life:
    """Users, a scheduler, nodes and a garbage collector, all at random."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self._cluster = cluster
        self._server = cluster.server
        self._chance = chance
        self._next = 0

    async def step(self) -> None:
        pods = (await self._server.get(PODS))["items"]
        steps: list[Callable[[Json], Awaitable[None]]] = [self.create, self.hurry]
        if pods:
            steps += [self.create, *[self.schedule] * 6, self.finish, self.remove, self.replace]
            steps += [self.hurry] * 3
            steps += [self.lose_claim, self.collect_garbage]
        step = self._chance.choice(steps)
        await step(self._chance.choice(pods) if pods else {})

    async def create(self, _: Json) -> None:
        self._next += 1
        await self._add(f"p{self._next}")

    async def hurry(self, pod: Json) -> None:
        """A pod that needs nothing from us is bound before we may have seen it, perhaps under a known name."""
        if pod and self._chance.random() < 0.5:
            await self.remove(pod)
            name = pod["metadata"]["name"]
        else:
            self._next += 1
            name = f"p{self._next}"
        shared = self._chance.choice(SHARED)
        await self.schedule(await self._cluster.add_pod(name, {"s": f"={shared}"}))

    async def _add(self, name: str) -> None:
        claims = {"a": "t", "b": "t"}
        if self._chance.random() < 0.5:
            claims["s"] = f"={self._chance.choice(SHARED)}"
        await self._cluster.add_pod(name, claims)

    async def schedule(self, pod: Json) -> None:
        """Allocate and reserve all claims, then bind; sometimes give up half-way, as after a crash."""
        if "nodeName" in pod["spec"] or is_done(pod) or not has_its_claims(pod):
            return
        for name in claims_of(pod):
            if self._chance.random() < 0.1 or not await self._reserve(name, pod):
                return
            await self._pause()
        await self._cluster.bind(pod)
        await self._cluster.patch(f"{PODS}/{pod['metadata']['name']}/status", RUNNING)

    async def _reserve(self, name: str, pod: Json) -> bool:
        while (claim := await self._cluster.claim(name)) is not None:
            metadata, status = claim["metadata"], claim["status"]
            if "deletionTimestamp" in metadata:
                return False
            if pod["metadata"]["uid"] in reserved_for(claim):
                return True
            version = {"resourceVersion": metadata["resourceVersion"]}
            if FINALIZER not in metadata.get("finalizers", ()):
                patch: Json = {"metadata": version | {"finalizers": [FINALIZER]}}
                await self._cluster.patch(f"{CLAIMS}/{name}", patch)
                continue
            wanted = {
                "allocation": status.get("allocation") or allocation_for(claim),
                "reservedFor": [*status.get("reservedFor", ()), consumer(pod)],
            }
            patch = {"metadata": version, "status": wanted}
            if (await self._cluster.patch(f"{CLAIMS}/{name}/status", patch)).code == 200:
                return True
        return False

    async def finish(self, pod: Json) -> None:
        if "nodeName" in pod["spec"]:
            phase = self._chance.choice(["Succeeded", "Failed"])
            path = f"{PODS}/{pod['metadata']['name']}/status"
            await self._cluster.patch(path, {"status": {"phase": phase}})

    async def remove(self, pod: Json) -> None:
        await self._cluster.delete_pod(pod["metadata"]["name"])

    async def replace(self, pod: Json) -> None:
        await self.remove(pod)
        await self._add(pod["metadata"]["name"])

    async def lose_claim(self, pod: Json) -> None:
        """A user deletes a claim that was made for a pod."""
        if names := sorted(told(pod).values()):
            await self._cluster.delete(f"{CLAIMS}/{self._chance.choice(names)}")

    async def collect_garbage(self, _: Json) -> None:
        pods = {pod["metadata"]["uid"] for pod in (await self._server.get(PODS))["items"]}
        for claim in await self._cluster.claims():
            owners = claim["metadata"].get("ownerReferences", ())
            if owners and owners[0]["uid"] not in pods:
                uid = {"uid": claim["metadata"]["uid"]}
                path = f"{CLAIMS}/{claim['metadata']['name']}"
                await self._server.ask("DELETE", path, {"preconditions": uid})

    async def _pause(self) -> None:
        for _ in range(self._chance.randrange(20)):
            await asyncio.sleep(0)


RUNNING = {"status": {"phase": "Running"}}


async def unsettled(cluster: Cluster) -> list[str]:
    """What is not yet as it must be in the end."""
    pods = {pod["metadata"]["uid"]: pod for pod in (await cluster.server.get(PODS))["items"]}
    claims = {claim["metadata"]["name"]: claim for claim in await cluster.claims()}
    found = []
    for name, claim in claims.items():
        metadata = claim["metadata"]
        owners = [owner["uid"] for owner in metadata.get("ownerReferences", ())]
        if any(uid not in pods or is_done(pods[uid]) for uid in owners):
            found.append(f"{name} is left over")
        if "deletionTimestamp" in metadata and not reserved_for(claim):
            found.append(f"{name} should be gone")
        if any(uid not in pods or is_done(pods[uid]) for uid in reserved_for(claim)):
            found.append(f"{name} is reserved for a pod that is done")
        if is_allocated(claim) and not reserved_for(claim):
            found.append(f"{name} is allocated without a consumer")
    for uid, pod in pods.items():
        name = pod["metadata"]["name"]
        if is_done(pod):
            continue
        made = [claims.get(claim) for claim in told(pod).values()]
        owners = [claim["metadata"]["ownerReferences"][0]["uid"] for claim in made if claim]
        if not has_its_claims(pod) or owners != [uid] * len(made):
            found.append(f"{name} lacks claims")
    return found


@contextlib.asynccontextmanager
async def beside(*loops: Coroutine[None, None, None]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
        assert not any(task.done() for task in tasks), tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def live_through(seed: int, deaths: int) -> None:
    async def scenario(cluster: Cluster) -> None:
        chance = random.Random(seed)  # noqa: S311 - a game
        await cluster.add_template()
        for name in SHARED:
            await cluster.add_claim(name)
        life, mortals = Life(cluster, chance), Mortals(cluster, chance, deaths)
        async with history_of(cluster.server) as history:
            async with beside(mortals.keep_one_running(), mortals.keep_one_running()):
                while mortals.deaths < deaths:
                    await life.step()
                    await asyncio.sleep(0.001)

                async def settled() -> bool | None:
                    await life.collect_garbage({})
                    return not await unsettled(cluster) or None

                await until(settled)
            await cluster.stop()
        assert history.wrongs() == []
        assert history.count("DELETED", "ResourceClaim") > 0

    run(scenario)


def test_controllers_die_at_any_write_and_nothing_is_lost_or_taken_away() -> None:
    live_through(seed=1, deaths=20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_controllers_die_at_any_write_many_times(seed: int) -> None:
    live_through(seed, deaths=100)
