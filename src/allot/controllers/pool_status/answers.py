"""The answer to a request: the pools it asks for, in order, as many as it wants, and a condition that says so."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final, NamedTuple

from allot.allocation.ledger import Ledger
from allot.api.base import whole_seconds
from allot.api.classes import DeviceTaintRule
from allot.api.meta import Condition
from allot.api.pool_status import (
    DEFAULT_LIMIT,
    PoolStatus,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
)
from allot.api.slices import ResourceSlice
from allot.controllers.pool_status.census import newest_slices, take_census
from allot.controllers.pool_status.figures import pool_status, shortened

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
MAX_MESSAGE_BYTES: Final = 1024
_INCOMPLETE: Final = "PoolIncomplete:"


class Answer(NamedTuple):
    """How many pools match, and the first of them."""

    pool_count: int
    pools: tuple[PoolStatus, ...]

    @property
    def is_provisional(self) -> bool:
        """Whether a pool that is shown is still being published."""
        return any((pool.validation_error or "").startswith(_INCOMPLETE) for pool in self.pools)


def answer_request(
    spec: ResourcePoolStatusRequestSpec,
    slices: Iterable[ResourceSlice],
    ledger: Ledger,
    rules: Collection[DeviceTaintRule] = (),
) -> Answer:
    """`slices` and `rules` may be more than those of the driver."""
    slices_by_pool = newest_slices(slices, spec.driver, spec.pool_name)
    limit = DEFAULT_LIMIT if spec.limit is None else spec.limit
    pools = tuple(
        pool_status(
            take_census(pool, slices_by_pool[pool], ledger, rules),
            ledger,
            spec.default_partition_type_attribute,
        )
        for pool in list(slices_by_pool)[:limit]
    )
    return Answer(len(slices_by_pool), pools)


def completed(answer: Answer, now: datetime) -> ResourcePoolStatusRequestStatus:
    """The status that tells the answer."""
    message = f"Calculated status for {len(answer.pools)} pools"
    faulty = sum(pool.validation_error is not None for pool in answer.pools)
    if faulty:
        message += f" ({faulty} incomplete)"
    return ResourcePoolStatusRequestStatus(
        pool_count=answer.pool_count,
        pools=answer.pools,
        conditions=(_condition(COMPLETE, "CalculationComplete", message, now),),
        observation_time=whole_seconds(now),
    )


def failed(message: str, now: datetime) -> ResourcePoolStatusRequestStatus:
    """The status that says why there is no answer."""
    return ResourcePoolStatusRequestStatus(
        pool_count=0,
        conditions=(
            _condition(FAILED, "CalculationFailed", shortened(message, MAX_MESSAGE_BYTES), now),
        ),
        observation_time=whole_seconds(now),
    )


def _condition(type_: str, reason: str, message: str, now: datetime) -> Condition:
    return Condition(
        type=type_,
        status="True",
        last_transition_time=whole_seconds(now),
        reason=reason,
        message=message,
    )
