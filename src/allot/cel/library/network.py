"""IP addresses and networks, parsed as strictly as Go's netip, with its error messages."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.cel import types
from allot.cel.declarations import function, overload
from allot.cel.errors import EvalError
from allot.cel.library.formatting import go_quoted
from allot.cel.library.memoize import memoized
from allot.cel.values import register_class


class Ip(NamedTuple):
    """An address: 4 or 16 bytes."""

    packed: bytes

    @property
    def is_v4(self) -> bool:
        return len(self.packed) == 4

    @property
    def byte_size(self) -> int:
        """Its size in the cost model."""
        return len(self.packed)

    def __str__(self) -> str:
        if self.is_v4:
            return ".".join(map(str, self.packed))
        return _v6_text(self.packed)


class Cidr(NamedTuple):
    """A network: an address, possibly with bits set beyond the prefix, and the prefix length."""

    address: Ip
    bits: int

    @property
    def byte_size(self) -> int:
        """Its size in the cost model: the bytes the prefix covers."""
        return -(-self.bits // 8)

    def masked(self) -> Cidr:
        length = len(self.address.packed)
        number = int.from_bytes(self.address.packed, "big")
        spare = length * 8 - self.bits
        return Cidr(Ip((number >> spare << spare).to_bytes(length, "big")), self.bits)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


register_class(Ip, types.IP, "cel.IP")
register_class(Cidr, types.CIDR, "cel.CIDR")


class _ParseError(ValueError):
    def __init__(self, message: str, at: str = "") -> None:
        super().__init__(f"{message} (at {go_quoted(at)})" if at else message)


def _parse_v4(text: str) -> bytes:
    fields: list[int] = []
    value, digits = 0, 0
    for index, character in enumerate(text):
        if character in "0123456789":
            if digits == 1 and value == 0:
                raise _ParseError("IPv4 field has octet with leading zero")
            value = value * 10 + int(character)
            digits += 1
            if value > 255:
                raise _ParseError("IPv4 field has value >255")
        elif character == ".":
            if not digits or index == len(text) - 1:
                raise _ParseError("IPv4 field must have at least one digit", text[index:])
            if len(fields) == 3:
                raise _ParseError("IPv4 address too long")
            fields.append(value)
            value = digits = 0
        else:
            raise _ParseError("unexpected character", text[index:])
    if len(fields) < 3:
        raise _ParseError("IPv4 address too short")
    return bytes([*fields, value])


_HEX: Final = "0123456789abcdefABCDEF"


def _parse_v6(text: str) -> bytes:
    packed = bytearray()
    ellipsis = -1
    rest = text
    if rest.startswith("::"):
        ellipsis = 0
        rest = rest[2:]
        if not rest:
            return bytes(16)
    while len(packed) < 16:
        width = 0
        while width < len(rest) and rest[width] in _HEX:
            width += 1
            if width > 4:
                raise _ParseError("each group must have 4 or less digits", rest)
        if width == 0:
            raise _ParseError("each colon-separated field must have at least one digit", rest)
        if rest[width : width + 1] == ".":
            packed += _embedded_v4(rest, len(packed), ellipsis)
            rest = ""
            break
        packed += int(rest[:width], 16).to_bytes(2, "big")
        rest = rest[width:]
        if not rest:
            break
        if rest[0] != ":":
            raise _ParseError("unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _ParseError("colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _ParseError("multiple :: in address", rest)
            ellipsis = len(packed)
            rest = rest[1:]
            if not rest:
                break
    if rest:
        raise _ParseError("trailing garbage after address", rest)
    return _expanded(packed, ellipsis)


def _embedded_v4(rest: str, before: int, ellipsis: int) -> bytes:
    if ellipsis < 0 and before != 12:
        raise _ParseError(
            "embedded IPv4 address must replace the final 2 fields of the address", rest
        )
    if before + 4 > 16:
        raise _ParseError(
            "too many hex fields to fit an embedded IPv4 at the end of the address", rest
        )
    return _parse_v4(rest)


def _expanded(packed: bytearray, ellipsis: int) -> bytes:
    missing = 16 - len(packed)
    if missing and ellipsis < 0:
        raise _ParseError("address string too short")
    if not missing and ellipsis >= 0:
        raise _ParseError("the :: must expand to at least one field of zeros")
    return bytes(packed[: max(ellipsis, 0)] + bytes(missing) + packed[max(ellipsis, 0) :])


def _v6_text(packed: bytes) -> str:
    groups = [int.from_bytes(packed[i : i + 2], "big") for i in range(0, 16, 2)]
    start, length = 0, 0
    index = 0
    while index < 8:
        end = index
        while end < 8 and groups[end] == 0:
            end += 1
        if end - index > max(length, 1):
            start, length = index, end - index
        index = max(end, index + 1)
    if not length:
        return ":".join(f"{group:x}" for group in groups)
    left = ":".join(f"{group:x}" for group in groups[:start])
    right = ":".join(f"{group:x}" for group in groups[start + length :])
    return f"{left}::{right}"


def _parse_address(text: str) -> tuple[bytes, str]:
    """Bytes and zone; ValueError with the message of netip.ParseAddr."""
    try:
        for character in text:
            if character == ".":
                return _parse_v4(text), ""
            if character == ":":
                address, percent, zone = text.partition("%")
                if percent and not zone:
                    raise _ParseError("zone must be a non-empty string")
                return _parse_v6(address), zone
            if character == "%":
                raise _ParseError("missing IPv6 address")
        raise _ParseError("unable to parse IP")
    except _ParseError as error:
        raise ValueError(f"ParseAddr({go_quoted(text)}): {error}") from None


_MAPPED: Final = bytes(10) + b"\xff\xff"


@memoized
def _parse_ip(text: str) -> Ip:
    try:
        packed, zone = _parse_address(text)
    except ValueError as error:
        raise EvalError(
            f"IP Address {go_quoted(text)} parse error during conversion from string: {error}"
        ) from None
    if zone:
        raise EvalError(f"IP address {go_quoted(text)} with zone value is not allowed")
    if packed.startswith(_MAPPED):
        raise EvalError(f"IPv4-mapped IPv6 address {go_quoted(text)} is not allowed")
    return Ip(packed)


def _parse_prefix(text: str) -> Cidr:
    """The network; ValueError with the message of netip.ParsePrefix."""
    address, slash, bits = text.rpartition("/")
    problem = f"netip.ParsePrefix({go_quoted(text)}): "
    if not slash:
        raise ValueError(f"{problem}no '/'")
    try:
        packed, zone = _parse_address(address)
    except ValueError as error:
        raise ValueError(f"{problem}{error}") from None
    if zone:
        raise ValueError(f"{problem}IPv6 zones cannot be present in a prefix")
    is_number = bits.isascii() and bits.isdigit() and (bits == "0" or bits[0] != "0")
    if not is_number or len(bits) > 9:
        raise ValueError(f"{problem}bad bits after slash: {go_quoted(bits)}")
    if int(bits) > len(packed) * 8:
        raise ValueError(f"{problem}prefix length out of range")
    return Cidr(Ip(packed), int(bits))


_CIDR_PROBLEM: Final = "network address parse error during conversion from string: "


@memoized
def _parse_cidr(text: str) -> Cidr:
    try:
        cidr = _parse_prefix(text)
    except ValueError as error:
        raise EvalError(f"{_CIDR_PROBLEM}{_CIDR_PROBLEM}{error}") from None
    if cidr.address.packed.startswith(_MAPPED) and not cidr.address.is_v4:
        raise EvalError(f"{_CIDR_PROBLEM}IPv4-mapped IPv6 address {go_quoted(text)} is not allowed")
    return cidr


_LONGEST: Final = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128")
"""Longer strings are neither address nor network; they are refused without parsing."""


def _is_ip(text: str) -> bool:
    if len(text) > _LONGEST:
        return False
    try:
        _parse_ip(text)
    except EvalError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    if len(text) > _LONGEST:
        return False
    try:
        _parse_cidr(text)
    except EvalError:
        return False
    return True


def _is_loopback(ip: Ip) -> bool:
    return ip.packed[0] == 127 if ip.is_v4 else ip.packed == bytes(15) + b"\x01"


def _is_link_local_multicast(ip: Ip) -> bool:
    if ip.is_v4:
        return ip.packed.startswith(b"\xe0\x00\x00")
    return ip.packed[0] == 0xFF and ip.packed[1] & 0x0F == 0x02


def _is_link_local_unicast(ip: Ip) -> bool:
    if ip.is_v4:
        return ip.packed.startswith(b"\xa9\xfe")
    return ip.packed[0] == 0xFE and ip.packed[1] & 0xC0 == 0x80


def _is_multicast(ip: Ip) -> bool:
    return ip.packed[0] & 0xF0 == 0xE0 if ip.is_v4 else ip.packed[0] == 0xFF


def _is_unspecified(ip: Ip) -> bool:
    return not any(ip.packed)


def _is_global_unicast(ip: Ip) -> bool:
    return not (
        ip.packed == b"\xff\xff\xff\xff"
        or _is_unspecified(ip)
        or _is_loopback(ip)
        or _is_multicast(ip)
        or _is_link_local_unicast(ip)
    )


def _contains_ip(cidr: Cidr, ip: Ip) -> bool:
    return _share_prefix(cidr.address.packed, ip.packed, cidr.bits)


def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    return cidr.bits <= other.bits and _share_prefix(
        cidr.address.packed, other.address.packed, cidr.bits
    )


def _share_prefix(one: bytes, other: bytes, bits: int) -> bool:
    """Whether two addresses are of one family and have the same prefix."""
    spare = len(one) * 8 - bits
    same = int.from_bytes(one, "big") ^ int.from_bytes(other, "big")
    return len(one) == len(other) and not same >> spare


FUNCTIONS: Final = (
    function(
        "ip",
        overload("string_to_ip", "(string) -> ip", _parse_ip),
        overload("cidr_ip", "cidr.() -> ip", lambda cidr: cidr.address),
    ),
    function("isIP", overload("is_ip", "(string) -> bool", _is_ip)),
    function(
        "ip.isCanonical",
        overload("ip_is_canonical", "(string) -> bool", lambda text: str(_parse_ip(text)) == text),
    ),
    function("family", overload("ip_family", "ip.() -> int", lambda ip: 4 if ip.is_v4 else 6)),
    function("isUnspecified", overload("ip_is_unspecified", "ip.() -> bool", _is_unspecified)),
    function("isLoopback", overload("ip_is_loopback", "ip.() -> bool", _is_loopback)),
    function(
        "isLinkLocalMulticast",
        overload("ip_is_link_local_multicast", "ip.() -> bool", _is_link_local_multicast),
    ),
    function(
        "isLinkLocalUnicast",
        overload("ip_is_link_local_unicast", "ip.() -> bool", _is_link_local_unicast),
    ),
    function(
        "isGlobalUnicast", overload("ip_is_global_unicast", "ip.() -> bool", _is_global_unicast)
    ),
    function(
        "string",
        overload("ip_to_string", "(ip) -> string", str),
        overload("cidr_to_string", "(cidr) -> string", str),
    ),
    function("cidr", overload("string_to_cidr", "(string) -> cidr", _parse_cidr)),
    function("isCIDR", overload("is_cidr", "(string) -> bool", _is_cidr)),
    function(
        "containsIP",
        overload(
            "cidr_contains_ip_string",
            "cidr.(string) -> bool",
            lambda cidr, text: _contains_ip(cidr, _parse_ip(text)),
        ),
        overload("cidr_contains_ip_ip", "cidr.(ip) -> bool", _contains_ip),
    ),
    function(
        "containsCIDR",
        overload(
            "cidr_contains_cidr_string",
            "cidr.(string) -> bool",
            lambda cidr, text: _contains_cidr(cidr, _parse_cidr(text)),
        ),
        overload("cidr_contains_cidr", "cidr.(cidr) -> bool", _contains_cidr),
    ),
    function("prefixLength", overload("cidr_prefix_length", "cidr.() -> int", lambda c: c.bits)),
    function("masked", overload("cidr_masked", "cidr.() -> cidr", lambda cidr: cidr.masked())),
)
