"""Formats of strings in schemas: which texts are valid.

Formats that are not listed are annotations only. All patterns are matched by an engine that is linear in the text.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Final
from urllib.parse import urlsplit

from allot.api.durations import parse_duration
from allot.cel.library.regexes import compiled
from allot.validation.formats import label_problems, subdomain_problems

Check = Callable[[str], bool]

_HOSTNAME: Final = (
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|"
    r"([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}"
    r"([a-zA-Z\p{L}]){2,63})$"
)
_DATE_TIME: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})"
)
_MAX_TEXT: Final = 64 * 1024
"""Longer texts have none of the formats that are parsed rather than matched."""


def _matches(pattern: str) -> Check:
    """A check by a pattern, which is compiled when it is first used."""

    def check(text: str) -> bool:
        return compiled(pattern).is_in(text)

    return check


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    found = _DATE_TIME.fullmatch(text[:64])
    if found is None or len(text) > 64:
        return False
    try:
        year, month, day, hour, minute, second = map(int, found.groups()[:6])
        datetime(max(year, 1), month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return False
    return second < 60


def _is_duration(text: str) -> bool:
    return parsed_duration(text) is not None


_DAYS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9,
    "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9, "w": 7 * 86400 * 10**9,
}  # fmt: skip
_WORDS: Final = {
    "nano": "ns", "nanos": "ns", "nanosecond": "ns", "nanoseconds": "ns",
    "micro": "us", "micros": "us", "microsecond": "us", "microseconds": "us",
    "milli": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
    "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "min": "m", "mins": "m", "minute": "m", "minutes": "m",
    "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
    "day": "d", "days": "d", "week": "w", "weeks": "w", "wk": "w",
}  # fmt: skip
_part_of_duration: Final = re.compile(r"(\d+)\s*([A-Za-zµμ]+)")


def parsed_duration(text: str) -> int | None:
    """Nanoseconds of a duration as Go writes it, or in words such as `2 days`; None if it is neither."""
    if len(text) > _MAX_TEXT:
        return None
    nanoseconds = parse_duration(text)
    if nanoseconds is not None:
        return nanoseconds
    total, position, found_any = 0, 0, False
    stripped = text.strip()
    while position < len(stripped):
        found = _part_of_duration.match(stripped, position)
        if found is None:
            return None
        word = found[2].lower()
        unit = _DAYS.get(_WORDS.get(word, word))
        if unit is None:
            return None
        total += int(found[1][:20]) * unit
        found_any = True
        position = found.end()
        while position < len(stripped) and stripped[position] == " ":
            position += 1
    return total if found_any else None


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_ipv6(text: str) -> bool:
    try:
        return "%" not in text and bool(ipaddress.IPv6Address(text).exploded)
    except ValueError:
        return False


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not bits.isascii() or not bits.isdecimal() or len(bits) > 3:
        return False
    if _is_ipv4(address):
        return int(bits) <= 32
    return _is_ipv6(address) and int(bits) <= 128


def _is_email(text: str) -> bool:
    name, at, domain = text.rpartition("@")
    if not at or not name or not domain or len(text) > _MAX_TEXT:
        return False
    bare = not re.search(r'[\s()<>\[\]:;,"\\@]', name) and ".." not in name
    quoted = len(name) > 1 and name.startswith('"') and name.endswith('"')
    is_domain = not re.search(r'[\s()<>:;,"\\@]', domain) and not domain.startswith(".")
    return (quoted or (bare and name.strip(".") == name)) and is_domain


def _is_uri(text: str) -> bool:
    """As Go's url.ParseRequestURI: absolute, or an absolute path."""
    if not text or any(ord(character) < 32 or character == "\x7f" for character in text):
        return False
    if text.startswith("/"):
        return True
    scheme, colon, rest = text.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]{0,63}", scheme):
        return False
    if re.search(r"%(?![0-9A-Fa-f]{2})", rest):
        return False
    try:
        return rest.startswith("/") and urlsplit(text).port is not False
    except ValueError:
        return False


def _is_mac(text: str) -> bool:
    return any(
        re.fullmatch(pattern, text[:80])
        for count in (6, 8, 20)
        for pattern in (
            rf"[0-9A-Fa-f]{{2}}(?::[0-9A-Fa-f]{{2}}){{{count - 1}}}",
            rf"[0-9A-Fa-f]{{2}}(?:-[0-9A-Fa-f]{{2}}){{{count - 1}}}",
            rf"[0-9A-Fa-f]{{4}}(?:\.[0-9A-Fa-f]{{4}}){{{count // 2 - 1}}}",
        )
    )


def _is_isbn10(text: str) -> bool:
    digits = text.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"\d{9}[\dXx]", digits[:16]) or len(digits) != 10:
        return False
    values = [10 if digit in "Xx" else int(digit) for digit in digits]
    return sum((index + 1) * value for index, value in enumerate(values)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = text.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"\d{13}", digits[:16]) or len(digits) != 13:
        return False
    total = sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(digits))
    return total % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text[:64])
    if not re.fullmatch(
        r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
        r"|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}"
        r"|6[27][0-9]{14})",
        digits,
    ):
        return False
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if index % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


_HEX: Final = "[0-9a-fA-F]"


def _uuid(version: str, variant: str) -> str:
    return f"^{_HEX}{{8}}-?{_HEX}{{4}}-?{version}-?{variant}-?{_HEX}{{12}}$"


_CHECKS: Final[dict[str, Check]] = {
    "bsonobjectid": _matches(f"^{_HEX}{{24}}$"),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _matches(_HOSTNAME),
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _matches(_uuid(f"{_HEX}{{4}}", f"{_HEX}{{4}}")),
    "uuid3": _matches(_uuid(f"3{_HEX}{{3}}", f"{_HEX}{{4}}")),
    "uuid4": _matches(_uuid(f"4{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}")),
    "uuid5": _matches(_uuid(f"5{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}")),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _matches(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
    "hexcolor": _matches("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "rgbcolor": _matches(
        r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,"
        r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$"
    ),
    "byte": _is_base64,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "date-time": _is_date_time,
    "k8s-short-name": lambda text: not label_problems(text),
    "k8s-long-name": lambda text: not subdomain_problems(text),
}


def has_format(text: str, format_: str) -> bool:
    """Whether a string has a format; every string has one that is not known."""
    check = _CHECKS.get(format_)
    return check is None or check(text)
