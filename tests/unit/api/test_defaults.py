from __future__ import annotations

from itertools import product

import msgspec
import pytest

from allot.api import defaults
from allot.api.base import Opaque, replace
from allot.api.claims import (
    CapacityRequirements,
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from allot.api.decoding import decode
from allot.api.defaults import default_claim, default_claim_spec
from allot.api.quantity import Quantity
from allot.api.resource import DeviceToleration, OpaqueDeviceConfiguration
from allot.cli.vectors import NOW
from allot.testing.builders import a_claim, a_request


def a_claim_in_json(count: str, amount: str = "1") -> ResourceClaim:
    """A claim that was decoded, with nothing of another."""
    exactly = (
        f'{{"deviceClassName":"gpu","count":{count},"capacity":{{"requests":{{"m":"{amount}"}}}}}}'
    )
    body = f'{{"spec":{{"devices":{{"requests":[{{"name":"a","exactly":{exactly}}}]}}}}}}'
    return decode(body.encode(), ResourceClaim, "v1")


def test_equal_specs_become_the_same_one() -> None:
    first, again = (default_claim(a_claim_in_json("2"), NOW) for _ in range(2))

    assert first.spec is again.spec
    assert first.spec == default_claim_spec(a_claim_in_json("2").spec)


@pytest.mark.parametrize(("count", "amount"), [("3", "1"), ("2", "1000m"), ("2", "2")])
def test_other_specs_stay_their_own(count: str, amount: str) -> None:
    first = default_claim(a_claim_in_json("2"), NOW)
    other = default_claim(a_claim_in_json(count, amount), NOW)

    expected = default_claim_spec(a_claim_in_json(count, amount).spec)
    assert msgspec.json.encode(other.spec, enc_hook=str) == msgspec.json.encode(
        expected, enc_hook=str
    )
    assert (other.spec == first.spec) is (expected == first.spec)


EXACT = [
    None,
    ExactDeviceRequest(),
    ExactDeviceRequest(allocation_mode="All"),
    ExactDeviceRequest(admin_access=False),
    ExactDeviceRequest(admin_access=True),
    ExactDeviceRequest(tolerations=(DeviceToleration(key="a"),)),
    ExactDeviceRequest(capacity=CapacityRequirements()),
    ExactDeviceRequest(capacity=CapacityRequirements({"m": Quantity.parse("1Gi")})),
]
ALTERNATIVES: list[tuple[DeviceSubRequest, ...]] = [(), (DeviceSubRequest(),)]
CONFIG: list[tuple[DeviceClaimConfiguration, ...]] = [
    (),
    *(
        (DeviceClaimConfiguration(opaque=OpaqueDeviceConfiguration("d", Opaque(parameters))),)
        for parameters in (b"", b"null", b"{}", b"{ }")
    ),
]


def test_specs_are_what_they_are_without_sharing() -> None:
    for exactly, alternatives, config in product(EXACT, ALTERNATIVES, CONFIG):
        request = DeviceRequest("a", exactly, alternatives)
        spec = ResourceClaimSpec(DeviceClaim((request,), config=config))

        for _ in range(2):
            assert default_claim(ResourceClaim(spec=spec), NOW).spec == default_claim_spec(spec)


def test_what_is_shared_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[bytes, ResourceClaimSpec] = {}
    monkeypatch.setattr(defaults, "_shared_specs", known)
    monkeypatch.setattr(defaults, "MAX_SHARED_SPECS", 2)

    for name in ("a", "b", "c", "x" * 5000):
        default_claim(a_claim(a_request(name)), NOW)

    assert len(known) == 1
    assert [spec.devices.requests[0].name for spec in known.values()] == ["c"]
    large = replace(a_claim(a_request("x" * 5000)))
    assert default_claim(large, NOW).spec.devices.requests[0].name == "x" * 5000
