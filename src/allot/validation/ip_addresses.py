"""IP addresses and CIDRs in canonical form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from allot.validation.fields import FieldError, FieldPath, invalid

NOT_A_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
NOT_AN_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
has_leading_zeros: Final = re.compile(r"(?:^|[./])0\d").search
_without_leading_zeros: Final = re.compile(r"(^|[./])0+(?=\d)")

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def parse_network(text: str) -> Network | None:
    """The network, also with bits set beyond the prefix; None if it is not a CIDR."""
    if "/" not in text or not text.rpartition("/")[2].isdecimal():
        return None
    try:
        return ip_network(_plain(text), strict=False)
    except ValueError:
        return None


def parse_address(text: str) -> Address | None:
    try:
        return None if "%" in text else ip_address(_plain(text))
    except ValueError:
        return None


def _plain(text: str) -> str:
    return text if ":" in text else _without_leading_zeros.sub(r"\1", text)


def validate_canonical_cidr(text: str, path: FieldPath) -> Iterator[FieldError]:
    problem = next(validate_cidr(text, path), None)
    if problem is not None:
        yield problem
    elif str(network := parse_network(text)) != text:
        yield invalid(path, text, f'must be in canonical form ("{network}")')


def validate_cidr(text: str, path: FieldPath) -> Iterator[FieldError]:
    network = parse_network(text)
    if network is None:
        yield invalid(path, text, NOT_A_CIDR)
        return
    address = parse_address(text.rpartition("/")[0])
    if has_leading_zeros(text) and ":" not in text:
        yield invalid(path, text, "must not have leading 0s in IP or prefix length")
    elif isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        yield invalid(path, text, "must not have an IPv4-mapped IPv6 address")
    elif address != network.network_address:
        yield invalid(path, text, "must not have bits set beyond the prefix length")


def address_name_problems(text: str) -> list[str]:
    """The name of an IPAddress."""
    problems = standard_address_problems(text)
    if problems:
        return problems
    address = parse_address(text)
    return [] if str(address) == text else [f'must be in canonical form ("{address}")']


def standard_address_problems(text: str) -> list[str]:
    """An address that all programs read as the same one."""
    address = parse_address(text)
    if address is None:
        return [NOT_AN_ADDRESS]
    if ":" not in text and has_leading_zeros(text):
        return ["must not have leading 0s"]
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


_LINK_LOCAL_MULTICAST: Final = (ip_network("224.0.0.0/24"), ip_network("ff02::/16"))


def special_range_problems(address: Address) -> list[str]:
    """Why an address cannot be reached from other hosts."""
    found = []
    if address.is_loopback:
        found.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        found.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if any(
        address in network
        for network in _LINK_LOCAL_MULTICAST
        if network.version == address.version
    ):
        found.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return found
