"""Whatever happens to pods that wait for devices, in whatever order: they are bound with devices that are ready, or
everything is released and they are tried again. In virtual time, with the real scheduler and API server.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

import pytest

from allot.testing.virtual_time import run_in_virtual_time, settled
from tests.property.binding_laws import calm, check_end, check_history, check_rest
from tests.property.binding_world import (
    CLAIMS,
    DEVICES,
    FAILED,
    NODES,
    PODS,
    READY,
    TIMEOUT_SECONDS,
    World,
    a_world,
    device_with,
)


async def restart(world: World) -> None:
    await world.kill()
    world.start()


async def update_unrelated_fields(world: World) -> None:
    await world.label("c")
    await world.set_condition("c", "Unrelated")


async def replace_slices(world: World) -> None:
    """The devices are offered no longer; others are in their place."""
    for node in NODES:
        await world.publish(node, [device_with(f"other-{name}", READY) for name in DEVICES])


async def taint(world: World) -> None:
    for name in DEVICES:
        await world.taint(name)


EVENTS: Final[Mapping[str, Callable[[World], Awaitable[object]]]] = {
    "ready": lambda world: world.set_condition("c", READY),
    "failed": lambda world: world.set_condition("c", FAILED),
    "timeout": lambda _: asyncio.sleep(TIMEOUT_SECONDS + 1),
    "pod-deleted": lambda world: world.delete(f"{PODS}/p"),
    "updated": update_unrelated_fields,
    "deallocated": lambda world: world.deallocate("c"),
    "claim-deleted": lambda world: world.delete(f"{CLAIMS}/c"),
    "reservations-removed": lambda world: world.remove_stale_reservations(),
    "restarted": restart,
    "slice-replaced": replace_slices,
    "tainted": taint,
}
PODS_WITH_CLAIMS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "one": {"p": ("c",)},
    "shared": {"p": ("c",), "q": ("c",)},
    "two": {"p": ("c", "d")},
}
"""Pods with their claims."""


class Scenario(NamedTuple):
    """Events, and how many steps every task takes before each; None: until all are idle."""

    events: tuple[str, ...]
    pods: str = "one"
    steps: tuple[int | None, ...] = ()

    def __str__(self) -> str:
        shown = [
            name if steps is None else f"{steps}:{name}"
            for name, steps in zip(self.events, self._delays(), strict=True)
        ]
        return "-".join((self.pods, *shown))

    def _delays(self) -> tuple[int | None, ...]:
        return self.steps or (None,) * len(self.events)

    @property
    def waits_between_events(self) -> bool:
        return not self.steps

    async def run(self, world: World) -> None:
        pods = PODS_WITH_CLAIMS[self.pods]
        for claim in sorted({claim for claims in pods.values() for claim in claims}):
            await world.claim(claim)
        for pod, claims in pods.items():
            await world.pod(pod, *claims)
        for name, steps in zip(self.events, self._delays(), strict=True):
            if steps is None:
                await settled()
            for _ in range(steps or 0):
                await asyncio.sleep(0)
            await EVENTS[name](world)


def check(scenarios: Sequence[Scenario]) -> None:
    """Run each scenario in a cluster of its own."""

    async def run(scenario: Scenario) -> None:
        claims = sorted(
            {claim for claims in PODS_WITH_CLAIMS[scenario.pods].values() for claim in claims}
        )
        async with a_world() as world:
            await scenario.run(world)
            await calm(world)
            await check_rest(world)
            await check_end(world, *claims)
            await check_history(world, strictly=scenario.waits_between_events)

    for scenario in scenarios:
        try:
            run_in_virtual_time(run(scenario))
        except BaseException as error:
            error.add_note(f"the scenario: {scenario!r}")
            raise


def sampled(count: int, seed: int, longest: int = 5) -> list[Scenario]:
    """Longer scenarios, with events at any moment."""
    chance = random.Random(seed)  # noqa: S311
    scenarios = []
    for _ in range(count):
        names = chance.choices(tuple(EVENTS), k=chance.randint(2, longest))
        steps = tuple(chance.choice((None, *range(0, 40, 3))) for _ in names)
        scenarios.append(Scenario(tuple(names), chance.choice(tuple(PODS_WITH_CLAIMS)), steps))
    return scenarios


@pytest.mark.parametrize("first", sorted(set(EVENTS) - {"reservations-removed"}))
def test_any_two_events_in_any_order(first: str) -> None:
    others = [name for name in EVENTS if name not in (first, "reservations-removed")]
    check([Scenario((first, second)) for second in others])


@pytest.mark.parametrize("seed", range(3))
def test_any_event_at_any_moment(seed: int) -> None:
    check(sampled(6, seed))


@pytest.mark.slow
@pytest.mark.parametrize("pods", PODS_WITH_CLAIMS)
@pytest.mark.parametrize("first", EVENTS)
def test_any_three_events_in_any_order(first: str, pods: str) -> None:
    rest = itertools.product(EVENTS, repeat=2)
    check([Scenario((first, *others), pods) for others in rest])


@pytest.mark.slow
@pytest.mark.parametrize("pods", PODS_WITH_CLAIMS)
@pytest.mark.parametrize("first", EVENTS)
def test_any_two_events_at_any_distance(first: str, pods: str) -> None:
    check(
        [
            Scenario((first, second), pods, (before, between))
            for second in EVENTS
            for before in (None, 8, 20)
            for between in range(0, 36, 5)
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_any_event_at_any_moment_for_longer(seed: int) -> None:
    check(sampled(50, seed, longest=8))
