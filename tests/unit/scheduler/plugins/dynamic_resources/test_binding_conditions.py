"""Whether the devices of a claim are ready (KEP-5007)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from allot.api.claims import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from allot.api.meta import Condition, ObjectMeta
from allot.scheduler.plugins.dynamic_resources.binding_conditions import (
    BindingFailed,
    NotReady,
    Readiness,
    Ready,
    has_conditions,
    readiness,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TIMEOUT = timedelta(minutes=10)
SHARE = "00000000-0000-0000-0000-000000000001"
OTHER_SHARE = "00000000-0000-0000-0000-000000000002"


def a_result(
    device: str = "fpga-0", *conditions: str, share_id: str | None = None
) -> DeviceRequestAllocationResult:
    return DeviceRequestAllocationResult(
        request="r",
        driver="fpga.example.com",
        pool="p",
        device=device,
        share_id=share_id,
        binding_conditions=conditions,
        binding_failure_conditions=("Broken", "Lost") if conditions else (),
    )


def a_status(
    device: str = "fpga-0", share_id: str | None = None, **conditions: str
) -> AllocatedDeviceStatus:
    return AllocatedDeviceStatus(
        driver="fpga.example.com",
        pool="p",
        device=device,
        share_id=share_id,
        conditions=tuple(
            Condition(type=name, status=status, reason="Because", message="of that")
            for name, status in conditions.items()
        ),
    )


def an_allocated_claim(
    results: list[DeviceRequestAllocationResult],
    statuses: list[AllocatedDeviceStatus] | None = None,
    age: timedelta | None = timedelta(minutes=1),
) -> ResourceClaim:
    allocation = AllocationResult(
        devices=DeviceAllocationResult(results=tuple(results)),
        allocation_timestamp=None if age is None else NOW - age,
    )
    status = ResourceClaimStatus(allocation=allocation, devices=tuple(statuses or ()))
    return ResourceClaim(metadata=ObjectMeta(name="c", namespace="ns"), status=status)


FAILED = (
    'device binding failed: claim=c, reason=Because, message="of that"; fpga.example.com/p/fpga-0: '
)
MISSING = "fpga.example.com/p/fpga-0"


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param(an_allocated_claim([a_result()]), Ready(), id="no-conditions"),
        pytest.param(
            an_allocated_claim([a_result("fpga-0", "Up")], [a_status(Up="True")]),
            Ready(),
            id="all-true",
        ),
        pytest.param(
            an_allocated_claim([a_result("fpga-0", "Up")]),
            NotReady((f"{MISSING}: Up",), NOW + timedelta(minutes=9)),
            id="no-status-yet",
        ),
        pytest.param(
            an_allocated_claim(
                [a_result("fpga-0", "Up", "Warm")], [a_status(Up="True", Warm="False")]
            ),
            NotReady((f"{MISSING}: Warm",), NOW + timedelta(minutes=9)),
            id="one-of-two",
        ),
        pytest.param(
            an_allocated_claim([a_result("fpga-0", "Up")], [a_status(Up="Unknown")], age=None),
            NotReady((f"{MISSING}: Up",), None),
            id="no-time-no-deadline",
        ),
        pytest.param(
            an_allocated_claim([a_result("fpga-0", "Up")], [a_status("fpga-1", Up="True")]),
            NotReady((f"{MISSING}: Up",), NOW + timedelta(minutes=9)),
            id="status-of-another-device",
        ),
        pytest.param(
            an_allocated_claim(
                [a_result("fpga-0", "Up", share_id=SHARE)],
                [a_status(share_id=OTHER_SHARE, Up="True")],
            ),
            NotReady((f"{MISSING} (share {SHARE}): Up",), NOW + timedelta(minutes=9)),
            id="status-of-another-share",
        ),
        pytest.param(
            an_allocated_claim(
                [a_result("fpga-0", "Up", share_id=SHARE)], [a_status(share_id=SHARE, Up="True")]
            ),
            Ready(),
            id="status-of-this-share",
        ),
    ],
)
def test_readiness(claim: ResourceClaim, expected: Readiness) -> None:
    assert readiness(claim, TIMEOUT, NOW) == expected


@pytest.mark.parametrize(
    ("claim", "message", "timed_out"),
    [
        pytest.param(
            an_allocated_claim([a_result("fpga-0", "Up")], [a_status(Up="True", Lost="True")]),
            f"{FAILED}Lost",
            False,
            id="failure-counts-before-success",
        ),
        pytest.param(
            an_allocated_claim(
                [a_result("fpga-0", "Up")], [a_status(Broken="True")], timedelta(hours=1)
            ),
            f"{FAILED}Broken",
            False,
            id="failure-counts-before-time",
        ),
        pytest.param(
            an_allocated_claim([a_result("fpga-0", "Up")], age=TIMEOUT),
            f"device binding timeout: claim=c; not ready within 600 s: {MISSING}: Up was never reported",
            True,
            id="time-is-up",
        ),
        pytest.param(
            an_allocated_claim(
                [
                    a_result("fpga-0", "Up", "Warm"),
                    a_result("fpga-1", "Up"),
                    a_result("fpga-2", "Up"),
                ],
                [a_status(Up="True", Warm="False"), a_status("fpga-2", Up="True")],
                age=TIMEOUT,
            ),
            "device binding timeout: claim=c; not ready within 600 s:"
            f" {MISSING}: Warm is False (Because: of that);"
            " fpga.example.com/p/fpga-1: Up was never reported",
            True,
            id="reported-and-never-reported",
        ),
    ],
)
def test_failures(claim: ResourceClaim, message: str, timed_out: bool) -> None:
    failed = readiness(claim, TIMEOUT, NOW)
    assert isinstance(failed, BindingFailed)
    assert (failed.message, failed.timed_out) == (message, timed_out)


def test_ready_devices_do_not_time_out() -> None:
    claim = an_allocated_claim([a_result("fpga-0", "Up")], [a_status(Up="True")], timedelta(days=1))
    assert readiness(claim, TIMEOUT, NOW) == Ready()


def test_only_devices_with_conditions_need_waiting() -> None:
    assert not has_conditions(an_allocated_claim([a_result()]))
    assert has_conditions(an_allocated_claim([a_result(), a_result("fpga-1", "Up")]))
    assert not has_conditions(ResourceClaim())


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        pytest.param(timedelta(minutes=1), NOW + timedelta(minutes=9), id="time-of-allocation"),
        pytest.param(None, NOW + timedelta(minutes=5), id="only-since-a-pod-waits"),
    ],
)
def test_deadline_counts_from_the_allocation_if_its_time_is_known(
    age: timedelta | None, expected: datetime
) -> None:
    claim = an_allocated_claim([a_result("fpga-0", "Up")], age=age)
    since = NOW - timedelta(minutes=5)
    assert readiness(claim, TIMEOUT, NOW, since) == NotReady((f"{MISSING}: Up",), expected)
