"""The status of a request: the pools that it selects, sorted, up to its limit, and a condition."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final, NamedTuple

from allot.allocation.allocated_devices import Ledger
from allot.api.base import whole_seconds
from allot.api.classes import DeviceTaintRule
from allot.api.messages import shortened
from allot.api.meta import Condition
from allot.api.pool_status import (
    CALCULATED,
    COMPLETE,
    DEFAULT_LIMIT,
    FAILED,
    MAX_VALIDATION_ERROR_LENGTH,
    MAX_VALIDATION_ERRORS,
    PoolStatus,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
)
from allot.api.scheme import encode_hub
from allot.api.slices import ResourceSlice
from allot.client.steps import Steps, finish
from allot.controllers.pool_status.device_availability import (
    computing_pool_availability,
    finding_newest_slices,
)
from allot.controllers.pool_status.pool_summary import counting_pool
from allot.features import DEFAULTS, FeatureGates
from allot.rules import CROSS_SLICE_VALIDATION

MAX_MESSAGE_BYTES: Final = 1024
MAX_ANSWER_BYTES: Final = 1024 * 1024
"""Of all pools together, as JSON. etcd accepts requests of up to 1.5 MiB, API servers bodies of up to 3 MiB; metadata
may be another 256 KiB and more. A thousand pools without summaries fit, unless all their names are long."""
_INCOMPLETE: Final = "PoolIncomplete:"


class PoolStatusAnswer(NamedTuple):
    """The number of matching pools, and the first of them."""

    pool_count: int
    pools: tuple[PoolStatus, ...]
    left_out: int = 0
    """Selected pools that did not fit."""
    errors: tuple[str, ...] = ()
    """Validation errors of the shown pools, one by one, the first few."""
    json: bytes = b"[]"
    """The pools in the JSON of v1alpha3."""

    @property
    def is_provisional(self) -> bool:
        """Whether a shown pool is incomplete."""
        return any(map(_is_incomplete, self.pools))

    @property
    def faulty_pools(self) -> int:
        return sum(pool.validation_error is not None for pool in self.pools)

    @property
    def incomplete_pools(self) -> int:
        return sum(map(_is_incomplete, self.pools))


def _is_incomplete(pool: PoolStatus) -> bool:
    return (pool.validation_error or "").startswith(_INCOMPLETE)


def answer_request(
    spec: ResourcePoolStatusRequestSpec,
    slices: Iterable[ResourceSlice],
    ledger: Ledger,
    rules: Collection[DeviceTaintRule] = (),
    max_bytes: int = MAX_ANSWER_BYTES,
    gates: FeatureGates = DEFAULTS,
) -> PoolStatusAnswer:
    """`slices` and `rules` may be more than those of the driver."""
    return finish(answering_request(spec, slices, ledger, rules, max_bytes, gates))


def answering_request(
    spec: ResourcePoolStatusRequestSpec,
    slices: Iterable[ResourceSlice],
    ledger: Ledger,
    rules: Collection[DeviceTaintRule] = (),
    max_bytes: int = MAX_ANSWER_BYTES,
    gates: FeatureGates = DEFAULTS,
) -> Steps[PoolStatusAnswer]:
    """`answer_request` in steps. A pool that does not fit is left out, with all after it."""
    slices_by_pool = yield from finding_newest_slices(slices, spec.driver, spec.pool_name)
    wanted = list(slices_by_pool)[: DEFAULT_LIMIT if spec.limit is None else spec.limit]
    pools: list[PoolStatus] = []
    written: list[bytes] = []
    errors: list[str] = []
    size = len(b"[]")
    for pool in wanted:
        census = yield from computing_pool_availability(pool, slices_by_pool[pool], ledger, rules)
        attribute = spec.default_partition_type_attribute
        status, found = yield from counting_pool(census, ledger, attribute, gates)
        text = encode_hub(status)
        size += len(text) + len(b",")
        if size > max_bytes:
            break
        pools.append(status)
        written.append(text)
        errors += (
            shortened(f"pool {status.pool_name}: {error}", MAX_VALIDATION_ERROR_LENGTH)
            for error in found[: MAX_VALIDATION_ERRORS - len(errors)]
        )
        # One pool may have many devices or many summaries: pause after each.
        yield
    json = b"[%b]" % b",".join(written)
    left_out = len(wanted) - len(pools)
    return PoolStatusAnswer(len(slices_by_pool), tuple(pools), left_out, tuple(errors), json)


def completed(
    answer: PoolStatusAnswer, now: datetime, unmatched: str = "", gates: FeatureGates = DEFAULTS
) -> ResourcePoolStatusRequestStatus:
    """The status of a completed request. `unmatched` says why no pool matches."""
    outcome = Completion(
        len(answer.pools),
        answer.faulty_pools,
        answer.incomplete_pools,
        answer.left_out,
        unmatched,
    )
    return ResourcePoolStatusRequestStatus(
        pool_count=answer.pool_count,
        pools=answer.pools,
        conditions=(completion(outcome, now, gates),),
        observation_time=whole_seconds(now),
        validation_errors=answer.errors,
    )


class Completion(NamedTuple):
    """The content of the condition Complete."""

    shown: int
    faulty: int = 0
    """Pools with a validation error, of those shown."""
    incomplete: int = 0
    """Incomplete pools among them."""
    left_out: int = 0
    unmatched: str = ""
    """Why no pool matches."""


def completion(outcome: Completion, now: datetime, gates: FeatureGates = DEFAULTS) -> Condition:
    """The condition Complete. v1.38 calls every pool with an error incomplete."""
    shown, faulty, incomplete, left_out, unmatched = outcome
    message = f"{CALCULATED} {shown} pools"
    if CROSS_SLICE_VALIDATION not in gates:
        incomplete = faulty
    notes = []
    if incomplete:
        notes.append(f"{incomplete} incomplete")
    if faulty > incomplete:
        notes.append(f"{faulty - incomplete} with errors")
    if notes:
        message += f" ({', '.join(notes)})"
    if left_out:
        message += f"; {left_out} more do not fit into the answer, ask for them by poolName"
    if unmatched:
        message += f"; {unmatched}"
    return _condition(COMPLETE, "CalculationComplete", message, now)


def failed(message: str, now: datetime) -> ResourcePoolStatusRequestStatus:
    """The status of a request that failed."""
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
