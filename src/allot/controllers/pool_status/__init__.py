"""How many devices of each pool are free: answers to ResourcePoolStatusRequests (KEP-5677).

    slices ──► census: the devices of each pool, free, taken or tainted ──► figures ──► answers
    claims ──► ledger ──┘                                                   └──► `allot status`

`census`, `figures`, `partitions`, `shares`, `consistency` and `answers` are values in, values out; `controller`
is the loop, `expiry` says when an answer has been there long enough.
"""

from allot.controllers.pool_status.answers import PoolStatusAnswer, answer_request
from allot.controllers.pool_status.controller import ResourcePoolStatusRequestController
from allot.controllers.pool_status.device_availability import (
    CountedDevice,
    DeviceAvailability,
    PoolAvailability,
    newest_slices,
    pool_availability,
)
from allot.controllers.pool_status.pool_summary import pool_status

__all__ = [
    "CountedDevice",
    "DeviceAvailability",
    "PoolAvailability",
    "PoolStatusAnswer",
    "ResourcePoolStatusRequestController",
    "answer_request",
    "newest_slices",
    "pool_availability",
    "pool_status",
]
