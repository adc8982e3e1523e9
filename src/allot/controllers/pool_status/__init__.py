"""Writes the status of ResourcePoolStatusRequests: how many devices of each pool are available (KEP-5677).

    slices ──► device_availability: each device available, allocated or unavailable ──► pool_summary ──► answers
    claims ──► ledger ──┘                                                                    └──► `allot status`

`device_availability`, `pool_summary`, `partitions`, `shares`, `consistency` and `answers` are pure functions;
`controller` is the control loop, `expiry` says when a request is deleted. The loop and its answers are imported when
they are first used: `allot status` needs only the figures.
"""

from allot._lazy import lazy_names
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from allot.controllers.pool_status.answers import PoolStatusAnswer, answer_request
    from allot.controllers.pool_status.controller import ResourcePoolStatusRequestController
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "PoolStatusAnswer": "allot.controllers.pool_status.answers",
            "ResourcePoolStatusRequestController": "allot.controllers.pool_status.controller",
            "answer_request": "allot.controllers.pool_status.answers",
        },
    )
