"""Which pools an answer tells of, what its condition says, and how long it is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from allot.allocation.allocated_devices import Ledger
from allot.api.base import replace
from allot.api.meta import ObjectMeta
from allot.api.pool_status import (
    MAX_VALIDATION_ERROR_LENGTH,
    MAX_VALIDATION_ERRORS,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
)
from allot.controllers.pool_status.answers import (
    PoolStatusAnswer,
    answer_request,
    completed,
    failed,
)
from allot.controllers.pool_status.expiry import expires_at
from allot.features import DEFAULTS
from allot.rules import CROSS_SLICE_VALIDATION
from allot.testing.builders import DRIVER
from tests.unit.controllers.pool_status.pools import devices, slice_of, without

NOW = datetime(2026, 2, 7, 10, 30, 0, 999, UTC)
SLICES = [
    *(slice_of(*devices("a"), name=f"s{n}", pool=f"pool-{n}") for n in (3, 1, 2)),
    slice_of(*devices("a"), name="other", pool="pool-1", driver="other.example.com"),
    slice_of(*devices("a"), name="half", pool="pool-9", announced=2),
    *(
        slice_of(
            *devices(*(f"d-{number}" for number in range(12))),
            name=name,
            pool="pool-1",
            announced=2,
            driver="twice.example.com",
        )
        for name in ("twice-1", "twice-2")
    ),
    slice_of(*devices("a"), name="twice-3", pool="pool-2", announced=2, driver="twice.example.com"),
    *(
        slice_of(*devices("d"), name=name, pool="p" * 230, announced=2, driver="long.example.com")
        for name in ("long-1", "long-2")
    ),
]


def ask(**spec: object) -> PoolStatusAnswer:
    request = ResourcePoolStatusRequestSpec(**({"driver": DRIVER, "limit": 100} | spec))  # type: ignore[arg-type]
    return answer_request(request, SLICES, Ledger(DEFAULTS))


@pytest.mark.parametrize(
    ("spec", "pools", "count"),
    [
        pytest.param({}, ["pool-1", "pool-2", "pool-3", "pool-9"], 4, id="all-of-the-driver"),
        pytest.param({"pool_name": "pool-2"}, ["pool-2"], 1, id="one-pool"),
        pytest.param({"limit": 2}, ["pool-1", "pool-2"], 4, id="the-first-two"),
        pytest.param({"limit": None}, ["pool-1", "pool-2", "pool-3", "pool-9"], 4, id="no-limit"),
        pytest.param({"driver": "absent.example.com"}, [], 0, id="no-such-driver"),
    ],
)
def test_pools_that_were_asked_for(spec: dict[str, object], pools: list[str], count: int) -> None:
    answer = ask(**spec)

    assert [pool.pool_name for pool in answer.pools] == pools
    assert answer.pool_count == count


def test_only_incomplete_pools_that_are_shown_make_an_answer_provisional() -> None:
    assert ask().is_provisional
    assert not ask(limit=3).is_provisional


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ask(limit=2), "Calculated status for 2 pools"),
        (ask(), "Calculated status for 4 pools (1 incomplete)"),
        (ask(driver="absent.example.com"), "Calculated status for 0 pools"),
        (
            ask(driver="twice.example.com"),
            "Calculated status for 2 pools (1 incomplete, 1 with errors)",
        ),
    ],
)
def test_the_condition_of_an_answer(answer: PoolStatusAnswer, message: str) -> None:
    status = completed(answer, NOW)

    (condition,) = status.conditions
    assert (condition.type, condition.status) == ("Complete", "True")
    assert (condition.reason, condition.message) == ("CalculationComplete", message)
    assert condition.last_transition_time == NOW.replace(microsecond=0)
    assert status.pool_count == answer.pool_count


def test_v1_38_calls_every_pool_with_an_error_incomplete() -> None:
    answer = ask(driver="twice.example.com")

    (condition,) = completed(answer, NOW, gates=without(CROSS_SLICE_VALIDATION)).conditions

    assert condition.message == "Calculated status for 2 pools (2 incomplete)"


def test_every_error_is_an_entry_of_its_own_up_to_ten() -> None:
    errors = completed(ask(driver="twice.example.com"), NOW).validation_errors

    assert errors == (
        *(
            f"pool pool-1: device d-{number} appears in multiple slices"
            for number in range(MAX_VALIDATION_ERRORS)
        ),
    )
    (error,) = ask(driver="long.example.com").errors
    assert len(error) <= MAX_VALIDATION_ERROR_LENGTH
    assert error.endswith(("device...", "appears...", "in...", "multiple..."))


def test_the_condition_of_a_failure() -> None:
    status = failed("because" * 1000, NOW)

    (condition,) = status.conditions
    assert (condition.type, condition.status, condition.reason) == (
        "Failed",
        "True",
        "CalculationFailed",
    )
    assert len(condition.message) == 1024
    assert (status.pool_count, status.pools) == (0, ())


_PENDING = ResourcePoolStatusRequest(ObjectMeta(name="q", creation_timestamp=NOW))
_HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("status", "ttl_seconds", "kept"),
    [
        pytest.param(None, None, 24 * _HOUR, id="pending"),
        pytest.param(None, 5, 24 * _HOUR, id="pending-has-no-ttl"),
        pytest.param(ResourcePoolStatusRequestStatus(), None, 24 * _HOUR, id="unfinished"),
        pytest.param(completed(ask(), NOW + _HOUR), None, 2 * _HOUR, id="complete"),
        pytest.param(failed("", NOW + _HOUR), None, 2 * _HOUR, id="failed"),
        pytest.param(completed(ask(), NOW + _HOUR), 7200, 3 * _HOUR, id="longer"),
        pytest.param(completed(ask(), NOW + _HOUR), 0, _HOUR, id="not-at-all"),
    ],
)
def test_how_long_requests_are_kept(
    status: ResourcePoolStatusRequestStatus | None, ttl_seconds: int | None, kept: timedelta
) -> None:
    request = replace(_PENDING, status=status)

    expires = expires_at(request, ttl_seconds)

    assert expires is not None
    assert abs(expires - (NOW + kept)) < timedelta(seconds=1)


def test_what_was_never_created_does_not_expire() -> None:
    assert expires_at(ResourcePoolStatusRequest(), None) is None
