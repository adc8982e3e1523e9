"""What must hold of a world in which pods wait for devices: at rest, in the end, and at every revision in between."""

from __future__ import annotations

import asyncio
import itertools
from datetime import datetime
from typing import Any

from allot.api.identities import DeviceId
from allot.testing.virtual_time import settled
from tests.property.binding_world import (
    CLAIMS,
    DEVICES,
    DRIVER,
    NODES,
    PODS,
    READY,
    RULES,
    TIMEOUT_SECONDS,
    Json,
    World,
    allocation_of,
    claims_of,
    device_id,
    device_with,
    is_ready,
    is_reserved_for,
    results_of,
)


async def check_rest(world: World) -> None:
    """Nothing is held without a waiting pod, and a waiting pod holds all of its claims."""
    pods = {pod["metadata"]["uid"]: pod for pod in await world.pods()}
    claims = {claim["metadata"]["name"]: claim for claim in await world.claims()}
    for claim in claims.values():
        check_claim(claim, pods)
    waiting = []
    for pod in pods.values():
        names = list(claims_of(pod))
        held = [name for name in names if name in claims and is_reserved_for(claims[name], pod)]
        if pod["spec"].get("nodeName"):
            continue
        assert held in ([], names), f"{pod['metadata']['name']} holds only {held}"
        waiting += [pod] if held else []
        for name in held:
            check_in_time(world, claims[name])
            assert pod["status"].get("nominatedNodeName"), pod
    check_memory(world, claims, waiting)


def check_claim(claim: Json, pods: dict[str, Json]) -> None:
    status = claim.get("status") or {}
    consumers = status.get("reservedFor", [])
    if claim["metadata"].get("deletionTimestamp") and not consumers:
        return  # others let it go
    assert bool(allocation_of(claim)) == bool(consumers), claim
    assert all(consumer["uid"] in pods for consumer in consumers), claim
    held = {device_id(result) for result in results_of(claim)}
    assert {device_id(entry) for entry in status.get("devices", [])} <= held, claim


def check_in_time(world: World, claim: Json) -> None:
    """No pod waits longer than the timeout that began with the allocation."""
    allocation = allocation_of(claim)
    assert allocation is not None
    since = datetime.fromisoformat(allocation["allocationTimestamp"])
    waited = (world.clock.today() - since).total_seconds()
    assert waited <= TIMEOUT_SECONDS + 1.5, claim


def check_memory(world: World, claims: dict[str, Json], waiting: list[Json]) -> None:
    """The scheduler remembers what the API says, and nothing else."""
    process = world.scheduler
    assert process.cluster.assumed_count == len(waiting), "other places are assumed than waited for"
    for claim in claims.values():
        assert not process.claims.has_pending_allocation(claim["metadata"]["uid"]), claim
    awaited = {name for pod in waiting for name in claims_of(pod)}
    plugin: Any = process.profiles["default-scheduler"].plugin("DynamicResources")
    assert len(plugin._gate) == len(awaited)
    held = {device_id(result) for claim in claims.values() for result in results_of(claim)}
    for place in itertools.product(NODES, DEVICES):
        is_taken = process.claims.ledger.is_dedicated(DeviceId(DRIVER, *place))
        assert is_taken == (place in held), held


async def check_end(world: World, *claims: str) -> None:
    """Once devices exist and are made ready, all remaining pods get a node, and so does a new one."""
    await mend(world, *claims)
    await world.pod("newcomer", *claims)

    async def all_bound() -> bool:
        for name in claims:
            await world.set_condition(name, READY)
        return all(pod["spec"].get("nodeName") for pod in await world.pods())

    try:
        await world.until(all_bound, 400)
    except TimeoutError:
        left = [pod for pod in await world.pods() if not pod["spec"].get("nodeName")]
        raise AssertionError(f"not bound: {left}; claims: {await world.claims()}") from None


async def mend(world: World, *claims: str) -> None:
    """Undo all harm that was done to devices and claims."""
    for node in NODES:
        await world.publish(node, [device_with(name, READY) for name in DEVICES])
    for name in DEVICES:
        await world.delete(f"{RULES}/{name}")
    for pod in await world.pods():  # they use the claims, wherever they run
        if pod["spec"].get("nodeName"):
            await world.delete(f"{PODS}/{pod['metadata']['name']}")
    await world.remove_stale_reservations()
    for name in claims:
        if await world.find(f"{CLAIMS}/{name}") is None:
            await world.claim(name)
    await settled()


async def check_history(world: World, *, strictly: bool) -> None:
    """At no revision was a device held twice, or a pod bound whose devices were not ready.

    Not `strictly`: a pod may be bound though its devices have just stopped to be ready, because a scheduler cannot know that
    at the same moment.
    """
    holder_by_device: dict[tuple[str, str], str] = {}
    claims: dict[str, Json] = {}
    were_ready: set[str] = set()
    bound: dict[str, str] = {}
    for type_, changed in await world.history():
        uid = changed["metadata"]["uid"]
        if changed["kind"] == "Pod":
            node = changed["spec"].get("nodeName", "")
            if node and not bound.get(uid):
                check_binding(changed, claims, were_ready, strictly=strictly)
            assert bound.get(uid, "") in ("", node), "a pod changed its node"
            bound[uid] = node
            continue
        name = changed["metadata"]["name"]
        before = claims.get(name)
        if before is not None and before["metadata"]["uid"] == uid:
            for result in results_of(before):
                holder_by_device.pop(device_id(result), None)
            check_same_time(before, changed)
        if type_ == "DELETED":
            claims.pop(name, None)
            continue
        claims[name] = changed
        for result in results_of(changed):
            assert holder_by_device.setdefault(device_id(result), uid) == uid, changed
        if is_ready(changed):
            were_ready.add(uid)


def check_binding(
    pod: Json, claims: dict[str, Json], were_ready: set[str], *, strictly: bool
) -> None:
    for name in claims_of(pod):
        claim = claims.get(name)
        if strictly:
            assert claim is not None
            assert is_ready(claim), (pod, claim)
            assert is_reserved_for(claim, pod), (pod, claim)
        else:
            assert claim is None or claim["metadata"]["uid"] in were_ready, (pod, claim)


def check_same_time(before: Json, after: Json) -> None:
    """While an allocation lasts, it stays as it is: node, devices and time."""
    one, other = allocation_of(before), allocation_of(after)
    assert one is None or other is None or one == other, (before, after)


async def calm(world: World) -> None:
    """Long enough for all retries."""
    await settled()
    await world.remove_stale_reservations()
    await asyncio.sleep(12)
    await world.remove_stale_reservations()
    await settled()
