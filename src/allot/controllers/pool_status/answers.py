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
from allot.api.scheme import encode_hub
from allot.api.slices import ResourceSlice
from allot.client.pauses import Steps, finish
from allot.controllers.pool_status.census import finding_newest_slices, taking_census
from allot.controllers.pool_status.figures import counting_pool, shortened

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
MAX_MESSAGE_BYTES: Final = 1024
MAX_ANSWER_BYTES: Final = 1024 * 1024
"""Of all pools together, as JSON. etcd takes requests of up to 1.5 MiB, API servers bodies of up to 3 MiB; metadata
may be another 256 KiB and more. A thousand pools without summaries fit, unless all their names are long."""
_INCOMPLETE: Final = "PoolIncomplete:"


class Answer(NamedTuple):
    """How many pools match, and the first of them."""

    pool_count: int
    pools: tuple[PoolStatus, ...]
    left_out: int = 0
    """How many more were asked for and did not fit."""
    json: bytes = b"[]"
    """The pools as v1alpha3 writes them."""

    @property
    def is_provisional(self) -> bool:
        """Whether a pool that is shown is still being published."""
        return any((pool.validation_error or "").startswith(_INCOMPLETE) for pool in self.pools)

    @property
    def faulty_pools(self) -> int:
        return sum(pool.validation_error is not None for pool in self.pools)


def answer_request(
    spec: ResourcePoolStatusRequestSpec,
    slices: Iterable[ResourceSlice],
    ledger: Ledger,
    rules: Collection[DeviceTaintRule] = (),
    max_bytes: int = MAX_ANSWER_BYTES,
) -> Answer:
    """`slices` and `rules` may be more than those of the driver."""
    return finish(answering_request(spec, slices, ledger, rules, max_bytes))


def answering_request(
    spec: ResourcePoolStatusRequestSpec,
    slices: Iterable[ResourceSlice],
    ledger: Ledger,
    rules: Collection[DeviceTaintRule] = (),
    max_bytes: int = MAX_ANSWER_BYTES,
) -> Steps[Answer]:
    """`answer_request` in steps. A pool that does not fit into the answer is left out, with all after it."""
    slices_by_pool = yield from finding_newest_slices(slices, spec.driver, spec.pool_name)
    wanted = list(slices_by_pool)[: DEFAULT_LIMIT if spec.limit is None else spec.limit]
    pools: list[PoolStatus] = []
    written: list[bytes] = []
    size = len(b"[]")
    for pool in wanted:
        census = yield from taking_census(pool, slices_by_pool[pool], ledger, rules)
        status = yield from counting_pool(census, ledger, spec.default_partition_type_attribute)
        text = encode_hub(status)
        size += len(text) + len(b",")
        if size > max_bytes:
            break
        pools.append(status)
        written.append(text)
        # One pool may have many devices, or many summaries: either is enough for now.
        yield
    json = b"[%b]" % b",".join(written)
    return Answer(len(slices_by_pool), tuple(pools), len(wanted) - len(pools), json)


def completed(answer: Answer, now: datetime) -> ResourcePoolStatusRequestStatus:
    """The status that tells the answer."""
    return ResourcePoolStatusRequestStatus(
        pool_count=answer.pool_count,
        pools=answer.pools,
        conditions=(completion(len(answer.pools), answer.faulty_pools, answer.left_out, now),),
        observation_time=whole_seconds(now),
    )


def completion(shown: int, faulty: int, left_out: int, now: datetime) -> Condition:
    """The condition of an answer with so many pools."""
    message = f"Calculated status for {shown} pools"
    if faulty:
        message += f" ({faulty} incomplete)"
    if left_out:
        message += f"; {left_out} more do not fit into the answer, ask for them by poolName"
    return _condition(COMPLETE, "CalculationComplete", message, now)


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
