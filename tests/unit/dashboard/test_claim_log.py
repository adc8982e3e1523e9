"""What happened to claims while the dashboard watched."""

from __future__ import annotations

from allot.client import resources
from allot.dashboard.claim_log import MAX_ENTRIES, ClaimLog
from allot.testing.builders import a_claim, a_consumer, a_pod, an_allocation

FREE = a_claim()
ALLOCATED = a_claim(allocation=an_allocation("gpu-0"))
RESERVED = a_claim(allocation=an_allocation("gpu-0"), reserved_for=[a_consumer("trainer")])


def test_reserved_released_deleted() -> None:
    log = ClaimLog(lambda: 1.0)

    for old, new in (
        (None, FREE), (FREE, ALLOCATED), (ALLOCATED, RESERVED), (RESERVED, FREE), (FREE, None),
    ):  # fmt: skip
        log.changed(resources.RESOURCE_CLAIMS, old, new)
    log.changed(resources.PODS, None, a_pod())

    assert [(each.what, each.detail) for each in log.of(FREE.key)] == [
        ("reserved", "for pod trainer"),
        ("released", "by pod trainer"),
        ("deallocated", ""),
        ("deleted", ""),
    ]


def test_it_is_bounded() -> None:
    log = ClaimLog(lambda: 1.0)

    for _ in range(MAX_ENTRIES):
        log.changed(resources.RESOURCE_CLAIMS, ALLOCATED, RESERVED)
        log.changed(resources.RESOURCE_CLAIMS, RESERVED, ALLOCATED)

    assert len(log.of(FREE.key)) == MAX_ENTRIES
