"""Allocations that are plain are not looked at field by field: they have no errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from allot.api.claims import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from allot.features import DEFAULTS
from allot.validation import claim_status
from allot.validation.resource_claim import RequestNames
from tests.step_counts import steps

CLAIM = DeviceClaim(
    requests=(
        DeviceRequest(name="r", exactly=ExactDeviceRequest(device_class_name="c")),
        DeviceRequest(name="f", first_available=(DeviceSubRequest(name="a"),)),
        DeviceRequest(name="Bad", first_available=(DeviceSubRequest(name="a"),)),
    )
)
SHARE = "00000000-0000-4000-8000-000000000001"


def allocated(**result: Any) -> AllocationResult:
    fields = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d", **result}
    results = (DeviceRequestAllocationResult(**fields),)
    return AllocationResult(devices=DeviceAllocationResult(results=results))


@pytest.mark.parametrize(
    ("result", "is_plain"),
    [
        pytest.param({}, True, id="device"),
        pytest.param({"share_id": SHARE}, True, id="share"),
        pytest.param({"share_id": "1"}, False, id="share-without-uuid"),
        pytest.param({"request": "f"}, True, id="request-with-alternatives"),
        pytest.param({"request": "f/a"}, True, id="alternative"),
        pytest.param({"request": "f/b"}, False, id="no-alternative"),
        pytest.param({"request": "f/a/a"}, False, id="too-many-parts"),
        pytest.param({"request": "Bad/a"}, False, id="alternative-of-a-wrong-name"),
        pytest.param({"request": "r/"}, False, id="empty-alternative"),
    ],
)
def test_a_plain_allocation(result: dict[str, Any], is_plain: bool) -> None:
    assert claim_status._is_plain_allocation(allocated(**result), CLAIM) is is_plain


def test_the_work_grows_with_the_results() -> None:
    """Not with the results times the alternatives of the claim."""

    def work(count: int) -> int:
        alternatives = tuple(DeviceSubRequest(name=f"a{number}") for number in range(8))
        names = [f"r{number}" for number in range(count)]
        claim = DeviceClaim(
            requests=tuple(DeviceRequest(name=name, first_available=alternatives) for name in names)
        )
        results = tuple(allocated(request=f"{name}/a7").devices.results[0] for name in names)
        allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
        assert claim_status._is_plain_allocation(allocation, claim)
        return steps(lambda: claim_status._is_plain_allocation(allocation, claim))

    assert work(32) < 5 * work(8)


def test_a_plain_allocation_has_no_errors() -> None:
    requests = ("", "r", "f", "f/a", "f/b", "f/a/a", "Bad", "Bad/a", "/a", "f/", "x")
    shares = (None, "", SHARE, SHARE.upper().replace("8", "A"), SHARE[1:])
    names = RequestNames.of(CLAIM)

    for request, share in itertools.product(requests, shares):
        allocation = allocated(request=request, share_id=share)
        errors = claim_status._validate_allocation(
            allocation, claim_status.ALLOCATION, names, DEFAULTS
        )
        assert claim_status._is_plain_allocation(allocation, CLAIM) is not any(errors)
