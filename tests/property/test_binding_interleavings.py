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


async def touch(world: World) -> None:
    await world.label("c")
    await world.set_condition("c", "Cosy")


async def replace_slices(world: World) -> None:
    """The devices are offered no longer; others are in their place."""
    for node in NODES:
        await world.publish(node, [device_with(f"other-{name}", READY) for name in DEVICES])


async def taint(world: World) -> None:
    for name in DEVICES:
        await world.taint(name)


HAPPENINGS: Final[Mapping[str, Callable[[World], Awaitable[object]]]] = {
    "ready": lambda world: world.set_condition("c", READY),
    "failed": lambda world: world.set_condition("c", FAILED),
    "timeout": lambda _: asyncio.sleep(TIMEOUT_SECONDS + 1),
    "pod-deleted": lambda world: world.delete(f"{PODS}/p"),
    "touched": touch,
    "deallocated": lambda world: world.deallocate("c"),
    "claim-deleted": lambda world: world.delete(f"{CLAIMS}/c"),
    "tidied": lambda world: world.tidy(),
    "restarted": restart,
    "slice-replaced": replace_slices,
    "tainted": taint,
}
CAST: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "one": {"p": ("c",)},
    "shared": {"p": ("c",), "q": ("c",)},
    "two": {"p": ("c", "d")},
}
"""Pods with their claims."""


class Story(NamedTuple):
    """Events, and how many steps every task takes before each; None: until all are idle."""

    observed_events: tuple[str, ...]
    cast: str = "one"
    turns: tuple[int | None, ...] = ()

    def __str__(self) -> str:
        shown = [
            name if turns is None else f"{turns}:{name}"
            for name, turns in zip(self.observed_events, self._turns(), strict=True)
        ]
        return "-".join((self.cast, *shown))

    def _turns(self) -> tuple[int | None, ...]:
        return self.turns or (None,) * len(self.observed_events)

    @property
    def is_calm(self) -> bool:
        return not self.turns

    async def tell(self, world: World) -> None:
        pods = CAST[self.cast]
        for claim in sorted({claim for claims in pods.values() for claim in claims}):
            await world.claim(claim)
        for pod, claims in pods.items():
            await world.pod(pod, *claims)
        for name, turns in zip(self.observed_events, self._turns(), strict=True):
            if turns is None:
                await settled()
            for _ in range(turns or 0):
                await asyncio.sleep(0)
            await HAPPENINGS[name](world)


def check(stories: Sequence[Story]) -> None:
    """Tell each story in a world of its own."""

    async def tell(story: Story) -> None:
        claims = sorted({claim for claims in CAST[story.cast].values() for claim in claims})
        async with a_world() as world:
            await story.tell(world)
            await calm(world)
            await check_rest(world)
            await check_end(world, *claims)
            await check_history(world, strictly=story.is_calm)

    for story in stories:
        try:
            run_in_virtual_time(tell(story))
        except BaseException as error:
            error.add_note(f"the story: {story!r}")
            raise


def sampled(count: int, seed: int, longest: int = 5) -> list[Story]:
    """Longer stories, in which things happen at any moment."""
    chance = random.Random(seed)  # noqa: S311
    stories = []
    for _ in range(count):
        names = chance.choices(tuple(HAPPENINGS), k=chance.randint(2, longest))
        turns = tuple(chance.choice((None, *range(0, 40, 3))) for _ in names)
        stories.append(Story(tuple(names), chance.choice(tuple(CAST)), turns))
    return stories


@pytest.mark.parametrize("first", sorted(set(HAPPENINGS) - {"tidied"}))
def test_any_two_things_in_any_order(first: str) -> None:
    others = [name for name in HAPPENINGS if name not in (first, "tidied")]
    check([Story((first, second)) for second in others])


@pytest.mark.parametrize("seed", range(3))
def test_anything_at_any_moment(seed: int) -> None:
    check(sampled(6, seed))


@pytest.mark.slow
@pytest.mark.parametrize("cast", CAST)
@pytest.mark.parametrize("first", HAPPENINGS)
def test_any_three_things_in_any_order(first: str, cast: str) -> None:
    rest = itertools.product(HAPPENINGS, repeat=2)
    check([Story((first, *others), cast) for others in rest])


@pytest.mark.slow
@pytest.mark.parametrize("cast", CAST)
@pytest.mark.parametrize("first", HAPPENINGS)
def test_any_two_things_at_any_distance(first: str, cast: str) -> None:
    check(
        [
            Story((first, second), cast, (before, between))
            for second in HAPPENINGS
            for before in (None, 8, 20)
            for between in range(0, 36, 5)
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_anything_at_any_moment_for_longer(seed: int) -> None:
    check(sampled(50, seed, longest=8))
