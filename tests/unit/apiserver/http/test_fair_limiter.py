"""Fair sharing of a limit: no user takes all seats, waits are bounded, and no seat is lost."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from allot.apiserver.http.fair_limiter import FairLimiter, QueueLimits, RejectedError
from allot.testing.virtual_time import run_in_virtual_time


@pytest.mark.parametrize(("limit", "share"), [(1, 1), (2, 1), (3, 2), (4, 3), (8, 6), (400, 300)])
def test_a_share_leaves_room_for_others(limit: int, share: int) -> None:
    assert FairLimiter(limit).share == share


async def hold(limiter: FairLimiter, user: str, seconds: float, log: list[str]) -> None:
    await limiter.acquire(user)
    log.append(user)
    await asyncio.sleep(seconds)
    limiter.release(user)


def test_a_user_who_asks_for_everything_does_not_delay_others() -> None:
    async def story() -> list[str]:
        limiter = FairLimiter(4, QueueLimits(wait_seconds=100))
        log: list[str] = []
        flood = [asyncio.create_task(hold(limiter, "ann", 10, log)) for _ in range(12)]
        await asyncio.sleep(1)
        assert limiter.held_by("ann") == 3
        ben = asyncio.create_task(hold(limiter, "ben", 1, log))
        await asyncio.sleep(1)
        assert log[-1] == "ben"
        await asyncio.gather(*flood, ben)
        assert (limiter.in_use, limiter.waiting) == (0, 0)
        return log

    assert Counter(run_in_virtual_time(story())) == {"ann": 12, "ben": 1}


def test_released_seats_go_to_the_user_with_the_fewest() -> None:
    async def story() -> list[str]:
        limiter = FairLimiter(4, QueueLimits(wait_seconds=100))
        log: list[str] = []
        tasks = [asyncio.create_task(hold(limiter, "ann", 10, log)) for _ in range(6)]
        await asyncio.sleep(1)
        tasks += [asyncio.create_task(hold(limiter, "ben", 10, log)) for _ in range(3)]
        tasks += [asyncio.create_task(hold(limiter, "cid", 10, log)) for _ in range(1)]
        await asyncio.gather(*tasks)
        return log

    # One is free for Ben at once. When Ann's first ends, Cid holds nothing and comes before both.
    assert run_in_virtual_time(story())[3:5] == ["ben", "cid"]


def test_waiting_is_limited_in_time_per_user_and_in_all() -> None:
    async def story() -> None:
        limiter = FairLimiter(1, QueueLimits(max_waiting=3, max_waiting_per_user=2, wait_seconds=5))
        await limiter.acquire("ann")
        loop = asyncio.get_running_loop()
        waiting = [asyncio.create_task(limiter.acquire("ann")) for _ in range(2)]
        await asyncio.sleep(0.1)
        with pytest.raises(RejectedError, match="queue-full"):
            await limiter.acquire("ann")
        waiting.append(asyncio.create_task(limiter.acquire("ben")))
        await asyncio.sleep(0.1)
        with pytest.raises(RejectedError, match="queue-full"):
            await limiter.acquire("cid")
        rejected = await asyncio.gather(*waiting, return_exceptions=True)
        assert [getattr(error, "reason", None) for error in rejected] == ["time-out"] * 3
        assert loop.time() < 6
        limiter.release("ann")
        assert (limiter.in_use, limiter.waiting) == (0, 0)

    run_in_virtual_time(story())


def test_wide_requests_are_not_starved_by_narrow_ones() -> None:
    async def story() -> None:
        limiter = FairLimiter(100, QueueLimits(wait_seconds=100))
        for user in "abcd":
            await limiter.acquire(user, 20)
        large = asyncio.create_task(limiter.acquire("large", 70))
        await asyncio.sleep(0)
        small = asyncio.create_task(limiter.acquire("small", 20))
        await asyncio.sleep(0)
        assert not small.done()
        for user in "abcd":
            limiter.release(user, 20)
        await large
        await small

    run_in_virtual_time(story())


def test_a_user_gets_at_most_its_share() -> None:
    async def story() -> int:
        return await FairLimiter(8).acquire("ann", 100)

    assert run_in_virtual_time(story()) == 6


@pytest.mark.parametrize("seed", range(20))
def test_cancelled_requests_lose_no_seats(seed: int) -> None:
    """Limits hold at every moment, and in the end everything is free again."""
    chance = random.Random(seed)  # noqa: S311
    limiter = FairLimiter(7, QueueLimits(max_waiting=12, max_waiting_per_user=5, wait_seconds=3))

    async def one(user: str) -> None:
        try:
            amount = await limiter.acquire(user, chance.choice([1, 1, 2, 4]))
        except RejectedError:
            return
        try:
            assert limiter.in_use <= limiter.limit
            assert limiter.held_by(user) <= limiter.share
            await asyncio.sleep(chance.choice([0, 0.5, 4]))
        finally:
            limiter.release(user, amount)

    async def story() -> None:
        tasks = []
        for _ in range(200):
            tasks.append(asyncio.create_task(one(chance.choice("abc"))))
            if chance.random() < 0.3:
                chance.choice(tasks).cancel()
            if chance.random() < 0.5:
                await asyncio.sleep(chance.choice([0, 0.1, 1]))
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (limiter.in_use, limiter.waiting) == (0, 0)
        assert await limiter.acquire("a", 5) == 5

    run_in_virtual_time(story())


def test_what_fits_is_taken_without_waiting() -> None:
    async def run() -> None:
        limiter = FairLimiter(4)

        assert limiter.take("ann", 5) == 3, "a whole share"
        assert limiter.take("ann") is None
        assert limiter.take("ben", 2) is None, "one is left"
        waiting = asyncio.create_task(limiter.acquire("ben", 2))
        await asyncio.sleep(0)
        assert limiter.take("cid") is None, "ben comes first"
        limiter.release("ann", 3)
        assert await waiting == 2
        assert (limiter.take("cid"), limiter.in_use) == (1, 3)
        assert await limiter.acquire("dan", 0) == 0

    asyncio.run(run())
