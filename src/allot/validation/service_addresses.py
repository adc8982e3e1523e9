"""Addresses of Services: cluster IPs, IP families, external IPs. The cluster has IPv4 only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address
from typing import Any, Final

from allot.api.raw import RawObject
from allot.validation.fields import FieldError, FieldPath, duplicate, invalid, not_supported
from allot.validation.ip_addresses import (
    NOT_AN_ADDRESS,
    address_name_problems,
    parse_address,
    special_range_problems,
)
from allot.validation.lists import repeated

SPEC: Final = FieldPath("spec")
HEADLESS: Final = "None"
WITHOUT_ADDRESS: Final = "ExternalName"
_FAMILIES: Final = ("IPv4", "IPv6")
_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")


def validate_addresses(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    if spec.get("type") != WITHOUT_ADDRESS:
        yield from _validate_cluster_addresses(spec)
        yield from _validate_families(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        path = SPEC / "externalIPs" @ index
        problems = address_name_problems(str(address)) or _special_problems(str(address))
        yield from (invalid(path, address, problem) for problem in problems)


def _validate_cluster_addresses(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    path, type_ = SPEC / "clusterIPs", spec.get("type")
    addresses = spec.get("clusterIPs") or []
    first = spec.get("clusterIP") or ""
    if addresses and not first:
        yield invalid(path, addresses, "must be empty when `clusterIP` is not specified")
    elif addresses and addresses[0] != first:
        yield invalid(path, addresses, "first value must match `clusterIP`")
    if len(addresses) > 1 and _shares_family(addresses):
        yield invalid(path, addresses, "may specify no more than one IP for each IP family")
        return
    for index, address in enumerate(addresses or [first]):
        if address == HEADLESS:
            if type_ != "ClusterIP":
                rule = f"may not be set to 'None' for {type_} services"
                yield invalid(path @ index, HEADLESS, rule)
            continue
        parsed = parse_address(str(address))
        if (address or addresses) and parsed is None:
            yield invalid(path @ index, address, NOT_AN_ADDRESS)
        elif isinstance(parsed, IPv6Address):
            rule = "IPv6 is not configured on this cluster"
            yield invalid(path @ index, addresses or [first], rule)


def _shares_family(addresses: list[str]) -> bool:
    versions = [parsed.version for parsed in map(parse_address, addresses) if parsed is not None]
    return len(versions) != len(set(versions))


def _validate_families(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    path, families = SPEC / "ipFamilies", spec.get("ipFamilies") or []
    is_headless = spec.get("clusterIP") == HEADLESS
    for index, (family, is_repeated) in enumerate(zip(families, repeated(families), strict=True)):
        if family not in _FAMILIES:
            yield not_supported(path @ index, family, _FAMILIES)
        if is_repeated:
            yield duplicate(path @ index, family)
        elif family == "IPv6" and not is_headless:
            yield invalid(path @ index, family, "not configured on this cluster")
    policy = spec.get("ipFamilyPolicy")
    if policy is None:
        return
    if policy not in _FAMILY_POLICIES:
        yield not_supported(SPEC / "ipFamilyPolicy", policy, _FAMILY_POLICIES)
    elif policy == "RequireDualStack" and not is_headless:
        rule = "this cluster is not configured for dual-stack services"
        yield invalid(SPEC / "ipFamilyPolicy", policy, rule)


def _special_problems(text: str) -> list[str]:
    """Why an address cannot be that of a service from outside."""
    address = parse_address(text)
    if address is None:
        return []
    unspecified = ["may not be unspecified (0.0.0.0 or ::)"] if address.is_unspecified else []
    return unspecified + special_range_problems(address)


def validate_service_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    """The address of a service stays as long as it has one."""
    before, after = old.get("spec", "clusterIP"), new.get("spec", "clusterIP")
    has_address = WITHOUT_ADDRESS not in (old.get("spec", "type"), new.get("spec", "type"))
    if before and has_address and after != before:
        yield invalid(SPEC / "clusterIPs" @ 0, [after or ""], "may not change once set")
