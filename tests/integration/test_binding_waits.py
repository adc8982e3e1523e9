"""What happens to pods that wait for their devices (KEP-5007), in virtual time: API server and scheduler in one process."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from prometheus_client import generate_latest

from allot.features import BINDING_CONDITIONS, DEFAULTS, DEVICE_STATUS
from allot.testing.virtual_time import run_in_virtual_time, settled
from tests.property.binding_laws import calm, check_rest
from tests.property.binding_world import (
    BASE,
    CLAIMS,
    DEVICES,
    DRIVER,
    FAILED,
    PODS,
    READY,
    SLICES,
    TIMEOUT_SECONDS,
    World,
    a_world,
    device_with,
)

Story = Callable[[World], Awaitable[None]]
OFF = {
    gate: DEFAULTS.switched({gate: False, BINDING_CONDITIONS: False})
    for gate in (BINDING_CONDITIONS, DEVICE_STATUS)
}


def play(story: Story, *conditions: str, **options: Any) -> None:
    async def main() -> None:
        async with a_world(*conditions, **options) as world:
            await story(world)

    run_in_virtual_time(main())


async def waiting(world: World, *pods: str, claim: str = "c") -> None:
    """Pods that wait for one claim."""
    await world.claim(claim)
    for pod in pods:
        await world.pod(pod, claim)
        await settled()


# --- several pods, several claims ---


def test_pods_that_share_a_claim_wait_together() -> None:
    async def story(world: World) -> None:
        await waiting(world, "p", "q")
        assert len((await world.status("c"))["reservedFor"]) == 2
        await asyncio.sleep(30)
        assert [await world.node_of(name) for name in "pq"] == ["", ""]
        await world.set_condition("c", READY)
        await settled()
        assert [await world.node_of(name) for name in "pq"] == ["n1", "n1"]

    play(story)


@pytest.mark.parametrize("how", ["failed", "timeout"])
@pytest.mark.parametrize("restarted", [False, True])
def test_pods_that_share_a_claim_give_up_together(how: str, restarted: bool) -> None:
    """Who lets go last, clears the claim; also if another scheduler began to wait."""

    async def story(world: World) -> None:
        await waiting(world, "p", "q")
        before = await world.allocation("c")
        await asyncio.sleep(5)
        if restarted:
            await world.kill()
        if how == "failed":
            await world.set_condition("c", FAILED)
        else:
            await asyncio.sleep(TIMEOUT_SECONDS)
        if restarted:
            world.start()

        async def is_allocated_anew() -> bool:
            found = await world.allocation("c")
            return found is not None and before != found

        await world.until(is_allocated_anew, 30)
        await calm(world)
        await check_rest(world)
        expected = "reason=Because" if how == "failed" else "device binding timeout: claim=c"
        notes = await world.events("FailedScheduling")
        assert any(expected in note for note in notes), notes

    play(story)


def test_each_claim_has_its_own_deadline() -> None:
    """The time of the older claim ends first, though the pod has waited for less."""

    async def story(world: World) -> None:
        await waiting(world, "p", claim="old")
        await asyncio.sleep(40)
        await world.claim("new")
        await world.pod("q", "old", "new")
        await asyncio.sleep(19)
        assert (await world.status("new"))["reservedFor"]
        await asyncio.sleep(1.5)
        assert await world.why("q") == (
            'running PreBind plugin "DynamicResources": device binding timeout: claim=old;'
            f" not ready within 60 s: {DRIVER}/n1/{DEVICES[0]}: {READY} was never reported"
        )

    play(story)


def test_a_claim_that_is_ready_has_no_deadline() -> None:
    async def story(world: World) -> None:
        await waiting(world, "p", claim="old")
        await asyncio.sleep(40)
        await world.claim("new")
        await world.pod("q", "old", "new")
        await world.set_condition("old", READY)
        await asyncio.sleep(50)
        assert await world.node_of("p") == "n1"
        assert await world.node_of("q") == ""
        await world.set_condition("new", READY)
        await settled()
        assert await world.node_of("q") == "n1"

    play(story)


def test_without_a_time_of_allocation_waiting_counts() -> None:
    async def story(world: World) -> None:
        await world.claim("c")
        device = {"driver": DRIVER, "pool": "n1", "device": DEVICES[0], "request": "r"}
        result = {**device, "bindingConditions": [READY], "bindingFailureConditions": [FAILED]}
        await world.change(
            "c",
            lambda found: {**found, "status": {"allocation": {"devices": {"results": [result]}}}},
        )
        await world.pod("p", "c")
        await asyncio.sleep(TIMEOUT_SECONDS - 1)
        assert (await world.status("c"))["reservedFor"]
        await asyncio.sleep(2)
        assert "device binding timeout: claim=c" in await world.why("p")

    play(story)


# --- what others do meanwhile ---


def test_a_claim_that_is_deleted_is_let_go() -> None:
    async def story(world: World) -> None:
        await waiting(world, "p")
        await world.delete(f"{CLAIMS}/c")
        await settled()
        assert await world.status("c") == {}
        assert "claim default/c got deleted in the meantime" in await world.why("p")
        await world.remove_stale_reservations()
        await world.claim("c")
        await asyncio.sleep(5)
        await world.set_condition("c", READY)
        await settled()
        assert await world.node_of("p") == "n1"

    play(story)


@pytest.mark.parametrize("what", ["slice removed", "slice replaced", "device tainted"])
def test_what_is_allocated_stays_so_whatever_becomes_of_the_device(what: str) -> None:
    """Conditions were copied with the allocation, and a taint is for those who come later."""

    async def story(world: World) -> None:
        await waiting(world, "p")
        before = await world.allocation("c")
        match what:
            case "slice removed":
                await world.delete(f"{SLICES}/n1")
            case "slice replaced":
                await world.publish("n1", [device_with("other", "Else")])
            case _:
                await world.taint(DEVICES[0])
        await asyncio.sleep(30)
        assert await world.allocation("c") == before
        await world.set_condition("c", READY)
        await settled()
        assert await world.node_of("p") == "n1"

    play(story)


def test_a_tainted_device_is_not_picked_again() -> None:
    async def story(world: World) -> None:
        await waiting(world, "p")
        await world.taint(DEVICES[0])
        await world.set_condition("c", FAILED)
        await asyncio.sleep(5)
        allocation = await world.allocation("c")
        assert allocation is not None
        assert [each["device"] for each in allocation["devices"]["results"]] == [DEVICES[1]]

    play(story)


# --- what the pod has while it waits ---


def test_a_waiting_pod_keeps_its_node_and_its_room() -> None:
    async def story(world: World) -> None:
        await world.claim("c")
        await world.pod("p", "c", cpu="6")
        await settled()
        pod = await world.server.get(f"{PODS}/p")
        assert pod["status"]["nominatedNodeName"] == "n1"
        for name in ("a", "b", "d"):
            await world.pod(name, cpu="4")
        await settled()
        assert sorted([await world.node_of(name) for name in "abd"]) == ["", "n2", "n2"]
        await world.kill()
        world.start()
        await settled()
        assert sorted([await world.node_of(name) for name in "abd"]) == ["", "n2", "n2"]
        await world.delete(f"{PODS}/p")
        await asyncio.sleep(15)
        assert sorted([await world.node_of(name) for name in "abd"]) == ["n1", "n2", "n2"]

    play(story)


def test_users_read_what_is_missing() -> None:
    async def story(world: World) -> None:
        await world.claim("c")
        await world.claim("d")
        await world.pod("p", "c", "d")
        await settled()
        (note,) = await world.events("BindingConditionsPending")
        assert note == (
            "waiting for binding conditions for device on node n1: "
            f"{DRIVER}/n1/{DEVICES[0]}: {READY}, Warm; {DRIVER}/n1/{DEVICES[1]}: {READY}, Warm"
            "; the driver's controller must report this within 60 s of the allocation"
        )
        await world.set_condition("c", READY)
        await world.pod("q", "c")
        await settled()
        assert (await world.events("BindingConditionsPending"))[-1] == (
            f"waiting for binding conditions for device on node n1: {DRIVER}/n1/{DEVICES[0]}: Warm"
            "; the driver's controller must report this within 60 s of the allocation"
        )

    play(story, READY, "Warm")


# --- extended resources ---


def test_devices_behind_extended_resources_are_waited_for() -> None:
    async def story(world: World) -> None:
        spec = {"extendedResourceName": "example.com/fpga"}
        await world.server.post(
            f"{BASE}/deviceclasses", {"metadata": {"name": "extended"}, "spec": spec}
        )
        resources = {"limits": {"example.com/fpga": "1"}, "requests": {"example.com/fpga": "1"}}
        container = {"name": "m", "image": "i", "resources": resources}
        body = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
        await world.server.post(PODS, body)
        await settled()
        (first,) = await world.claims()
        await asyncio.sleep(30)
        assert await world.node_of("p") == ""
        await world.set_condition(first["metadata"]["name"], FAILED)
        await asyncio.sleep(5)
        (second,) = await world.claims()
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        await world.set_condition(second["metadata"]["name"], READY)
        await settled()
        assert await world.node_of("p") == "n1"

    play(story)


# --- gates ---


@pytest.mark.parametrize("gates", OFF.values(), ids=OFF)
def test_without_the_gates_such_devices_are_not_selected(gates: Any) -> None:
    async def story(world: World) -> None:
        await world.claim("c")
        await world.pod("p", "c")
        await asyncio.sleep(5)
        assert await world.allocation("c") is None
        assert "cannot allocate all claims" in await world.why("p")
        await world.publish("n2", [device_with("ordinary")])
        await asyncio.sleep(15)
        allocation = await world.allocation("c")
        assert allocation is not None
        assert "allocationTimestamp" not in allocation
        assert await world.node_of("p") == "n2"

    play(story, gates=gates)


@pytest.mark.parametrize("gates", OFF.values(), ids=OFF)
def test_without_the_gates_the_fields_are_dropped(gates: Any) -> None:
    async def story(world: World) -> None:
        found = await world.server.get(f"{SLICES}/n1")
        assert found["spec"]["devices"] == [{"name": name} for name in DEVICES]
        await world.claim("c")
        await world.pod("p", "c")
        await settled()
        allocation = await world.allocation("c")
        assert allocation is not None
        assert not {"bindingConditions", "bindingFailureConditions"} & set(
            allocation["devices"]["results"][0]
        )
        assert await world.node_of("p") == "n1"

    play(story, server_gates=gates, gates=gates)


# --- metrics ---


def metric(world: World, name: str) -> dict[str, float]:
    """The samples of a binding metric that are not zero, by their labels."""
    text = generate_latest(world.scheduler.metrics.registry).decode()
    pattern = rf"^scheduler_dra_bindingconditions_{name}\{{(.*)\}} (\S+)$"
    return {
        labels: float(value)
        for labels, value in re.findall(pattern, text, re.MULTILINE)
        if float(value)
    }


def test_metrics_tell_how_waiting_ended_and_how_long_it_took() -> None:
    async def story(world: World) -> None:
        await waiting(world, "p")
        await asyncio.sleep(20)
        await world.set_condition("c", FAILED)
        await asyncio.sleep(2)  # tried again after one second
        await asyncio.sleep(TIMEOUT_SECONDS)
        await asyncio.sleep(3)
        await world.set_condition("c", READY)
        await settled()
        assert await world.node_of("p") == "n1"
        await world.publish("n2", [device_with("ordinary")])
        await waiting(world, "q", claim="plain")
        ends = {"failure": 1, "success": 1, "timeout": 1}
        labels = f'driver="{DRIVER}",profile="default-scheduler",status="%s"'
        executions = 'profile="default-scheduler",status="%s"'
        assert metric(world, "allocations_total") == {executions % end: 1 for end in ends}
        assert metric(world, "device_allocations_total") == {labels % end: 1 for end in ends}
        assert metric(world, "wait_duration_seconds_count") == {labels % end: 1 for end in ends}
        counts = metric(world, "prebind_duration_seconds_count")
        with_conditions = 'requires_bindingconditions="true",status="%s"'
        without = 'requires_bindingconditions="false",status="success"'
        assert counts == {with_conditions % end: 1 for end in ends} | {without: 1}
        sums = metric(world, "prebind_duration_seconds_sum")
        assert sums[with_conditions % "failure"] == pytest.approx(20, abs=0.1)
        assert sums[with_conditions % "timeout"] == pytest.approx(TIMEOUT_SECONDS, abs=1.1)
        assert sums.get(without, 0.0) < 0.1
        buckets = metric(world, "prebind_duration_seconds_bucket")
        (last,) = {
            float(found[1])
            for key in buckets
            if (found := re.search(r'le="(1048[^"]*)"', key)) is not None
        }
        assert last > 600, "what waited as long as it may is in a bucket of its own"

    play(story)


def test_metrics_of_claims_that_were_taken_away() -> None:
    async def story(world: World) -> None:
        await waiting(world, "p")
        await world.deallocate("c")
        await settled()
        found = metric(world, "prebind_duration_seconds_count")
        assert found == {'requires_bindingconditions="true",status="error"': 1}

    play(story)


# --- kills ---


async def survive(world: World, kills: int) -> None:
    """Kill the scheduler again and again, at any moment; no wait starts again."""
    for number in range(3):
        await waiting(world, f"p{number}", claim=f"c{number}")
    names = [f"c{number}" for number in range(3)]
    before = [await world.allocation(name) for name in names]
    pause = (TIMEOUT_SECONDS - 10) / kills
    for number in range(kills):
        await world.kill()
        world.start()
        for _ in range(number % 25):
            await asyncio.sleep(0)
        if number % 3:
            await asyncio.sleep(pause)
    assert [await world.allocation(name) for name in names] == before
    await world.set_condition("c0", READY)
    await settled()
    assert [await world.node_of(f"p{number}") for number in range(3)] == ["n1", "", ""]
    await asyncio.sleep(TIMEOUT_SECONDS - world.clock.now() - 1)
    assert [await world.allocation(name) for name in names] == before
    await asyncio.sleep(2.5)
    after = [await world.allocation(name) for name in names]
    assert after[0] == before[0]
    assert after[1:] != before[1:]
    assert "device binding timeout: claim=c1" in await world.why("p1")


def test_the_scheduler_is_killed_while_pods_wait() -> None:
    play(lambda world: survive(world, 5))


@pytest.mark.slow
def test_the_scheduler_is_killed_fifty_times() -> None:
    play(lambda world: survive(world, 50))
