from __future__ import annotations

from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.validation.endpoint_slices import (
    address_warnings,
    validate_endpoint_slice,
    validate_endpoint_slice_update,
)


def endpoint_slice(type_: str = "IPv4", **fields: Any) -> RawObject:
    return RawObject({"addressType": type_} | fields)


def endpoints(*addresses: str) -> list[dict[str, Any]]:
    return [{"addresses": [address]} for address in addresses]


@pytest.mark.parametrize(
    ("type_", "address", "problem"),
    [
        pytest.param("IPv4", "10.0.0.1", "", id="ipv4"),
        pytest.param("IPv6", "fd00::1", "", id="ipv6"),
        pytest.param("IPv6", "10.0.0.1", "must be an IPv6 address", id="other-family"),
        pytest.param("IPv4", "010.0.0.1", "must not have leading 0s", id="leading-zeros"),
        pytest.param("IPv6", "FD00::1", 'must be in canonical form ("fd00::1")', id="canonical"),
        pytest.param("IPv6", "::", "may not be unspecified (::)", id="unspecified"),
        pytest.param("FQDN", "example.com.", "", id="domain"),
        pytest.param(
            "FQDN",
            "example",
            "should be a domain with at least two segments separated by dots",
            id="one-segment",
        ),
    ],
)
def test_addresses(type_: str, address: str, problem: str) -> None:
    found = validate_endpoint_slice(endpoint_slice(type_, endpoints=endpoints(address)))

    assert [error.detail for error in found] == ([problem] if problem else [])


def test_errors_of_declared_rules_come_last() -> None:
    broken = endpoint_slice("", endpoints=[{"nodeName": "A_"}], ports=[{"name": "A_"}])

    found = [str(error.path) for error in validate_endpoint_slice(broken)]

    assert found == [
        "ports[0].name",
        "ports[0].protocol",
        "endpoints[0].nodeName",
        "addressType",
        "endpoints[0].addresses",
    ]


def test_type_stays() -> None:
    old = endpoint_slice(endpoints=endpoints("10.0.0.1"))
    new = endpoint_slice("IPv6", endpoints=endpoints("10.0.0.1"))

    (error,) = validate_endpoint_slice_update(new, old)

    assert str(error) == "addressType: Invalid value: null: field is immutable"


def test_addresses_that_some_read_differently() -> None:
    named = endpoint_slice("FQDN", endpoints=endpoints("example.com", "010.0.0.1"))

    (warning,) = address_warnings(named)

    assert warning.endswith('non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"')
