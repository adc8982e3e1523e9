"""Answers fit the store, are counted in steps, and are shared by those who ask the same."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from allot.allocation.allocated_devices import Ledger
from allot.api.pool_status import ResourcePoolStatusRequestSpec
from allot.client.steps import finish
from allot.controllers.pool_status.answers import (
    MAX_ANSWER_BYTES,
    PoolStatusAnswer,
    answer_request,
    answering_request,
)
from allot.controllers.pool_status.device_availability import DEVICES_AT_ONCE
from allot.controllers.pool_status.shared_answers import RequestedPools, SharedAnswer, SharedAnswers
from allot.features import DEFAULTS
from allot.testing.builders import DRIVER
from tests.unit.controllers.pool_status.pools import (
    a_rule,
    counter_set,
    devices,
    partition,
    slice_of,
)

NOW = datetime(2026, 2, 7, 10, 30, tzinfo=UTC)
SPEC = ResourcePoolStatusRequestSpec(driver=DRIVER, limit=1000)
SLICES = [slice_of(*devices("a"), name=f"s{n}", pool=f"pool-{n:02}") for n in range(20)]


@pytest.mark.parametrize("max_bytes", [0, 2, 100, 500, 1000, 3000, MAX_ANSWER_BYTES])
def test_whole_pools_from_the_beginning_that_fit(max_bytes: int) -> None:
    everything = answer_request(SPEC, SLICES, Ledger(DEFAULTS))
    answer = answer_request(SPEC, SLICES, Ledger(DEFAULTS), max_bytes=max_bytes)

    assert answer.pools == everything.pools[: len(answer.pools)]
    assert (answer.pool_count, len(answer.pools) + answer.left_out) == (20, 20)
    assert len(msgspec.json.decode(answer.json)) == len(answer.pools)
    assert len(answer.json) <= max(max_bytes, 2)
    assert answer.left_out or max_bytes == MAX_ANSWER_BYTES


def test_what_was_not_asked_for_is_not_left_out() -> None:
    spec = ResourcePoolStatusRequestSpec(driver=DRIVER, limit=3)
    answer = answer_request(spec, SLICES, Ledger(DEFAULTS))

    assert (answer.pool_count, len(answer.pools), answer.left_out) == (20, 3, 0)


def test_counting_pauses_within_a_large_pool() -> None:
    """Census, contradictions, partitions and fitting each look at all devices."""
    count = 50 * DEVICES_AT_ONCE
    listed = [partition(f"p-{number}", "half", "1Gi") for number in range(count)]
    slices = [
        slice_of(*listed, name="s", announced=2),
        slice_of(name="c", announced=2, shared_counters=(counter_set(memory=f"{count}Gi"),)),
    ]
    spec = ResourcePoolStatusRequestSpec(
        driver=DRIVER, default_partition_type_attribute=f"{DRIVER}/profile"
    )
    steps = answering_request(spec, slices, Ledger(DEFAULTS))

    pauses = sum(1 for _ in steps)
    assert pauses >= 5 * count / DEVICES_AT_ONCE
    (pool,) = answer_request(spec, slices, Ledger(DEFAULTS)).pools
    assert pool.partition_summary[0].allocatable == count


def test_counting_pauses_more_often_with_many_rules() -> None:
    count = 2 * DEVICES_AT_ONCE
    slices = [slice_of(*devices(*(f"d-{number}" for number in range(count))))]
    rules = [a_rule("None", driver=DRIVER) for _ in range(DEVICES_AT_ONCE)]
    few, many = (
        sum(1 for _ in answering_request(SPEC, slices, Ledger(DEFAULTS), chosen))
        for chosen in ([], rules)
    )
    assert many - few >= count - 2


def test_steps_end_with_the_same_result() -> None:
    steps = answering_request(SPEC, SLICES, Ledger(DEFAULTS))
    assert finish(steps) == answer_request(SPEC, SLICES, Ledger(DEFAULTS))


# --- sharing ---


class Counting:
    """Counts how often it is asked to count."""

    def __init__(self, answers: SharedAnswers) -> None:
        self.answers = answers
        self.count = 0
        self.now = 0.0
        self.state = 0

    async def get(self, since: float = 0.0, pool: str | None = None, size: int = 2) -> SharedAnswer:
        async def count() -> SharedAnswer:
            self.count += 1
            began, state = self.now, self.state
            await asyncio.sleep(0)
            answer = PoolStatusAnswer(0, (), json=b"x" * size)
            return SharedAnswer.of(answer, NOW, began, state)

        spec = ResourcePoolStatusRequestSpec(driver=DRIVER, pool_name=pool)
        return await self.answers.get(RequestedPools.by(spec), since, lambda: self.state, count)


def test_equal_questions_are_counted_once_until_something_changes() -> None:
    async def story() -> None:
        counting = Counting(SharedAnswers())
        await asyncio.gather(*(counting.get(since=float(number)) for number in range(10)))
        assert counting.count == 1
        await counting.get(pool="other")
        assert counting.count == 2
        counting.state += 1
        await counting.get()
        assert counting.count == 3

    asyncio.run(story())


def test_an_answer_is_good_for_all_that_came_before_it_was_counted() -> None:
    async def story() -> None:
        counting = Counting(SharedAnswers())
        counting.now = 10.0
        await counting.get(since=9.0)
        counting.state += 1
        await counting.get(since=9.5)
        assert counting.count == 1
        await counting.get(since=10.5)
        assert counting.count == 2

    asyncio.run(story())


def test_only_so_many_bytes_are_kept() -> None:
    async def story() -> None:
        counting = Counting(SharedAnswers(max_bytes=100_000))
        for number in range(1000):
            await counting.get(pool=f"p-{number}", size=2 if number % 2 else 30_000)
        count = counting.count
        await counting.get(pool="p-999")
        assert counting.count == count
        await counting.get(pool="p-0")
        assert counting.count == count + 1
        assert len(counting.answers._kept) < 25

    asyncio.run(story())
