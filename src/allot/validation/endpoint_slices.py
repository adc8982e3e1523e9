"""EndpointSlices: addresses of one type, where each endpoint is, and ports that all of them have.

Some rules are declared on the API's types. Their errors come after those of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.raw import RawObject
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    invalid,
    not_supported,
    required,
    too_many,
)
from allot.validation.formats import subdomain_problems
from allot.validation.ip_addresses import (
    has_leading_zeros,
    parse_address,
    special_range_problems,
    standard_address_problems,
)
from allot.validation.metadata import IMMUTABLE
from allot.validation.names import (
    validate_label,
    validate_label_key,
    validate_label_value,
    validate_subdomain,
)
from allot.validation.parts import Part, part, parts, text, texts

ADDRESS_TYPE: Final = FieldPath("addressType")
ENDPOINTS: Final = FieldPath("endpoints")
PORTS: Final = FieldPath("ports")
IP_VERSIONS: Final = {"IPv4": 4, "IPv6": 6}
FQDN: Final = "FQDN"
ADDRESS_TYPES: Final = (*IP_VERSIONS, FQDN)
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
MAX_ENDPOINTS: Final = 1_000
MAX_ADDRESSES: Final = 100
MAX_PORTS: Final = 20_000
MAX_HINTS: Final = 8


def validate_endpoint_slice(endpoint_slice: RawObject) -> Iterator[FieldError]:
    """A new one, without its metadata."""
    yield from _validate_ports(parts(endpoint_slice.data, "ports"))
    yield from _validate_endpoints(endpoint_slice)
    type_ = endpoint_slice.get("addressType", default="")
    if not type_:
        yield required(ADDRESS_TYPE)
    elif type_ not in ADDRESS_TYPES:
        yield not_supported(ADDRESS_TYPE, type_, ADDRESS_TYPES)
    yield from _validate_address_counts(endpoint_slice)


def validate_endpoint_slice_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    """A changed one, without its metadata."""
    type_ = new.get("addressType", default="")
    if type_ and type_ not in ADDRESS_TYPES:
        yield not_supported(ADDRESS_TYPE, type_, ADDRESS_TYPES)
    yield from _validate_ports(parts(new.data, "ports"))
    if new.get("endpoints") != old.get("endpoints"):
        yield from _validate_endpoints(new)
    if not type_:
        yield required(ADDRESS_TYPE)
    if type_ != old.get("addressType", default=""):
        yield invalid(ADDRESS_TYPE, None, IMMUTABLE)
    yield from _validate_address_counts(new)


def _validate_endpoints(endpoint_slice: RawObject) -> Iterator[FieldError]:
    type_ = endpoint_slice.get("addressType", default="")
    endpoints = parts(endpoint_slice.data, "endpoints")
    if len(endpoints) > MAX_ENDPOINTS:
        yield too_many(ENDPOINTS, len(endpoints), MAX_ENDPOINTS)
        return
    for index, endpoint in enumerate(endpoints):
        yield from _validate_endpoint(endpoint, type_, ENDPOINTS @ index)


def _validate_address_counts(endpoint_slice: RawObject) -> Iterator[FieldError]:
    for index, endpoint in enumerate(parts(endpoint_slice.data, "endpoints")):
        path, count = ENDPOINTS @ index / "addresses", len(texts(endpoint, "addresses"))
        if not count:
            yield required(path)
        elif count > MAX_ADDRESSES:
            yield too_many(path, count, MAX_ADDRESSES)


# --- endpoints ---


def _validate_endpoint(endpoint: Part, type_: str, path: FieldPath) -> Iterator[FieldError]:
    for index, address in enumerate(texts(endpoint, "addresses")):
        if type_ in IP_VERSIONS:
            yield from _validate_ip(address, type_, path / "addresses", index)
        elif type_ == FQDN:
            yield from _validate_domain(address, path / "addresses" @ index)
    if endpoint.get("nodeName") is not None:
        yield from validate_subdomain(text(endpoint, "nodeName"), path / "nodeName")
    if endpoint.get("hostname") is not None:
        yield from validate_label(text(endpoint, "hostname"), path / "hostname")
    yield from _validate_hints(part(endpoint, "hints"), path / "hints")


def _validate_ip(shown: str, type_: str, path: FieldPath, index: int) -> Iterator[FieldError]:
    address, problems = parse_address(shown), standard_address_problems(shown)
    if address is None or problems:
        for problem in problems:
            yield invalid(path @ index, shown, problem)
        return
    if address.version != IP_VERSIONS[type_]:
        yield invalid(path, shown, f"must be an {type_} address")
    elif str(address) != shown:
        yield invalid(path @ index, shown, f'must be in canonical form ("{address}")')
        return
    if address.is_unspecified:
        yield invalid(path @ index, shown, f"may not be unspecified ({shown})")
    for problem in special_range_problems(address):
        yield invalid(path @ index, shown, problem)


def _validate_domain(domain: str, path: FieldPath) -> Iterator[FieldError]:
    if not domain:
        yield required(path)
        return
    name = domain.removesuffix(".")
    problems = subdomain_problems(name)
    if problems:
        yield invalid(path, name, ",".join(problems))
    elif "." not in name:
        rule = "should be a domain with at least two segments separated by dots"
        yield invalid(path, name, rule)


def _validate_hints(hints: Part, path: FieldPath) -> Iterator[FieldError]:
    for field, validate in (("forZones", validate_label_value), ("forNodes", validate_subdomain)):
        listed = parts(hints, field)
        if len(listed) > MAX_HINTS:
            yield too_many(path / field, len(listed), MAX_HINTS)
            return
        names: set[str] = set()
        for index, hint in enumerate(listed):
            name, place = text(hint, "name"), path / field @ index / "name"
            if name in names:
                yield duplicate(place, name)
            names.add(name)
            yield from validate(name, place)


# --- ports ---


def _validate_ports(ports: list[Part]) -> Iterator[FieldError]:
    if len(ports) > MAX_PORTS:
        yield too_many(PORTS, len(ports), MAX_PORTS)
        return
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = PORTS @ index, text(port, "name")
        if name:
            yield from validate_label(name, path / "name")
        if name in names:
            yield duplicate(path / "name", name)
        names.add(name)
        protocol = text(port, "protocol")
        if protocol not in PROTOCOLS:
            yield not_supported(path / "protocol", protocol, PROTOCOLS)
        if port.get("appProtocol") is not None:
            yield from validate_label_key(text(port, "appProtocol"), path / "appProtocol")


# --- warnings ---


def address_type_warnings(endpoint_slice: RawObject) -> list[str]:
    """About a new one."""
    if endpoint_slice.get("addressType") == FQDN:
        return ["spec.addressType: FQDN endpoints are deprecated"]
    return []


def address_warnings(endpoint_slice: RawObject) -> list[str]:
    """Addresses that some programs read as others. Slices of names may have them."""
    if endpoint_slice.get("addressType") != FQDN:
        return []
    return [
        f'endpoints[{index}].addresses[{position}]: non-standard IP address "{address}" is invalid: use "{standard}"'
        for index, endpoint in enumerate(parts(endpoint_slice.data, "endpoints"))
        for position, address in enumerate(texts(endpoint, "addresses"))
        if has_leading_zeros(address) and (standard := parse_address(address)) is not None
    ]
